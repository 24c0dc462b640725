#!/usr/bin/env bash
# Runs the one-file executable in a minimal Debian root, where Node.js is not: as a user without rights, a server and the commands that use it.
# Says also which C library it needs. Needs root on Debian: sudo bash scripts/check-binary.sh [FILE]
set -euo pipefail
name=check-binary
. "$(dirname "$0")/own-root.sh"

if is_outside; then
  make_top
  [ $# = 1 ] || node scripts/make-binary.mjs "$top"
  enter "${1:-$top/farkv-linux-$(node -p process.arch)}"
fi
file=$1

# The newest version of the C library that a file asks for; what is below 2.29 is there wherever Node.js 20 runs.
newest() { objdump -T "$1" | grep -o 'GLIBC_2[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -1; }
for part in "$file" build/Release/farkv.node; do
  [ "$(printf '%s\n' "$(newest "$part")" 2.28 | sort -V | tail -1)" = 2.28 ] || fail "$part needs glibc $(newest "$part"), newer than 2.28"
done
say 'the file and its addon need glibc 2.28 or older'

make_debian libstdc++6
mount_own
install -m 755 "$file" "$root/usr/local/bin/farkv"
! chroot "$root" sh -c 'command -v node nodejs' || fail 'Node.js is there'
run=(chroot --userspec=nobody:nogroup "$root" env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/nonexistent)
quiet() { [ ! -s "$top/err" ] || { cat "$top/err"; fail "$1 wrote to standard error"; }; }

say "$(du -h "$root/usr/local/bin/farkv" | cut -f1), farkv $("${run[@]}" farkv --version 2> "$top/err")"
quiet --version
"${run[@]}" farkv --help 2> "$top/err" | grep -q '^  farkv server' || fail '--help'
quiet --help
"${run[@]}" farkv doctor > "$top/doctor" 2> "$top/err" || true   # 1: no RDMA here
quiet doctor
grep -q '^libraries' "$top/doctor" || { cat "$top/doctor"; fail doctor; }

port=$((20000 + RANDOM % 9000))
# Not by a shell of its own: the signal is for the server.
"${run[@]}" farkv server --listen "127.0.0.1:$port" --http-listen "127.0.0.1:$((port + 100))" --memory 64mb > "$top/log" 2>&1 & server=$!
until grep -q ' is ready: ' "$top/log"; do
  kill -0 $server 2> /dev/null || { cat "$top/log"; fail 'the server has ended'; }
  sleep 0.2
done
for transport in shm tcp; do
  "${run[@]}" farkv put --connect "127.0.0.1:$port" --transport $transport greeting "by $transport" > /dev/null
  [ "$("${run[@]}" farkv get --connect "127.0.0.1:$port" --transport $transport greeting)" = "by $transport" ] || fail "put and get by $transport"
done
"${run[@]}" farkv ready "127.0.0.1:$((port + 100))" > /dev/null || fail ready
"${run[@]}" farkv status --connect "127.0.0.1:$port" > /dev/null || fail status
say 'a server ran as nobody, without Node.js; put and get by shm and tcp'
kill $server
wait $server || { cat "$top/log"; fail "the server ended with $?"; }
# A server without a data directory keeps its sockets in a folder of its user, which stays.
rmdir "$root/tmp/farkv-$(chroot "$root" id -u nobody)" || fail 'sockets were left'
[ -z "$(ls -A "$root/tmp")" ] || { ls -lA "$root/tmp"; fail 'something was left in /tmp'; }
say 'it ended with 0 at SIGTERM, and left nothing in /tmp'

mount -t tmpfs -o noexec,mode=1777 tmpfs "$root/mnt"
"${run[@]}" TMPDIR=/mnt farkv get --connect "127.0.0.1:$port" greeting 2> "$top/err" && fail 'an addon was loaded from a folder with noexec'
grep -q '/mnt: .*noexec.*TMPDIR' "$top/err" || { cat "$top/err"; fail 'what it says of a folder with noexec'; }
[ -z "$(ls -A "$root/mnt")" ] || fail 'something was left where it could not be loaded'
say 'a folder with noexec is refused, with what to do'
