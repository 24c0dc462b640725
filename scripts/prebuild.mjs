// Puts the built addon, stripped, where node-gyp-build finds it in the published package, so that `npm install farkv`
// needs no compiler on linux-x64. Run by `npm pack` and `npm publish` after setup.mjs.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import process from 'node:process';

const root = join(import.meta.dirname, '..');
// node-gyp-build reads the name's tags: any Node.js with Node-API, glibc (the C library it was linked with).
const dir = join(root, 'prebuilds', `${process.platform}-${process.arch}`);
const file = join(dir, 'farkv.napi.glibc.node');

function fail(text) {
  process.stderr.write(`prebuild: ${text}\n`);
  process.exit(1);
}

const built = join(root, 'build/Release/farkv.node');
// Users of the package cannot add what was left out here. The libraries themselves may be missing on this machine.
if (
  createRequire(import.meta.url)(built)
    .providerMissing('verbs')
    ?.startsWith('not in this build')
)
  fail(
    'the addon was built without RDMA headers, so the package would lack the verbs transport: apt-get install libibverbs-dev librdmacm-dev, then try again',
  );

rmSync(join(root, 'prebuilds'), { recursive: true, force: true });
mkdirSync(dir, { recursive: true });
copyFileSync(built, file);
const r = spawnSync('strip', ['--strip-unneeded', file], { stdio: 'inherit' });
if (r.status !== 0) fail('strip failed; install binutils');
