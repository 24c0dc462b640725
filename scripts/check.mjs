// npm run check: what changed is formatted, linted, compiled, and tested by its unit tests. For the minute between an
// edit and a commit; npm test and .ci/run decide.
//
//   npm run check [-- BASE]    default: what is not committed, or the last commit where all is
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { avaFilesOf, longTestsOf, programsOf } from './check/tests-of.mjs';
import { changedFiles } from './deep/changed.mjs';
import { git, listed, untracked } from './deep/tree.mjs';
import { avaTests, clock, root, run } from './rerun.mjs';

const begun = Date.now();
const say = (text) => process.stdout.write(`${clock(Date.now() - begun).padStart(5)}  ${text}\n`);
const chosen = process.argv[2];
const isClean = git(root, 'status', '--porcelain') === '';
const base = chosen ?? (isClean ? 'HEAD~1' : 'HEAD');
const all = [...listed(git(root, 'ls-files', '-z')), ...untracked(root)];
const changed = changedFiles(root, base);
if (changed === undefined) {
  process.stderr.write(`check: ${base} has no commit in common with HEAD; give another BASE\n`);
  process.exit(2);
}
// What was deleted is neither formatted nor run.
const files = changed.filter((file) => all.includes(file));
say(`${changed.length} files changed since ${base}`);

const failed = [];
async function step(name, body) {
  const lines = [];
  if (await body((text) => lines.push(text))) return say(`${name}: ok`);
  process.stdout.write(lines.map((text) => `       ${text}\n`).join(''));
  failed.push(name);
  return say(`${name}: FAILED`);
}
const node = (...args) => run(process.execPath, args.slice(0, -1), args.at(-1));
const ending = (pattern) => files.filter((file) => pattern.test(file));

const c = ending(/\.[ch]$/);
const linted = ending(/\.(ts|mjs|js)$/);
const formatting = async (line) => {
  const prettier = ['node_modules/prettier/bin/prettier.cjs', '--check', '--ignore-unknown', '--log-level', 'warn'];
  const one = files.length === 0 || (await node(...prettier, ...files, line));
  const two = c.length === 0 || (await run('clang-format', ['--dry-run', '-Werror', ...c], line));
  return one && two;
};
const lint = (line) => node('node_modules/eslint/bin/eslint.js', '--max-warnings', '0', ...linted, line);
const build = (line) => node('scripts/setup.mjs', line);

await Promise.all([step('formatting', formatting), step('build and types', build)]);
const ava = avaFilesOf(files, all, (file) => readFileSync(join(root, file), 'utf8'));
const programs = programsOf(files, all);
const steps = [];
if (linted.length > 0) steps.push(step(`lint of ${linted.length} files`, lint));
if (!failed.includes('build and types')) {
  const compiled = ava.map((file) => join('dist', file.replace(/ts$/, 'js')));
  const test = async (line) => (await avaTests(compiled, line)) === 'passed';
  if (ava.length > 0) steps.push(step(`${ava.length} AVA files`, test));
  const make = (line) => run('make', ['-s', '-j2', '-C', 'native', `ONLY=${programs.join(' ')}`, 'test-short'], line);
  if (programs.length > 0) steps.push(step(`C tests ${programs.join(', ')}`, make));
}
await Promise.all(steps);
const makefile = readFileSync(join(root, 'native/Makefile'), 'utf8');
for (const command of longTestsOf(files, programs, makefile)) say(`left out, it takes minutes: ${command}`);
say(failed.length === 0 ? 'all passed' : `FAILED: ${failed.join('; ')}`);
process.exit(failed.length === 0 ? 0 : 1);
