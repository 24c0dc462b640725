// Runs AVA files, or C test programs, and what fails of them once more, alone. What passes then is unstable: it is said,
// in a line `unstable: NAME`, with what it printed when it failed kept in build/unstable. A run in which more than two are
// unstable has failed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';

export const root = join(import.meta.dirname, '..');
export const UNSTABLE_MAX = 2;
/** Of this run: name and where its first output lies. */
export const unstable = [];
const running = new Set();

export const clock = (ms) => `${Math.floor(ms / 60_000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, '0')}`;

export function stopAll() {
  for (const child of running) child.kill();
}

/** Runs it to its end, with each line of what it prints given to `line`. Resolves with whether it succeeded. */
export async function run(command, args, line) {
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  const ended = once(child, 'close').catch((error) => [error.message]);
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', line);
  const [code] = await ended;
  running.delete(child);
  return code === 0;
}

/** The files that lines of AVA's reporter say failed: by a title's prefix, or by name where a process ended. */
export function failedFiles(files, lines) {
  // A title's prefix is the path below the folder that all files have in common, which may be any folder above it.
  const titles = files.map((file) => {
    const parts = file.replace(/\.test\.js$/, '').split('/');
    return { file, tails: parts.map((_, i) => parts.slice(i).join(' › ')) };
  });
  const failed = new Set();
  for (const text of lines) {
    for (const file of files)
      if (/✖|✘|Uncaught exception|Unhandled rejection|pending/.test(text) && text.includes(file)) failed.add(file);
    const title = /^\s*[✘✖] \[fail\]: (.*)$/.exec(text)?.[1];
    if (title === undefined) continue;
    const found = titles
      .flatMap(({ file, tails }) => tails.map((tail) => ({ file, tail })))
      .filter(({ tail }) => title.startsWith(`${tail} › `) || title === tail)
      .sort((a, b) => b.tail.length - a.tail.length)[0];
    if (found !== undefined) failed.add(found.file);
  }
  return [...failed];
}

const ava = (files, line) => run(process.execPath, ['node_modules/ava/entrypoints/cli.mjs', ...files], line);
const make = (args, line) => run('make', ['-s', '-C', 'native', ...args], line);

/** What failed once: its name, what was printed then, and how it runs alone. */
const failedOnce = [];

/**
 * Runs the compiled test files; `line` has all that is printed. Resolves with 'passed', with 'once more' where runAgain()
 * is to decide, or with 'failed' where it is not known which file failed, or too many did.
 */
export async function avaTests(files, line) {
  const lines = [];
  const passed = await ava(files, (text) => {
    lines.push(text);
    line(text);
  });
  // Of one file alone AVA leaves the prefix out.
  const failed = files.length === 1 ? files : failedFiles(files, lines);
  return verdict(passed, failed, lines, (file) => ava([file], line));
}

/** The same of C programs: `args` are those of make, which prints `FAILED: PROGRAM`. */
export async function cTests(args, line) {
  const lines = [];
  const passed = await make(args, (text) => {
    lines.push(text);
    line(text);
  });
  const variables = args.filter((one) => one.includes('='));
  const failed = lines.flatMap((text) => /^FAILED: .*\/test\/(\S+)$/.exec(text)?.[1] ?? []);
  return verdict(passed, failed, lines, (name) => make([...variables, `run-${name}`], line));
}

function verdict(passed, failed, lines, alone) {
  if (passed) return 'passed';
  // A machine or a build that is broken fails many: no use in running them all again.
  if (failed.length === 0 || failed.length > UNSTABLE_MAX) return 'failed';
  for (const name of failed) failedOnce.push({ name, lines, alone: () => alone(name) });
  return 'once more';
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
