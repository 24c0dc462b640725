// npm test: sets the clone up, then runs the C tests and the TypeScript tests, and says meanwhile how far it is. What
// fails runs once more, alone (scripts/rerun.mjs).
// The long tests are left to npm run test:all: AVA files named *.long.test.ts, and the C programs in native/Makefile's
// LONG.
//
//   node scripts/test.mjs           all but the long ones: five minutes on two processors, with all set-up
//   node scripts/test.mjs --all     these and the long ones
//   node scripts/test.mjs --rest    the long ones alone, after `npm test`
//
// The C tests need nothing of Node.js: they are built and run while the rest is set up, so that two processors are busy
// all the time. A test that passes is counted; all other output of a test is shown whole. A failed set-up ends all,
// another failure nothing.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { clearInterval, setInterval } from 'node:timers';
import { avaTests, clock, cTests, root, run, runAgain, sayUnstable, stopAll } from './rerun.mjs';

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

const say = (text) => process.stdout.write(`${clock(Date.now() - begun).padStart(5)}  ${text}\n`);
const failed = [];
const leftOut = [];

/** Says how it ended ('passed', 'failed', or 'once more' where a test is to run again), and what it took. */
async function part(name, body) {
  const from = Date.now();
  const verdict = await body();
  if (verdict === 'failed') failed.push(name);
  const words = { passed: 'done', failed: 'FAILED', 'once more': 'a test failed, and will run once more' };
  say(`${name}: ${words[verdict]} after ${clock(Date.now() - from)}`);
  return verdict;
}

async function setUp() {
  const print = (text) => say(text.replace(/^setup: /, 'set-up: '));
  const body = async () => ((await run(process.execPath, ['scripts/setup.mjs'], print)) ? 'passed' : 'failed');
  return (await part('set-up', body)) === 'passed';
}

async function nativeTests() {
  say('C tests: building them');
  const target = short && long ? 'test' : short ? 'test-short' : 'test-long';
  const print = (text) => {
    if (text.startsWith('left out: ')) leftOut.push(text.slice('left out: '.length));
    say(`C tests: ${text.replace(/^ok /, '')}`);
  };
  // Two at a time: most of them wait most of the time.
  await part('C tests', () => cTests(['-j2', target], print));
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
  const print = (text) => {
    const left = /^\s*ℹ left out: (.*)$/.exec(text)?.[1];
    if (left !== undefined && !leftOut.includes(left)) leftOut.push(left);
    if (/^\s*✔ /.test(text)) {
      passed += 1;
      quiet = true;
    } else if (!quiet || !/^\s*(ℹ |$)/.test(text)) {
      // What a test logs follows its title; that of one that passed is left out, as it is.
      quiet = false;
      process.stdout.write(`${text}\n`);
    }
  };
  await part('TypeScript tests', () => avaTests(files, print));
  clearInterval(timer);
}

say(`${short ? 'all tests' : 'the long tests'}${short && !long ? ' but the long ones' : ''}`);
const ready = setUp();
const besideIt = nativeTests();
if (await ready) await Promise.all([besideIt, typescriptTests()]);
else {
  stopAll();
  await besideIt;
}

if (!(await runAgain(say))) failed.push('what ran once more');
const took = clock(Date.now() - begun);
if (failed.length > 0) say(`FAILED: ${failed.join(', ')}; ${took} minutes in all`);
else say(`all passed, in ${took} minutes`);
if (!long) leftOut.unshift('long tests (npm run test:all)');
leftOut.push('tests over RDMA verbs (npm run test:rdma: in a virtual machine, root on Debian; test/rdma/README.md)');
process.stdout.write(`Left out: ${leftOut.join('; ')}\n`);
sayUnstable();
process.exit(failed.length > 0 ? 1 : 0);
