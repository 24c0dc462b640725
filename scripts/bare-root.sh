#!/usr/bin/env bash
# Runs the README's two commands as a new user would: in a minimal Debian root that has the packages that the README names, and Node.js, and
# nothing else of this machine. Needs root on Debian: sudo bash scripts/bare-root.sh [COMMAND...]
#   COMMAND...   other commands to run instead, each one argument: scripts/bare-root.sh 'npm run demo' 'npm pack'
#
# The root's release and mirrors are this machine's. What a user needs to reach the npm registry from here comes along: resolver,
# certificates, npm's configuration, proxies. The source is a clone of the last commit. All runs as a user without rights.
set -euo pipefail
name=bare-root
. "$(dirname "$0")/own-root.sh"

if is_outside; then
  make_top
  enter "$@"
fi

packages=$(sed -n 's/.*`apt-get install \([^`]*\)`.*/\1/p' README.md | head -1)
if [ $# -gt 0 ]; then commands=("$@"); else mapfile -t commands < <(sed -n 's/^\(npm \(run demo\|test\)\)\b.*/\1/p' README.md); fi
[ -n "$packages" ] && [ ${#commands[@]} -gt 0 ] || { say 'README.md has no line with its packages, or not its commands' >&2; exit 1; }

say "a minimal Debian with $packages"
make_debian "${packages// /,}"

# Node.js where it is here, with npm and with the headers that came with it.
prefix=$(node -p 'require("path").dirname(require("path").dirname(process.execPath))')
mkdir -p "$root$prefix"/{bin,lib/node_modules,include}
cp "$prefix/bin/node" "$root$prefix/bin/"
cp -a "$prefix/lib/node_modules/npm" "$root$prefix/lib/node_modules/"
for tool in npm npx; do ln -s "../lib/node_modules/npm/bin/$tool-cli.js" "$root$prefix/bin/$tool"; done
[ ! -d "$prefix/include/node" ] || cp -a "$prefix/include/node" "$root$prefix/include/"

# What reaches the registry: files at the same paths, and variables.
bring() { [ ! -f "$1" ] || install -D -m 644 "$1" "$root${2:-$1}"; }
bring /etc/resolv.conf
bring /etc/hosts
home=/home/user
chroot "$root" useradd --create-home --home-dir $home --shell /bin/bash user
bring "$(npm config get userconfig 2> /dev/null)" $home/.npmrc
bring "$(npm config get globalconfig 2> /dev/null)"
keep=(HOME=$home USER=user "PATH=$prefix/bin:/usr/local/bin:/usr/bin:/bin" LANG=C.UTF-8 SHELL=/bin/bash)
for one in NODE_EXTRA_CA_CERTS SSL_CERT_FILE npm_config_{registry,cafile,proxy,https_proxy,noproxy} {http,https,no}_proxy; do
  for variable in "$one" "${one^^}"; do
    [ -z "${!variable:-}" ] || keep+=("$variable=${!variable}")
    case $one in NODE_EXTRA_CA_CERTS | SSL_CERT_FILE | npm_config_cafile) bring "${!variable:-}" ;; esac
  done
done
bring "$(npm config get cafile 2> /dev/null)"

git clone --quiet --bare --depth 1 "file://$PWD" "$root$home/farkv.git"
[ -z "$(git status --porcelain)" ] || say 'what is not committed is left out'
chroot "$root" chown -R user:user $home

mount_own
as_user() { chroot --userspec=user:user "$root" env -i "${keep[@]}" bash -c "$1"; }
say "git clone; $(as_user 'node --version; npm --version; cc --version | head -1' | paste -sd ' ')"
as_user 'git clone --quiet ~/farkv.git ~/farkv 2> /dev/null'
for command in "${commands[@]}"; do
  say "$command"
  begun=$SECONDS
  code=0
  as_user "cd ~/farkv && $command" < /dev/null || code=$?
  if [ $code != 0 ] && [ "$command" = 'npm run demo' ]; then
    # Tests have this of their own.
    code=0
    as_user "cd ~/farkv && $command" < /dev/null && echo "unstable: $command" || code=$?
  fi
  # What an unstable test printed is kept here.
  [ ! -d "$root$home/farkv/build/unstable" ] || { mkdir -p build && cp -r "$root$home/farkv/build/unstable" build/; }
  took="$(((SECONDS - begun) / 60)) min $(((SECONDS - begun) % 60)) s"
  [ $code = 0 ] || { say "FAILED: $command ended with $code after $took" >&2; exit 1; }
  say "$command took $took"
done
