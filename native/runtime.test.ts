/** Runtimes and bundles where the addon cannot be loaded: what a program is told. */
import test from 'ava';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { BUNDLED, NO_ADDONS, packageRoot, PERMISSIONS, whyNotLoaded } from './runtime.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** What a program prints that imports farkv where `before` was run first. */
function imported(before: string, load: string): string {
  const program = `${before}; ${load}.then(() => console.log('loaded'), ({ code, message }) => console.log(code, message));`;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--no-warnings', '-e', program], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  return status === 0 ? stdout.trim() : stderr;
}

const BUN = "Object.defineProperty(process, 'versions', { value: { ...process.versions, bun: '1.3.0' } })";
const DENO = "globalThis.Deno = { version: { deno: '2.5.0' } }";

for (const load of [
  "import('farkv')",
  "import('farkv/keyv')",
  "import('farkv/server')",
  "(async () => require('farkv'))()",
]) {
  test(`${load} says under Bun and Deno that Node.js is needed`, (t) => {
    const needed = (name: string): string =>
      `ERR_ADDON farkv runs on Node.js 20.19, 22.12 or later, and this is ${name}: run this program with node`;
    t.is(imported('', load), 'loaded');
    t.is(imported(BUN, load), needed('Bun 1.3.0'));
    t.is(imported(DENO, load), needed('Deno 2.5.0'));
  });
}

test('under Bun and Deno the command says so in one line, and an error has no stack to speak of', (t) => {
  for (const [before, name, lines] of [
    [BUN, 'Bun 1.3.0', 0],
    [DENO, 'Deno 2.5.0', 1],
  ] as const) {
    const line = `farkv runs on Node.js 20.19, 22.12 or later, and this is ${name}: run this program with node`;
    const pretend = ['--import', `data:text/javascript,${encodeURIComponent(before)}`];
    const run = (...words: readonly string[]) => {
      const { status, stdout, stderr } = spawnSync(process.execPath, [...pretend, ...words], {
        cwd: ROOT,
        encoding: 'utf8',
      });
      return { status, stdout, stderr };
    };
    for (const words of [['--version'], ['--help'], ['server'], ['get', 'key']])
      t.deepEqual(run('dist/server/cli/main.js', ...words), { status: 1, stdout: '', stderr: `farkv: ${line}\n` });
    const uncaught = run('--input-type=module', '-e', "import 'farkv'");
    t.is(uncaught.status, 1);
    t.true(uncaught.stderr.includes(line));
    t.is(uncaught.stderr.match(/^ +at /gm)?.length ?? 0, lines, uncaught.stderr);
  }
});

test('a module is in farkv, in a bundle of another package, or in one of none', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-bundle-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const bundle = pathToFileURL(join(directory, 'deep/bundle.js')).href;
  t.is(`${packageRoot(import.meta.url)}/`, ROOT);
  const bundled = { code: 'ERR_ADDON', message: BUNDLED };
  for (const url of [undefined, bundle, 'file:///bundle.js']) t.throws(() => packageRoot(url), bundled);
  writeFileSync(join(directory, 'package.json'), '{"name":"app"}');
  t.throws(() => packageRoot(bundle), bundled);
  writeFileSync(join(directory, 'package.json'), '{"name":"farkv"}');
  t.is(packageRoot(bundle), directory);
  t.regex(BUNDLED, /external: \['farkv'\]/);
});

test('require() and import give the same client', (t) => {
  const program = `import('farkv').then((module) => {
    const required = require('farkv');
    console.log(required.FarkvError === module.FarkvError, typeof required.connect);
  });`;
  const { stdout } = spawnSync(process.execPath, ['-e', program], { cwd: ROOT, encoding: 'utf8' });
  t.is(stdout, 'true function\n');
});

test('what keeps Node.js from loading the addon is said, with what to do', (t) => {
  const run = (...options: string[]): string => {
    const program = `import('farkv').then(() => console.log('loaded'), ({ code, message }) => console.log(code, message));`;
    const words = ['--no-warnings', ...options, '--input-type=module', '-e', program];
    return spawnSync(process.execPath, words, { cwd: ROOT, encoding: 'utf8' }).stdout.trim();
  };
  t.is(run('--no-addons'), `ERR_ADDON ${NO_ADDONS}`);
  const flag = process.allowedNodeEnvironmentFlags.has('--permission') ? '--permission' : '--experimental-permission';
  t.is(run(flag, '--allow-fs-read=*'), `ERR_ADDON ${PERMISSIONS}`);
  t.is(whyNotLoaded(new Error('wrong ELF class')), undefined);
});
