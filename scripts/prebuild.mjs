// Puts the built addon, stripped, where node-gyp-build finds it in the published package, so that `npm install farkv` needs
// no compiler on linux-x64. Run by `npm pack` and `npm publish` after setup.mjs.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

const root = join(import.meta.dirname, '..');
// node-gyp-build reads the name's tags: any Node.js with Node-API, glibc (the C library it was linked with).
const dir = join(root, 'prebuilds', `${process.platform}-${process.arch}`);
const file = join(dir, 'farkv.napi.glibc.node');

rmSync(join(root, 'prebuilds'), { recursive: true, force: true });
mkdirSync(dir, { recursive: true });
copyFileSync(join(root, 'build/Release/farkv.node'), file);
const r = spawnSync('strip', ['--strip-unneeded', file], { stdio: 'inherit' });
if (r.status !== 0) {
  process.stderr.write('prebuild: strip failed; install binutils\n');
  process.exit(1);
}
