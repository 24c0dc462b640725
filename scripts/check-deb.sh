#!/usr/bin/env bash
# Builds the Debian package, installs it in a minimal Debian root, and runs its server there as systemd would: as its user, with its
# configuration, told READY=1 and STOPPING=1. Needs root on Debian: sudo bash scripts/check-deb.sh [PACKAGE.deb]
#
# systemd itself does not run in the root (check-unit.sh has one): the unit is read by systemd-analyze, and the package by lintian.
set -euo pipefail
name=check-deb
. "$(dirname "$0")/own-root.sh"

enter_with_deb "$@"
deb=$1
node scripts/check-size.mjs make-deb.sh "$(stat -c %s "$deb")" || fail size

if command -v lintian > /dev/null; then
  lintian --fail-on error,warning --allow-root "$deb" || fail 'lintian'
  say 'lintian has no error and no warning'
else
  say 'lintian is not here (apt-get install lintian)'
fi

make_debian adduser,libstdc++6
mount_own
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
as_farkv() { chroot --userspec=farkv:farkv "$root" env -i PATH=/usr/bin:/bin HOME=/var/lib/farkv "$@"; }

cp "$deb" "$root/tmp/farkv.deb"
inside DEBIAN_FRONTEND=noninteractive dpkg -i /tmp/farkv.deb > "$top/dpkg.log" 2>&1 || { cat "$top/dpkg.log"; fail 'dpkg -i'; }
say "installed: farkv $(inside farkv --version)"
[ "$(inside stat -c %U:%a /var/lib/farkv /etc/farkv/secrets | sort -u)" = farkv:700 ] || fail 'the directories of the user farkv'
for file in /usr/share/man/man1/farkv-server.1.gz /usr/share/bash-completion/completions/farkv /usr/share/fish/vendor_completions.d/farkv.fish /usr/share/zsh/vendor-completions/_farkv /lib/systemd/system/farkv.service /usr/share/doc/farkv/docs/gateway.md; do
  inside test -f "$file" || fail "$file is missing"
done
# The unit has all but its own directory read-only: who names another one must find out how.
for file in /etc/default/farkv /etc/farkv/farkv.yaml; do
  inside grep -q ReadWritePaths= "$file" || fail "$file does not say what another data directory needs"
done
if command -v systemd-analyze > /dev/null; then
  # The units of this machine stand for those that the root lacks, and another program for the one that is in the root alone.
  sed 's|^ExecStart=/usr/bin/farkv|ExecStart=/bin/true|' "$root/lib/systemd/system/farkv.service" > "$top/farkv.service"
  systemd-analyze verify --man=no "$top/farkv.service" || fail 'systemd-analyze verify'
  say "systemd-analyze security: $(systemd-analyze security --offline=true "$top/farkv.service" | tail -1 | tr -cd '[:print:]')"
fi

# As systemd would: the unit's command and user, the environment file, a socket to be told on.
port=$((20000 + RANDOM % 10000))
echo "FARKV_LISTEN=127.0.0.1:$port" >> "$root/etc/default/farkv"
mapfile -t variables < <(grep -v '^#' "$root/etc/default/farkv")
read -ra command < <(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/farkv.service")
cat > "$top/receiver.py" << 'PY'
import os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
for text in ('READY=1', 'STOPPING=1'):
    got = s.recv(4096).decode()
    if not got.startswith(text):
        sys.exit(f'{got} in place of {text}')
    print(text, flush=True)
PY
mkfifo "$top/told"
python3 "$top/receiver.py" "$root/run/notify" > "$top/told" & receiver=$!
exec 3< "$top/told"
until [ -S "$root/run/notify" ]; do sleep 0.1; done
# Not by a function, which would be a shell between: the signal is for the server.
chroot --userspec=farkv:farkv "$root" env -i "${variables[@]}" NOTIFY_SOCKET=/run/notify "${command[@]}" > "$top/server.log" 2>&1 & server=$!
# Ends with the receiver, which ends with the server.
(wait_for=$server; while kill -0 "$wait_for" 2> /dev/null; do sleep 1; done; sleep 1; kill "$receiver" 2> /dev/null || true) & watcher=$!
read -r state <&3 && [ "$state" = READY=1 ] || { cat "$top/server.log"; fail 'the server did not say READY=1'; }
inside farkv put --connect "127.0.0.1:$port" greeting hello > /dev/null
[ "$(inside farkv get --connect "127.0.0.1:$port" greeting)" = hello ] || fail 'put and get'
kill "$server"
read -r state <&3 && [ "$state" = STOPPING=1 ] || fail 'the server did not say STOPPING=1'
wait "$server" || { cat "$top/server.log"; fail "the server ended with $?"; }
kill "$watcher" 2> /dev/null || true
say 'a server ran as farkv, said READY=1 and STOPPING=1, and ended with 0'
chroot --userspec=farkv:farkv "$root" env -i "${variables[@]}" "${command[@]}" > "$top/server.log" 2>&1 & server=$!
value=
for _ in $(seq 60); do
  value=$(inside farkv get --connect "127.0.0.1:$port" greeting 2> /dev/null) && break
  kill -0 "$server" 2> /dev/null || break
  sleep 0.5
done
[ "$value" = hello ] || { cat "$top/server.log"; fail 'a value is gone after a restart'; }
kill "$server"
wait "$server" || { cat "$top/server.log"; fail "the server ended with $?"; }
say 'after a restart it has its values'

as_farkv farkv secrets init /etc/farkv/secrets --server s1 > /dev/null
inside dpkg -r farkv > /dev/null
inside test -f /etc/farkv/farkv.yaml || fail 'removal deletes the configuration'
inside dpkg -P farkv > /dev/null 2>&1
inside test ! -e /etc/farkv/farkv.yaml || fail 'purge leaves the configuration'
inside test -f /etc/farkv/secrets/ca.key -a -d /var/lib/farkv/raft || fail 'purge deletes secrets or values'
inside test ! -e /usr/lib/farkv || fail "files are left: $(inside find /usr/lib/farkv | head)"
say 'removed and purged: values and secrets are left'

# arm64, emulated, from outside of the root, which has no libraries for it.
if ! command -v qemu-aarch64 > /dev/null || ! command -v aarch64-linux-gnu-gcc > /dev/null; then
  echo 'left out: arm64 (apt-get install qemu-user libstdc++6-arm64-cross gcc-aarch64-linux-gnu libc6-dev-arm64-cross)'
  exit
fi
[ "$(node -p process.arch)" = x64 ] || exit 0
other=$(bash scripts/make-deb.sh "$top" arm64)
[ "$(dpkg-deb --field "$other" Architecture)" = arm64 ] || fail 'arm64: for another processor'
[ "$(dpkg-deb --field "$other" Depends)" = "$(dpkg-deb --field "$deb" Depends)" ] || fail 'arm64: it needs another C library'
! command -v lintian > /dev/null || lintian --fail-on error,warning --allow-root "$other" || fail 'arm64: lintian'
dpkg-deb --extract "$other" "$top/arm64"
lib=$top/arm64/usr/lib/farkv
arm64=(env -i PATH=/usr/bin:/bin "TMPDIR=$top" qemu-aarch64 -L /usr/aarch64-linux-gnu "$lib/node" "$lib/dist/server/cli/main.js")
# What the last server has written is not this one's.
: > "$top/server.log"
"${arm64[@]}" server --listen "127.0.0.1:$port" --memory 64mb --transport tcp > "$top/server.log" 2>&1 & server=$!
until grep -q ' is ready: ' "$top/server.log"; do
  kill -0 "$server" 2> /dev/null || { cat "$top/server.log"; fail 'arm64: the server has ended'; }
  sleep 0.2
done
"${arm64[@]}" put --connect "127.0.0.1:$port" greeting 'to arm64' > /dev/null || fail 'arm64: put'
[ "$("${arm64[@]}" get --connect "127.0.0.1:$port" greeting)" = 'to arm64' ] || fail 'arm64: get'
kill "$server"
wait "$server" || { cat "$top/server.log"; fail "arm64: the server ended with $?"; }
say 'arm64, emulated: what the package has runs a server and commands over tcp'
