# Sourced by scripts that run something in a root file system of its own (bare-root.sh, check-binary.sh, check-deb.sh, check-image.sh, check-unit.sh), which set `name` to their
# own name before. All lies in namespaces of its own: neither a mount nor a process outlives the script, and its files are deleted at its end.
#
#   make_top            outside: `top`, a folder for the script's files
#   enter ARGUMENT...   outside: runs the script again inside, with the same top, and ends
#   is_outside          whether enter has not been called
#   enter_with_deb [FILE]  outside: enters with this Debian package, else with one made now; inside: nothing
#   make_debian A,B     inside: $root, a minimal Debian of this machine's release with these packages
#   mount_own           inside: /proc, /dev/shm and /dev/pts (terminals) of $root
say() { echo "$name: $*"; }
fail() { say "FAILED: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || { say 'needs root, for it makes a root file system' >&2; exit 1; }
cd "$(dirname "${BASH_SOURCE[0]}")/.."
top=${FARKV_TOP:-}
root=$top/root

is_outside() { [ -z "${FARKV_TOP:-}" ]; }

make_top() {
  top=$(mktemp -d "/var/tmp/farkv-$name.XXXXXX")
  root=$top/root
  trap 'kill -KILL "${inside:-}" 2> /dev/null || true; wait; rm -rf --one-file-system "$top"' EXIT
  trap 'exit 143' INT TERM
}

enter() {
  # The first process of the namespaces dies with unshare, and all others with it.
  FARKV_TOP=$top unshare --mount --pid --fork --kill-child --mount-proc bash "scripts/$name.sh" "$@" &
  inside=$!
  wait $inside
  exit
}

enter_with_deb() {
  is_outside || return 0
  make_top
  enter "${1:-$(bash scripts/make-deb.sh "$top")}"
}

make_debian() {
  local release sources lists='deb $(REPO_URI) $(RELEASE) $(COMPONENT)'
  command -v mmdebstrap > /dev/null || { apt-get -qq update; DEBIAN_FRONTEND=noninteractive apt-get -y -qq --no-install-recommends install mmdebstrap > /dev/null; }
  release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  sources=$(apt-get indextargets --format "$lists" 'Identifier: Packages' 'Origin: Debian')
  if [ -z "$sources" ]; then   # this machine has no lists yet
    apt-get -qq update
    sources=$(apt-get indextargets --format "$lists" 'Identifier: Packages' 'Origin: Debian')
  fi
  # One line for each of this machine's architectures, which are the same line.
  sources=$(awk '!seen[$0]++' <<< "$sources")
  # How this machine's apt reaches its mirrors.
  apt-config dump | grep -E '^Acquire::(http|https|Check-Valid-Until|Check-Date|Retries|Languages)\b.* "[^"]+";$' > "$top/apt.conf" || true
  # Mirrors may not answer at once.
  make_once "$@" || { rm -rf --one-file-system "$root"; sleep 10; make_once "$@"; }
}
make_once() {
  mmdebstrap --quiet --mode=root --variant=minbase --aptopt="$top/apt.conf" --include="$1" "$release" "$root" - <<< "$sources"
}

mount_own() {
  mount -t proc proc "$root/proc"
  mkdir -p "$root"/dev/{shm,pts}
  mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
  mount -t devpts -o mode=620,ptmxmode=666,nosuid,noexec devpts "$root/dev/pts"
}
