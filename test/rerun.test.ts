/**
 * What runs once more when it failed (scripts/rerun.mjs), with AVA and make themselves, in a project of a few tests: one
 * that fails the first time only is unstable, one that fails twice has failed, and three unstable ones are too many.
 */
import test, { type ExecutionContext } from 'ava';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { inRepository } from '../bench/repository.js';

interface Ended {
  readonly code: number;
  readonly output: string;
}

const BAD = `import test from 'ava'; test('bad', (t) => t.fail());`;
const GOOD = `import test from 'ava'; test('good', (t) => t.pass());`;
/** Fails the first time. */
const once = (body: string): string => `import test from 'ava';
import { existsSync, writeFileSync } from 'node:fs';
const second = existsSync(import.meta.filename + '.seen');
writeFileSync(import.meta.filename + '.seen', '');
test('once', (t) => { if (!second) { ${body} } t.pass(); });`;

function project(t: ExecutionContext, files: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-rerun-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  cpSync(inRepository('scripts/rerun.mjs'), join(directory, 'scripts/rerun.mjs'));
  cpSync(inRepository('scripts/rerun-files.mjs'), join(directory, 'scripts/rerun-files.mjs'));
  symlinkSync(inRepository('node_modules'), join(directory, 'node_modules'));
  const all = {
    'package.json': '{ "type": "module" }',
    'ava.config.js': `export default { files: ['dist/**/*.test.js'], cache: false };`,
    ...files,
  };
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  }
  return directory;
}

/** AVA tells a process of its own that it is one; this one is not. */
async function run(directory: string, args: readonly string[]): Promise<Ended> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('AVA_')));
  return await new Promise((resolve) => {
    execFile(process.execPath, [...args], { cwd: directory, env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr }),
    );
  });
}

const files = (t: ExecutionContext, tests: Readonly<Record<string, string>>): Promise<Ended> =>
  run(project(t, tests), ['scripts/rerun-files.mjs', ...Object.keys(tests)]);

test('a file that fails the first time only is unstable, however it failed', async (t) => {
  for (const body of [
    't.fail();',
    'process.exit(3);',
    'setImmediate(() => { throw new Error(); }); return new Promise(() => {});',
  ]) {
    const tests = { 'dist/a/b.test.js': once(body), 'dist/a/c/b.test.js': GOOD, 'dist/b.test.js': GOOD };
    const directory = project(t, tests);
    const { code, output } = await run(directory, ['scripts/rerun-files.mjs', ...Object.keys(tests)]);
    t.is(code, 0, output);
    t.deepEqual(output.match(/^once more, alone: .*$/gm), ['once more, alone: dist/a/b.test.js'], output);
    const kept = 'build/unstable/dist_a_b.test.js.txt';
    t.regex(output, new RegExp(`^unstable: dist/a/b\\.test\\.js; .*${kept}\n$`, 'm'));
    t.true(existsSync(join(directory, kept)));
  }
});

test('a file that fails twice has failed', async (t) => {
  const { code, output } = await files(t, { 'dist/a.test.js': GOOD, 'dist/b.test.js': BAD });
  t.is(code, 1);
  t.regex(output, /^failed twice: dist\/b\.test\.js$/m);
  t.notRegex(output, /unstable/);
  const alone = await files(t, { 'dist/b.test.js': BAD });
  t.is(alone.code, 1);
  t.regex(alone.output, /^failed twice: dist\/b\.test\.js$/m);
});

test('what failed for good is not hidden by what is unstable', async (t) => {
  const flaky = { 'dist/a/good.test.js': once('t.fail();') };
  const bad = (name: string, text: string) => ({ ...flaky, [`dist/${name}.test.js`]: text });
  for (const tests of [
    bad('good', BAD),
    bad('empty', `import 'ava';`),
    bad('leaves', `import 'ava'; process.reallyExit(0);`),
    bad('expected', `import test from 'ava'; test.failing('bad', (t) => t.pass());`),
  ]) {
    const { code, output } = await files(t, tests);
    t.is(code, 1, output);
  }
  const directory = project(t, flaky);
  t.is((await run(directory, ['scripts/rerun-files.mjs', ...Object.keys(flaky), 'dist/gone.test.js'])).code, 1);
});

test('three that fail the first time are too many', async (t) => {
  const names = ['dist/a.test.js', 'dist/b.test.js', 'dist/c.test.js'];
  const { code } = await files(t, Object.fromEntries(names.map((name) => [name, once('t.fail();')])));
  t.is(code, 1);
});

test('so it is with C programs', async (t) => {
  const makefile = `
test-short: run-a/good run-b/once
run-a/good: ; @echo ok good
run-b/once: ; @[ -e seen ] || { touch seen; echo 'replay: FARKV_SEED=17 FARKV_TEST=x'; echo "FAILED: ../build/native$(SAN)/test/b/once"; exit 1; }
broken: ; @echo cannot compile; exit 1
beside: run-c/once broken
run-c/once: ; @echo "FAILED: ../build/native/test/c/once"; exit 1
MAKEFLAGS += --keep-going
`;
  const script = (target: string): string => `
import { cTests, runAgain, sayUnstable } from './rerun.mjs';
const verdict = await cTests(['SAN=-x', '${target}'], console.log);
console.log(verdict, await runAgain(console.log));
sayUnstable();`;
  const directory = project(t, {
    'native/Makefile': makefile,
    'scripts/c.mjs': script('test-short'),
    'scripts/broken.mjs': script('broken'),
    'scripts/beside.mjs': script('beside'),
  });
  const { output } = await run(directory, ['scripts/c.mjs']);
  t.regex(output, /^once more true$/m);
  t.regex(output, /^unstable: b\/once \(seed 17\); /m);
  for (const name of ['broken', 'beside']) {
    const broken = await run(directory, [`scripts/${name}.mjs`]);
    t.regex(broken.output, /^failed true$/m, broken.output);
  }
});
