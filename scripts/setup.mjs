// Makes a clone ready: dependencies, the native addon, the compiled TypeScript; does only what is missing or stale.
// Run by `npm test` and `npm run demo` before they start.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';

const root = join(import.meta.dirname, '..');
const say = (text) => process.stderr.write(`setup: ${text}\n`);

function fail(text) {
  process.stderr.write(`setup: ${text}\n`);
  process.exit(1);
}

function run(command, args) {
  const r = spawnSync(command, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  if (r.status === 0) return;
  process.stderr.write(`${r.stdout ?? ''}${r.stderr ?? ''}`);
  fail(`\`${command} ${args.join(' ')}\` failed (${r.error?.message ?? `exit code ${r.status}`})`);
}

function newest(dir, keep) {
  let at = 0;
  for (const e of readdirSync(join(root, dir), { withFileTypes: true, recursive: true })) {
    if (e.isFile() && keep.test(e.name)) at = Math.max(at, statSync(join(e.parentPath, e.name)).mtimeMs);
  }
  return at;
}
const mtime = (path) => (existsSync(join(root, path)) ? statSync(join(root, path)).mtimeMs : 0);

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) fail(`Node.js 20.19 or later is needed; this is ${process.versions.node}`);
if (process.platform !== 'linux') fail('farkv runs on Linux (memfd seals, eventfd, epoll)');

const needs = [
  ['cc', ['--version'], 'a C compiler: apt-get install gcc (Debian, Ubuntu), dnf install gcc (Fedora)'],
  ['make', ['--version'], 'make: apt-get install make'],
  ['python3', ['--version'], 'python3 (node-gyp runs on it): apt-get install python3'],
];
const addonStale = mtime('build/Release/farkv.node') < Math.max(newest('native', /\.(c|h)$/), mtime('binding.gyp'));
if (addonStale) {
  for (const [tool, args, text] of needs) {
    if (spawnSync(tool, args, { stdio: 'ignore' }).status !== 0) fail(`missing ${text}`);
  }
  const probe = spawnSync('cc', ['-x', 'c', '-fsyntax-only', '-'], { input: '#include <sys/epoll.h>\n#include <pthread.h>\n' });
  if (probe.status !== 0) fail('missing the C library headers: apt-get install libc6-dev');
}

mkdirSync(join(root, 'build'), { recursive: true });
if (mtime('node_modules/.package-lock.json') < mtime('package-lock.json')) {
  say('installing dependencies');
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  // `npm ci` refuses a lock file that lacks the optional binaries of other platforms, as one is that was made at a registry
  // without them. `npm install` takes the same versions from it.
  const ci = spawnSync('npm', ['ci', ...quiet], { cwd: root, stdio: 'ignore' });
  if (ci.status !== 0) run('npm', ['install', '--no-save', ...quiet]);
}
if (addonStale) {
  say('building the native addon (node-gyp)');
  // The headers that came with this Node.js serve, where they did; else node-gyp downloads them.
  const prefix = dirname(dirname(process.execPath));
  const headers = existsSync(join(prefix, 'include/node/node_api.h')) ? [`--nodedir=${prefix}`] : [];
  // Configured anew each time: the list of sources in binding.gyp is read then.
  run(process.execPath, ['node_modules/node-gyp/bin/node-gyp.js', 'configure', '--silent', ...headers]);
  run(process.execPath, ['node_modules/node-gyp/bin/node-gyp.js', 'build', '--silent', ...headers]);
}
const sources = Math.max(...['core', 'server', 'client', 'native', 'bench', 'test'].map((d) => newest(d, /\.ts$/)), mtime('tsconfig.json'));
if (mtime('dist/.built') < sources) {
  say('compiling TypeScript');
  if (mtime('dist/.tsbuildinfo') === 0) rmSync(join(root, 'dist'), { recursive: true, force: true });
  run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', '.']);
  writeFileSync(join(root, 'dist/.built'), '');
}
