#!/usr/bin/env bash
# Makes a folder that runs farkv anywhere with glibc: the package as npm would publish it, what it depends on, and the Node.js of
# scripts/binary-node.mjs. Other than the one-file executable it unpacks nothing, so a container needs no folder for that. The Debian package and the container's root are made of it: bash scripts/make-tree.sh FOLDER [x64|arm64]
# Default: for this machine's processor.
#
#   usr/bin/farkv        a link to the command, whose first line names the Node.js below: no shell and no PATH is needed
#   usr/lib/farkv        package.json, dist, prebuilds, node_modules, node
#   usr/share            manual pages, completions
set -euo pipefail
[ $# = 1 ] || [ $# = 2 ] || { echo 'usage: scripts/make-tree.sh FOLDER [x64|arm64]' >&2; exit 2; }
arch=${2:-$(node -p process.arch)}
case $arch in
  "$(node -p process.arch)") prefix= ;;
  x64) prefix=x86_64-linux-gnu- ;;
  arm64) prefix=aarch64-linux-gnu- ;;
  *) echo "make-tree: $arch: a processor that farkv has addons for: x64, arm64" >&2; exit 2 ;;
esac
mkdir -p "$1"
tree=$(cd "$1" && pwd)
[ -z "$(ls -A "$tree")" ] || { echo "make-tree: $tree is not empty" >&2; exit 1; }
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# As prepack of package.json, but for the addons of other machines.
node scripts/setup.mjs
node scripts/prebuild.mjs --arch "$arch"
tarball=$(npm pack --silent --ignore-scripts --pack-destination "$work" | tail -1)
tar xzf "$work/$tarball" -C "$work"
lib=$tree/usr/lib/farkv
mkdir -p "$lib" "$tree/usr/bin"
# Without what is for people, compilers and type checkers.
for part in package.json dist server bench; do cp -r "$work/package/$part" "$lib/"; done
addon=prebuilds/linux-$arch
mkdir "$lib/prebuilds"
cp -r "$work/package/$addon" "$lib/$addon"
find "$lib" \( -name '*.d.ts' -o -name '*.d.cts' -o -name '*.md' \) -delete
find "$lib" -type d -empty -delete

# The versions of package-lock.json, as they were tested.
npm ls --omit=dev --all --parseable | tail -n +2 | sed "s|^$PWD/||" > "$work/modules"
while read -r module; do
  mkdir -p "$lib/$module"
  # A module's own modules have lines of their own.
  tar c -C "$module" --exclude=./node_modules . | tar x -C "$lib/$module"
done < "$work/modules"
find "$lib/node_modules" -type f \( -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' -o -name '*.tsbuildinfo' \
  -o -name '*.cpp' -o -name '*.gyp*' -o -name '*.musl.node' -o -name '.npmignore' \) -delete

# None of the modules has a part for one processor alone: the addon is the only one.
foreign=$(find "$lib/node_modules" \( -name '*.node' -o -name '*.so' \) -type f)
[ -z "$foreign" ] || { echo "make-tree: for this machine's processor alone: $foreign" >&2; exit 1; }
install -m 755 "$(node scripts/binary-node.mjs "$arch")/bin/node" "$lib/node"
"${prefix}strip" --strip-unneeded "$lib/node"

main=dist/server/cli/main.js
sed -i '1s|.*|#!/usr/lib/farkv/node|' "$lib/$main"
find "$lib" -type f -exec chmod 644 {} + -o -type d -exec chmod 755 {} +
chmod 755 "$lib/node" "$lib/$main"
ln -s "../lib/farkv/$main" "$tree/usr/bin/farkv"

node scripts/make-manual.mjs "$tree/usr/share"
