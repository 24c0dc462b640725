#!/usr/bin/env bash
# Builds the addon with the address sanitizer, in a folder of its own, and runs the tests of the native boundary with it.
# Leak detection is off: V8 leaves its own behind at exit. A test takes memory away: malloc then returns NULL, as it does without.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
keep() { [ ! -d "$dir/build/unstable" ] || { mkdir -p "$root/build" && cp -r "$dir/build/unstable" "$root/build/"; }; }
trap 'keep; rm -rf "$dir"' EXIT
cp -r "$root/native" "$root/binding.gyp" "$root/package.json" "$root/ava.config.js" "$dir"
cp -r "$root/dist" "$dir/dist"
mkdir "$dir/scripts"
cp "$root/scripts/rerun.mjs" "$root/scripts/rerun-files.mjs" "$dir/scripts"
ln -s "$root/node_modules" "$dir/node_modules"
cd "$dir"
prefix=$(node -p 'require("path").dirname(require("path").dirname(process.execPath))')
headers=()
[ ! -f "$prefix/include/node/node_api.h" ] || headers=("--nodedir=$prefix")
FARKV_SANITIZE=address node node_modules/node-gyp/bin/node-gyp.js rebuild --silent "${headers[@]}"
export LD_PRELOAD=$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
find dist/native -name '*.test.js' | sort | xargs node scripts/rerun-files.mjs
