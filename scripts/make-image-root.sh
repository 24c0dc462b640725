#!/usr/bin/env bash
# Makes the root file system of a container: bash scripts/make-image-root.sh FOLDER, as root. Farkv with its Node.js, the libraries that these
# are linked with, those of RDMA where this machine has them, and a user; no shell. FARKV_TREE: what scripts/make-tree.sh has made already.
# Run by deploy/docker/Dockerfile and by scripts/check-image.sh.
set -euo pipefail
[ $# = 1 ] || { echo 'usage: scripts/make-image-root.sh FOLDER' >&2; exit 2; }
mkdir -p "$1"
root=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
if [ -n "${FARKV_TREE:-}" ]; then cp -a "$FARKV_TREE/." "$root/"; else bash scripts/make-tree.sh "$root"; fi
rm -rf "$root/usr/share"

# Under the path by which it is asked for, whatever links lead there here.
bring() { [ -e "$root$1" ] || install -D -m 755 "$(readlink -f "$1")" "$root$1"; }
linked() { ldd "$1" 2> /dev/null | grep -o '/[^ ]*' || true; }
while read -r program; do
  for library in $(linked "$program"); do bring "$library"; done
done < <(find "$root/usr/lib/farkv" \( -name node -o -name '*.node' \) -type f)
# These are opened at run time; the drivers of cards by libibverbs, which finds them by its own path and by /etc/libibverbs.d.
drivers=/usr/lib/$(gcc -print-multiarch)/libibverbs
for opened in $(ldconfig -p | grep -oE '/[^ ]*/lib(ibverbs|rdmacm)\.so\.1$' || true) $(ls -d "$drivers"/*.so 2> /dev/null || true); do
  bring "$opened"
  for library in $(linked "$opened"); do bring "$library"; done
done
mkdir -p "$root"/{etc,tmp,proc,sys,dev}
[ ! -d /etc/libibverbs.d ] || cp -r /etc/libibverbs.d "$root/etc/"
echo 'farkv:x:7400:7400:farkv:/var/lib/farkv:/usr/sbin/nologin' > "$root/etc/passwd"
echo 'farkv:x:7400:' > "$root/etc/group"
echo 'hosts: files dns' > "$root/etc/nsswitch.conf"
chmod 1777 "$root/tmp"
install -d -o 7400 -g 7400 -m 700 "$root/var/lib/farkv"
