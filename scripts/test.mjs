// npm test: sets the clone up, then runs the C tests, lint and the TypeScript tests, and says meanwhile how far it is.
// The long tests are left to npm run test:all: AVA files named *.long.test.ts, and the C programs in native/Makefile's
// LONG.
//
//   node scripts/test.mjs           all but the long ones: five minutes on two processors, with all set-up
//   node scripts/test.mjs --all     these and the long ones
//   node scripts/test.mjs --rest    the long ones alone, after `npm test`
//
// The C tests need nothing of Node.js: they are built and run while the rest is set up, and lint follows them, so that
// two processors are busy all the time. A test that passes is counted; all other output of a test is shown whole. A
// failed set-up ends all, another failure nothing.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { clearInterval, setInterval } from 'node:timers';

const root = join(import.meta.dirname, '..');
// The last one counts: npm run test:all -- --rest.
const choices = process.argv.slice(2);
const choice = choices.at(-1) ?? '--short';
if (choices.some((one) => !['--all', '--rest'].includes(one))) {
  process.stderr.write('test: unknown arguments; --all runs the long tests too, --rest only these\n');
  process.exit(2);
}
const short = choice !== '--rest';
const long = choice !== '--short';
const begun = Date.now();

const clock = (ms) => `${Math.floor(ms / 60_000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, '0')}`;
const say = (text) => process.stdout.write(`${clock(Date.now() - begun).padStart(5)}  ${text}\n`);
const failed = [];
const running = new Set();
const leftOut = [];

/** Runs it to its end, with each line of what it prints given to `line`. Resolves with whether it succeeded. */
async function run(command, args, line) {
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  const ended = once(child, 'close').catch((error) => [error.message]);
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', line);
  const [code] = await ended;
  running.delete(child);
  return code === 0;
}

async function part(name, command, args, line) {
  const from = Date.now();
  const passed = await run(command, args, line);
  if (!passed) failed.push(name);
  say(`${name}: ${passed ? 'done' : 'FAILED'} after ${clock(Date.now() - from)}`);
  return passed;
}

async function setUp() {
  return await part('set-up', process.execPath, ['scripts/setup.mjs'], (text) =>
    say(text.replace(/^setup: /, 'set-up: ')),
  );
}

async function cTests() {
  say('C tests: building them');
  const targets = short && long ? ['test'] : [short ? 'test-short' : 'test-long'];
  // One at a time, for the set-up and the TypeScript tests run beside them.
  await part('C tests', 'make', ['-s', '-C', 'native', ...targets], (text) => {
    if (text.startsWith('left out: ')) leftOut.push(text.slice('left out: '.length));
    say(`C tests: ${text.replace(/^ok /, '')}`);
  });
}

async function lint() {
  say('lint');
  const print = (text) => process.stdout.write(`${text}\n`);
  const prettier = ['node_modules/prettier/bin/prettier.cjs', '--check', '--log-level', 'warn', '.'];
  await part('formatting', process.execPath, prettier, print);
  await part('lint', process.execPath, ['node_modules/eslint/bin/eslint.js', '.', '--max-warnings', '0'], print);
}

/** The compiled test files: those that have a source, for dist/ may have more. */
function testFiles() {
  const { include } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
  return include
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((path) => join(folder, path)))
    .filter((path) => path.endsWith('.test.ts') && (path.endsWith('.long.test.ts') ? long : short))
    .map((path) => join('dist', path.replace(/ts$/, 'js')));
}

async function typescriptTests() {
  const files = testFiles();
  let passed = 0;
  let quiet = true;
  say(`TypeScript tests: ${files.length} files`);
  const timer = setInterval(() => say(`TypeScript tests: ${passed} have passed so far`), 15_000);
  await part('TypeScript tests', process.execPath, ['node_modules/ava/entrypoints/cli.mjs', ...files], (text) => {
    if (/^\s*✔ /.test(text)) {
      passed += 1;
      quiet = true;
    } else if (!quiet || !/^\s*(ℹ |$)/.test(text)) {
      // What a test logs follows its title; that of one that passed is left out, as it is.
      quiet = false;
      process.stdout.write(`${text}\n`);
    }
  });
  clearInterval(timer);
}

say(`${short ? 'all tests' : 'the long tests'}${short && !long ? ' but the long ones' : ''}`);
const ready = setUp();
const besideIt = cTests();
if (await ready) await Promise.all([besideIt.then(short ? lint : undefined), typescriptTests()]);
else {
  for (const child of running) child.kill();
  await besideIt;
}

const took = clock(Date.now() - begun);
if (failed.length > 0) say(`FAILED: ${failed.join(', ')}; ${took} minutes in all`);
else say(`all passed, in ${took} minutes`);
if (!long) leftOut.unshift('long tests (npm run test:all)');
leftOut.push('tests over RDMA verbs (npm run test:rdma: in a virtual machine, root on Debian; test/rdma/README.md)');
process.stdout.write(`Left out: ${leftOut.join('; ')}\n`);
process.exit(failed.length > 0 ? 1 : 0);
