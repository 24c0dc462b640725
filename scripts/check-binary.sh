#!/usr/bin/env bash
# Runs the one-file executable in a minimal Debian root, where Node.js is not: as a user without rights, a server and the commands that use it,
# where the root cannot be written to, where /tmp is mounted with noexec, without HOME. Then the one for arm64, as far as qemu-user carries it.
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
newest() { readelf --wide --version-info "$1" | grep -o 'GLIBC_2[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -1; }
old_enough() { [ "$(printf '%s\n' "$(newest "$1")" 2.28 | sort -V | tail -1)" = 2.28 ] || fail "$1 needs glibc $(newest "$1"), newer than 2.28"; }
old_enough "$file"
old_enough build/Release/farkv.node
node scripts/check-size.mjs build:binary "$(stat -c %s "$file")" || fail size
say 'the file and its addon need glibc 2.28 or older'
started=$(node scripts/check-start.mjs "$file") || fail "it starts too slowly: $started"
say "$started"

make_debian libstdc++6
mount_own
install -m 755 "$file" "$root/usr/local/bin/farkv"
! chroot "$root" sh -c 'command -v node nodejs' || fail 'Node.js is there'
run=(chroot --userspec=nobody:nogroup "$root" env -i PATH=/usr/local/bin:/usr/bin:/bin)
# ready LOG PID TEXT: waits until this server is ready. Its log was emptied before: a shell empties it only once it runs beside this one, which would
# find the line of the last server.
ready() {
  until grep -q ' is ready: ' "$1"; do
    kill -0 "$2" 2> /dev/null || { cat "$1"; fail "$3 has ended"; }
    sleep 0.2
  done
}
# puts_and_gets ADDRESS TEXT COMMAND...: by each transport, as this command runs farkv there.
puts_and_gets() {
  local at=$1 what=$2 transport
  shift 2
  for transport in shm tcp; do
    "$@" put --connect "$at" --transport $transport greeting "$what, by $transport" > /dev/null || fail "$what: put by $transport"
    [ "$("$@" get --connect "$at" --transport $transport greeting)" = "$what, by $transport" ] || fail "$what: get by $transport"
  done
}
quiet() { [ ! -s "$top/err" ] || { cat "$top/err"; fail "$1 wrote to standard error"; }; }

say "$(du -h "$root/usr/local/bin/farkv" | cut -f1), farkv $("${run[@]}" farkv --version 2> "$top/err")"
quiet --version
"${run[@]}" farkv --help 2> "$top/err" | grep -q '^  farkv server' || fail '--help'
quiet --help
"${run[@]}" farkv doctor > "$top/doctor" 2> "$top/err" || true   # 1: no RDMA here
quiet doctor
grep -q '^libraries' "$top/doctor" && ! grep -q 'not in this build' "$top/doctor" || { cat "$top/doctor"; fail doctor; }
# What docs/rdma.md shows of a host without RDMA devices; other problems of this machine may stand between.
if [ -z "$(ls -A /sys/class/infiniband 2> /dev/null)" ]; then
  while read -r line; do
    sed 's/^ *//' "$top/doctor" | grep -qxF -- "$line" || { cat "$top/doctor"; fail "doctor does not print: $line"; }
  done < <(sed -n '/^On a host without RDMA/,$p' docs/rdma.md | sed -n '/^```$/,/^```$/{/^```$/d; /./p}')
fi

port=$((20000 + RANDOM % 9000))
# Not by a shell of its own: the signal is for the server.
# What NODE_OPTIONS asks for, which Node.js itself would end with, runs in none of the server's threads.
: > "$top/log"
"${run[@]}" NODE_OPTIONS=--require=/none.js farkv server --listen "127.0.0.1:$port" --http-listen "127.0.0.1:$((port + 100))" --memory 64mb > "$top/log" 2>&1 & server=$!
ready "$top/log" $server 'the server'
connect=(--connect "127.0.0.1:$port")
puts_and_gets "127.0.0.1:$port" 'as nobody' "${run[@]}" farkv
"${run[@]}" farkv ready "127.0.0.1:$((port + 100))" > /dev/null || fail ready
"${run[@]}" farkv status "${connect[@]}" > /dev/null || fail status
"${run[@]}" farkv bench run farkv "${connect[@]}" -P workloadc -p recordcount=100 -p operationcount=100 --threads 2 --no-harness > "$top/bench" 2>&1 \
  || { cat "$top/bench"; fail bench; }
"${run[@]}" farkv backup "${connect[@]}" /tmp/backup > /dev/null || fail backup
"${run[@]}" farkv export "${connect[@]}" - | "${run[@]}" farkv import "${connect[@]}" - > /dev/null || fail 'export and import'
rm -r "$root/tmp/backup"
say 'a server ran as nobody, without Node.js and HOME; put, get, status, bench, backup, export, import; shm and tcp'

starts=()
for one in 1 2 3 4 5 6 7 8 9 10; do "${run[@]}" farkv get "${connect[@]}" greeting > "$top/start-$one" 2>&1 & starts+=($!); done
for one in "${starts[@]}"; do wait "$one" || fail 'one of ten at once'; done
[ "$(cat "$top"/start-* | sort -u)" = 'as nobody, by tcp' ] || { cat "$top"/start-*; fail 'ten at once'; }
say 'ten started at once'

mount --rbind "$root" "$root"
mount -o remount,bind,ro "$root"
! "${run[@]}" sh -c '> /tmp/file' 2> /dev/null || fail 'the root can be written to'
puts_and_gets "127.0.0.1:$port" 'in a root that cannot be written to' "${run[@]}" farkv
mount -o remount,ro "$root/dev/shm"
"${run[@]}" farkv get "${connect[@]}" greeting 2> "$top/err" > /dev/null && fail 'an addon was loaded where nothing can be written to'
grep -q '/tmp: .*EROFS.*/dev/shm: .*EROFS.*TMPDIR' "$top/err" || { cat "$top/err"; fail 'what it says where nothing can be written to'; }
mount -t tmpfs -o mode=1777 tmpfs "$root/mnt"
"${run[@]}" TMPDIR=/mnt farkv server --listen "127.0.0.1:$((port + 1))" --memory 64mb > "$top/log-2" 2>&1 & other=$!
ready "$top/log-2" $other 'a server where only TMPDIR can be written to'
puts_and_gets "127.0.0.1:$((port + 1))" 'where only TMPDIR can be written to' "${run[@]}" TMPDIR=/mnt farkv
kill $other
wait $other || { cat "$top/log-2"; fail "the server with a TMPDIR ended with $?"; }
umount "$root/mnt"
umount --recursive "$root"
say 'a root that cannot be written to does for put and get, with /dev/shm or a TMPDIR; for a server with a TMPDIR'

kill $server
wait $server || { cat "$top/log"; fail "the server ended with $?"; }
# A server without a data directory keeps its sockets in a folder of its user, which stays.
rmdir "$root/tmp/farkv-$(chroot "$root" id -u nobody)" || fail 'sockets were left'
[ -z "$(ls -A "$root/tmp")" ] || { ls -lA "$root/tmp"; fail 'something was left in /tmp'; }
say 'it ended with 0 at SIGTERM, and left nothing in /tmp'

mount -t tmpfs -o noexec,mode=1777 tmpfs "$root/mnt"
"${run[@]}" TMPDIR=/mnt farkv get "${connect[@]}" greeting 2> "$top/err" && fail 'an addon was loaded from a folder with noexec'
grep -q '/mnt: .*noexec.*TMPDIR' "$top/err" || { cat "$top/err"; fail 'what it says of a folder with noexec'; }
[ -z "$(ls -A "$root/mnt")" ] || fail 'something was left where it could not be loaded'
umount "$root/mnt"
mount -t tmpfs -o noexec,mode=1777 tmpfs "$root/tmp"
"${run[@]}" farkv doctor > "$top/doctor" 2> "$top/err" || true
quiet 'doctor where /tmp has noexec'
grep -q '^libraries' "$top/doctor" || fail 'doctor where /tmp has noexec'
: > "$top/log"
"${run[@]}" farkv server --listen "127.0.0.1:$port" --memory 64mb > "$top/log" 2>&1 & server=$!
ready "$top/log" $server 'a server where /tmp has noexec'
puts_and_gets "127.0.0.1:$port" 'where /tmp has noexec' "${run[@]}" farkv
kill $server
wait $server || { cat "$top/log"; fail "the server where /tmp has noexec ended with $?"; }
say 'a folder with noexec is refused, with what to do, where it was named; else another one is taken: by a server, put, get and doctor'
umount "$root/tmp"

# As in a container of nothing: the file, the libraries that it is linked with, and no more.
bare=$top/bare
mkdir -p "$bare"/{proc,tmp,usr/bin}
chmod 1777 "$bare/tmp"
install -m 755 "$file" "$bare/usr/bin/farkv"
for library in $(ldd "$file" build/Release/farkv.node | grep -o '/lib[^ ]*' | sort -u); do install -D -m 755 "$(readlink -f "$library")" "$bare$library"; done
mount -t proc proc "$bare/proc"
alone=(env -i /usr/sbin/chroot --userspec=65534:65534 "$bare" /usr/bin/farkv)
: > "$top/log"
"${alone[@]}" server --listen "127.0.0.1:$port" --memory 64mb > "$top/log" 2>&1 & server=$!
ready "$top/log" $server 'the server beside nothing'
puts_and_gets "127.0.0.1:$port" 'beside nothing' "${alone[@]}"
kill $server
wait $server || { cat "$top/log"; fail "the server beside nothing ended with $?"; }
umount "$bare/proc"
say "it runs in a root of its own and $(find "$bare" -name '*.so*' | wc -l) libraries"

# arm64, emulated, from outside of the root, which has no libraries for it.
if ! command -v qemu-aarch64 > /dev/null || ! command -v aarch64-linux-gnu-gcc > /dev/null; then
  echo 'left out: arm64 (apt-get install qemu-user libstdc++6-arm64-cross gcc-aarch64-linux-gnu libc6-dev-arm64-cross)'
  exit
fi
[ "$(node -p process.arch)" = x64 ] || exit 0
node scripts/make-binary.mjs "$top" --arch arm64
old_enough "$top/farkv-linux-arm64"
arm64=(env -i PATH=/usr/bin:/bin "TMPDIR=$top" qemu-aarch64 -L /usr/aarch64-linux-gnu "$top/farkv-linux-arm64")
[ "$("${arm64[@]}" --version)" = "$("${run[@]}" farkv --version)" ] || fail 'arm64: --version'
: > "$top/log"
"${arm64[@]}" server --listen "127.0.0.1:$port" --memory 64mb --transport tcp > "$top/log" 2>&1 & server=$!
ready "$top/log" $server 'arm64: the server'
"${run[@]}" farkv put "${connect[@]}" greeting 'to arm64' > /dev/null || fail 'arm64: put by x64'
[ "$("${arm64[@]}" get "${connect[@]}" greeting)" = 'to arm64' ] || fail 'arm64: get'
"${arm64[@]}" status "${connect[@]}" > /dev/null || fail 'arm64: status'
kill $server
wait $server || { cat "$top/log"; fail "arm64: the server ended with $?"; }
say 'arm64, emulated: a server and commands over tcp'
