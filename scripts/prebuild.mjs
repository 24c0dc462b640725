// Puts addons, stripped, where node-gyp-build finds them in the published package, so that `npm install farkv` needs no
// compiler on linux-x64 and linux-arm64 with glibc 2.28, the oldest that Node.js 20 runs with. Run by `npm pack` and
// `npm publish` after setup.mjs. This machine's is the one that was built; the other comes of a cross compiler.
import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

const TARGETS = { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' };
const GLIBC = [2, 28];
const root = join(import.meta.dirname, '..');

function fail(text) {
  process.stderr.write(`prebuild: ${text}\n`);
  process.exit(1);
}

function run(command, args, options = {}) {
  const r = spawnSync(command, args, { encoding: 'utf8', ...options });
  if (r.status === 0) return r.stdout;
  return fail(`${command} ${args.join(' ')}: ${r.error?.message ?? r.stderr}`);
}

/** What is linked here asks for the newest version that this machine has of a function: native/node/old-glibc.h. */
function checkSymbols(file) {
  const newer = [...run('readelf', ['--wide', '--dyn-syms', file]).matchAll(/(\w+)@GLIBC_(\d+)\.(\d+)/g)].filter(
    ([, , major, minor]) => Number(major) > GLIBC[0] || Number(minor) > GLIBC[1],
  );
  if (newer.length > 0)
    fail(`${file} needs a glibc later than ${GLIBC.join('.')}: ${newer.map(([text]) => text).join(', ')}`);
}

function keep(built, arch, strip) {
  checkSymbols(built);
  // node-gyp-build reads the name's tags: any Node.js with Node-API, glibc (the C library it was linked with).
  const dir = join(root, 'prebuilds', `linux-${arch}`);
  const file = join(dir, 'farkv.napi.glibc.node');
  mkdirSync(dir, { recursive: true });
  copyFileSync(built, file);
  run(strip, ['--strip-unneeded', file]);
}

function cross(arch, tools) {
  const work = mkdtempSync(join(tmpdir(), 'farkv-prebuild-'));
  process.on('exit', () => rmSync(work, { recursive: true }));
  for (const part of ['package.json', 'binding.gyp', 'native'])
    cpSync(join(root, part), join(work, part), { recursive: true });
  // RDMA's headers are the same for all, and no libraries of it are linked.
  const env = { ...process.env, CC: `${tools}-gcc`, CFLAGS: '-idirafter /usr/include', JOBS: 'max' };
  run(process.execPath, [join(root, 'node_modules/node-gyp/bin/node-gyp.js'), 'rebuild', `--arch=${arch}`], {
    cwd: work,
    env,
  });
  keep(join(work, 'build/Release/farkv.node'), arch, `${tools}-strip`);
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
keep(built, process.arch, 'strip');
for (const [arch, tools] of Object.entries(TARGETS)) {
  if (arch === process.arch) continue;
  const compiler = spawnSync(`${tools}-gcc`, ['--version']).status === 0;
  const text = `the addon for ${arch} needs a cross compiler: apt-get install gcc-${tools} libc6-dev-${arch}-cross`;
  if (compiler) cross(arch, tools);
  else if (process.env.npm_command === 'publish') fail(text);
  else process.stderr.write(`prebuild: left out: ${text}\n`);
}
