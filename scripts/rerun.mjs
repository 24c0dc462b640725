// Runs AVA files, or C test programs, and what fails of them once more, alone. What passes then is unstable: it is said,
// in a line `unstable: NAME`, with what it printed when it failed kept in build/unstable. A run in which more than two are
// unstable has failed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { clearTimeout, setTimeout } from 'node:timers';

export const root = join(import.meta.dirname, '..');
export const UNSTABLE_MAX = 2;
/** Of this run: name and where its first output lies. */
export const unstable = [];
const running = new Set();
const LEFT_BEHIND_MS = 30_000;

export const clock = (ms) => `${Math.floor(ms / 60_000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, '0')}`;

export function stopAll() {
  for (const child of running) child.kill();
}

/** Runs it to its end, with each line of what it prints given to `line`. Resolves with whether it succeeded. */
export async function run(command, args, line) {
  const child = spawn(command, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, FORCE_COLOR: '0', TERM: 'dumb' },
  });
  running.add(child);
  // A process that a test left behind may hold the pipes; its test has ended all the same.
  child.once('exit', () => {
    const timer = setTimeout(() => [child.stdout, child.stderr].forEach((pipe) => pipe.destroy()), LEFT_BEHIND_MS);
    child.once('close', () => clearTimeout(timer));
  });
  const ended = once(child, 'close').catch((error) => [error.message]);
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', line);
  const [code] = await ended;
  running.delete(child);
  return code === 0;
}

/** The files that AVA's lines say failed; undefined where a line says that something failed, and not of which file. */
export function failedFiles(files, lines) {
  const folders = files.map((file) => file.split('/').slice(0, -1));
  let depth = 0;
  while (folders.every((parts) => parts[depth] !== undefined && parts[depth] === folders[0][depth])) depth += 1;
  const titles = files.map((file) => [
    file,
    file
      .replace(/\.test\.js$/, '')
      .split('/')
      .slice(depth)
      .join(' › '),
  ]);
  const failed = new Set();
  for (const text of lines) {
    const crossed = /^\s*[✖✘×] (.*)$/u.exec(text)?.[1];
    if (
      crossed === undefined &&
      !/^\s*(Uncaught exception|Unhandled rejection|Failed to exit when)|were pending/.test(text)
    )
      continue;
    if (crossed === 'Timed out while running tests') continue;
    const title = /^\[(?:fail|unexpected pass)\]: (.*)$/.exec(crossed ?? '')?.[1];
    const found = titles.filter(([file, prefix]) =>
      title === undefined ? text.includes(file) : title.startsWith(`${prefix} › `),
    );
    if (found.length === 0) return undefined;
    for (const [file] of found) failed.add(file);
  }
  return [...failed];
}

/** A file without tests, or one that ends while it is loaded, is none that passed: AVA says so, and may exit with 0. */
async function ava(files, line) {
  let empty = false;
  const passed = await run(process.execPath, ['node_modules/ava/entrypoints/cli.mjs', ...files], (text) => {
    empty ||= text.includes('No tests found in ');
    line(text);
  });
  return passed && !empty;
}
const make = (args, line) => run('make', ['-s', '-C', 'native', ...args], line);

/** What failed once: its name, what was printed then, and how it runs alone. */
const failedOnce = [];

/** Files at a time. A file's tests run one after another, and most of them wait most of the time. */
const LANES = 2;
/** It starts in most of a second, and the lanes are to end at the same time. */
const FILES_OF_ONE_AVA = 12;

/** Files with processes of their own take longest and come first: short ones at the end keep both lanes busy. */
const byLength = (files) => {
  const rank = (file) => ['dist/test/', 'dist/native/'].findIndex((folder) => file.startsWith(folder)) >>> 0;
  return [...files].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
};

/**
 * Runs the compiled test files; `line` has all that is printed, of a few files at a time. Resolves with 'passed', with
 * 'once more' where runAgain() is to decide, or with 'failed' where it is not known which file failed, or too many did.
 */
export async function avaTests(files, line, filesOfOne = FILES_OF_ONE_AVA) {
  const missing = files.filter((file) => !existsSync(join(root, file)));
  for (const file of missing) line(`FAILED: there is no ${file}`);
  if (files.length === 0 || missing.length > 0) return 'failed';
  const waiting = byLength(files);
  const size = Math.min(filesOfOne, Math.ceil(files.length / LANES));
  const failed = [];
  let known = true;
  const lane = async () => {
    while (waiting.length > 0) {
      const some = waiting.splice(0, size);
      const lines = [];
      const passed = await ava(some, (text) => lines.push(text));
      lines.forEach((text) => line(text));
      if (passed) continue;
      // Of one file alone AVA leaves the prefix out.
      const found = some.length === 1 ? some : (failedFiles(some, lines) ?? []);
      known &&= found.length > 0;
      failed.push(...found.map((name) => ({ name, lines })));
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return verdict(known, failed, (file) => ava([file], line));
}

/** The same of C programs: `args` are those of make, which prints `FAILED: PROGRAM`. */
export async function cTests(args, line) {
  const lines = [];
  const passed = await make(args, (text) => {
    lines.push(text);
    line(text);
  });
  const stopped = lines.flatMap((text) => /^make.*\*\*\* \[(?:[^\]]*: )?([^\]:]+)\] /.exec(text)?.[1] ?? []);
  const variables = args.filter((one) => one.includes('='));
  const failed = lines.flatMap((text) => /^FAILED: .*\/test\/(\S+)$/.exec(text)?.[1] ?? []);
  // make goes on after what does not compile.
  if (stopped.some((target) => !failed.includes(target.replace(/^run-/, '')))) return 'failed';
  return verdict(
    passed || failed.length > 0,
    failed.map((name) => ({ name, lines })),
    (name) => make([...variables, `run-${name}`], line),
  );
}

/** `known`: each failure is one of a name in `failed`. */
function verdict(known, failed, alone) {
  // A machine or a build that is broken fails many: no use in running them all again.
  if (!known || failed.length > UNSTABLE_MAX) return 'failed';
  for (const { name, lines } of failed) failedOnce.push({ name, lines, alone: () => alone(name) });
  return failed.length === 0 ? 'passed' : 'once more';
}

/** Runs what failed once more, when nothing else runs. Resolves with whether all passed, and not too many of them. */
export async function runAgain(say) {
  let stable = 0;
  for (const { name, lines, alone } of failedOnce.splice(0)) {
    say(`once more, alone: ${name}`);
    if (await alone()) keep(name, lines);
    else {
      say(`failed twice: ${name}`);
      stable += 1;
    }
  }
  return stable === 0 && unstable.length <= UNSTABLE_MAX;
}

function keep(name, lines) {
  const output = `${lines.join('\n')}\n`;
  const kept = join('build/unstable', `${name.replaceAll('/', '_')}.txt`);
  mkdirSync(join(root, 'build/unstable'), { recursive: true });
  writeFileSync(join(root, kept), output);
  unstable.push({ name, kept, seed: /FARKV_SEED=(\d+)/.exec(output)?.[1] });
}

/** The last lines of a run. */
export function sayUnstable() {
  for (const { name, kept, seed } of unstable) {
    const from = seed === undefined ? '' : ` (seed ${seed})`;
    process.stdout.write(`unstable: ${name}${from}; what it printed when it failed: ${kept}\n`);
  }
}
