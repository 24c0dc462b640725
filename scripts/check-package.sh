#!/usr/bin/env bash
# Installs the package, as npm would publish it, in an empty project and uses it: once where there is no compiler (the prebuilt binary
# serves) and once where there is no prebuilt binary (it is compiled).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$root"
npm pack --silent --pack-destination "$dir" > "$dir/pack.log"
tarball=$dir/$(tail -1 "$dir/pack.log")

# What it is made of is told with it.
tar tzf "$tarball" > "$dir/files"
grep -qx package/sbom.cdx.json "$dir/files"

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
project() {
  mkdir "$dir/$1"
  cd "$dir/$1"
  npm init -y > /dev/null 2>&1
  npm install --silent --ignore-scripts "$tarball" 2> /dev/null
  cp "$dir/use.mjs" .
}

# 1. No compiler: a PATH with Node.js and a shell only.
project prebuilt
mkdir "$dir/bin"
for tool in node npm npx sh env; do ln -s "$(command -v "$tool")" "$dir/bin/$tool"; done
echo 'without a compiler:'
PATH=$dir/bin node use.mjs
(cd node_modules/farkv && PATH=$dir/bin npm run --silent install)
PATH=$dir/bin npx farkv --version

# 2. No prebuilt binary: compiled by the install script.
project compiled
rm -r node_modules/farkv/prebuilds
if node use.mjs > "$dir/refused" 2>&1; then echo 'an addon was loaded where there is none'; exit 1; fi
grep -q 'npm rebuild farkv' "$dir/refused"
(cd node_modules/farkv && npm run --silent install > /dev/null 2>&1)
echo 'compiled at installation:'
node use.mjs
