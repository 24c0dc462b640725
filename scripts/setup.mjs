// Makes a clone ready: dependencies, the native addon, the compiled TypeScript; does only what is missing or stale.
// Run by `npm test` and `npm run demo` before they start.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';

const root = join(import.meta.dirname, '..');
const say = (text) => process.stderr.write(`setup: ${text}\n`);

function fail(text) {
  process.stderr.write(`setup: ${text}\n`);
  process.exit(1);
}

/** Shows what the command printed only when it fails. */
async function run(command, args) {
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text));
  const [code, signal] = await once(child, 'close').catch((error) => [error.message]);
  if (code === 0) return;
  process.stderr.write(output);
  fail(
    `\`${command} ${args.join(' ')}\` failed (${signal ?? (typeof code === 'number' ? `exit code ${code}` : code)})`,
  );
}

function newest(dir, keep) {
  let at = 0;
  for (const e of readdirSync(join(root, dir), { withFileTypes: true, recursive: true })) {
    // a renamed file keeps its mtime
    if (e.isFile() && keep.test(e.name)) at = Math.max(at, statSync(join(e.parentPath, e.name)).ctimeMs);
  }
  return at;
}
const mtime = (path) => (existsSync(join(root, path)) ? statSync(join(root, path)).mtimeMs : 0);

const [major, minor] = process.versions.node.split('.').map(Number);
// As `engines` of package.json: require('farkv') needs a Node.js whose require takes ES modules.
if (major < 20 || major === 21 || (major === 20 && minor < 19) || (major === 22 && minor < 12))
  fail(`Node.js 20.19, 22.12 or later is needed (not 21); this is ${process.versions.node}`);
if (process.platform !== 'linux') fail('farkv runs on Linux (memfd seals, eventfd, epoll)');

const needs = [
  ['cc', ['--version'], 'a C compiler: apt-get install gcc (Debian, Ubuntu), dnf install gcc (Fedora)'],
  ['make', ['--version'], 'make: apt-get install make'],
  ['python3', ['--version'], 'python3 (node-gyp runs on it): apt-get install python3'],
];
// Whether the addon gets the verbs provider, said by the file that decides it; undefined without a compiler.
const macros = spawnSync(
  'cc',
  ['-E', '-dM', '-include', join(root, 'native/fabric/verbs/built.h'), '-x', 'c', '/dev/null'],
  { encoding: 'utf8' },
);
if (macros.error === undefined && macros.status !== 0)
  fail(`the C compiler does not take native/fabric/verbs/built.h: ${macros.stderr}`);
const verbs = macros.status === 0 ? String(/FARKV_HAVE_VERBS/.test(macros.stdout)) : undefined;
const verbsStamp = join(root, 'build/verbs');
const headersChanged = () =>
  verbs !== undefined && (!existsSync(verbsStamp) || readFileSync(verbsStamp, 'utf8') !== verbs);
const addonStale =
  mtime('build/Release/farkv.node') < Math.max(newest('native', /\.(c|h|gypi)$/), mtime('binding.gyp')) ||
  headersChanged();
if (addonStale) {
  for (const [tool, args, text] of needs) {
    if (spawnSync(tool, args, { stdio: 'ignore' }).status !== 0) fail(`missing ${text}`);
  }
  const probe = spawnSync('cc', ['-x', 'c', '-fsyntax-only', '-'], {
    input: '#include <sys/epoll.h>\n#include <pthread.h>\n',
  });
  if (probe.status !== 0) fail('missing the C library headers: apt-get install libc6-dev');
}

mkdirSync(join(root, 'build'), { recursive: true });
if (mtime('node_modules/.package-lock.json') < mtime('package-lock.json')) {
  say('installing dependencies');
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  // `npm ci` refuses a lock file that lacks the optional binaries of other platforms, as one is that was made at a
  // registry without them. `npm install` takes the same versions from it.
  const ci = spawnSync('npm', ['ci', ...quiet], { cwd: root, stdio: 'ignore' });
  if (ci.status !== 0) await run('npm', ['install', '--no-save', ...quiet]);
}

async function buildAddon() {
  say('building the native addon (node-gyp)');
  // The headers that came with this Node.js serve, where they did; else node-gyp downloads them.
  const prefix = dirname(dirname(process.execPath));
  const headers = existsSync(join(prefix, 'include/node/node_api.h')) ? [`--nodedir=${prefix}`] : [];
  // Configured anew each time: the list of sources in binding.gyp is read then.
  await run(process.execPath, ['node_modules/node-gyp/bin/node-gyp.js', 'configure', '--silent', ...headers]);
  // make does not see that headers came: what they are for is compiled again.
  if (headersChanged()) rmSync(join(root, 'build/Release/obj.target'), { recursive: true, force: true });
  await run(process.execPath, ['node_modules/node-gyp/bin/node-gyp.js', 'build', '--silent', '--jobs=max', ...headers]);
  writeFileSync(verbsStamp, verbs);
}

async function compileTypeScript() {
  say('compiling TypeScript');
  if (mtime('dist/.tsbuildinfo') === 0) rmSync(join(root, 'dist'), { recursive: true, force: true });
  await run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', '.']);
  await run(process.execPath, ['scripts/commonjs.mjs']);
  await run(process.execPath, ['scripts/bundle.mjs']);
  writeFileSync(join(root, 'dist/.built'), '');
}

const { include } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
const sources = Math.max(
  ...include.map((d) => newest(d, /\.ts$/)),
  mtime('tsconfig.json'),
  mtime('scripts/commonjs.mjs'),
  mtime('scripts/bundle.mjs'),
  // Newer than the last build: tsc was run by itself, and has written the one that imports the package.
  mtime('dist/core/msgpackr.js'),
);
await Promise.all([addonStale && buildAddon(), mtime('dist/.built') < sources && compileTypeScript()]);
