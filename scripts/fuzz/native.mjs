// Targets of the C core: native/test/fuzz, under libFuzzer with the address and undefined-behaviour sanitizers.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

const SANITIZERS = 'fuzzer-no-link,address,undefined';
const PROGRAM = `build/native-${SANITIZERS.replaceAll(',', '-')}/fuzz`;
/** Longer inputs say nothing that several steps of a shorter one do not say. */
const INPUT_MAX = 1024;
/** Leaks are looked for where the corpus is replayed. */
const ENVIRONMENT = { ASAN_OPTIONS: 'detect_leaks=0:malloc_context_size=8:quarantine_size_mb=8' };

/** The corpus of the repository, and the one that grows from run to run. */
export const kept = (name) => `native/test/fuzz/corpus/${name}`;
export const growing = (name) => `build/fuzz/corpus/${name}`;
const filesOf = (folder) => readdirSync(folder).map((name) => join(folder, name));

export function buildNative(root, jobs) {
  if (spawnSync('clang', ['--version'], { stdio: 'ignore' }).status !== 0) {
    process.stderr.write('fuzz: missing clang with libFuzzer: apt-get install clang libclang-rt-dev llvm\n');
    process.exit(2);
  }
  const args = ['-s', '-j', String(jobs), '-C', 'native', 'fuzz', 'CC=clang', `SAN=${SANITIZERS}`];
  if (spawnSync('make', args, { cwd: root, stdio: 'inherit' }).status !== 0) process.exit(1);
}

/** Runs the program; its lines are collected. */
async function run(root, name, args) {
  const child = spawn(join(root, PROGRAM), args, {
    cwd: root,
    env: { ...process.env, ...ENVIRONMENT, FARKV_FUZZ: name },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let text = '';
  child.stderr.setEncoding('utf8').on('data', (part) => (text = (text + part).slice(-200_000)));
  const [code] = await once(child, 'close');
  return { code, text };
}

const figure = (text, pattern) => Number([...text.matchAll(pattern)].at(-1)?.[1] ?? 0);

/** Inputs that reach edges which no other does: libFuzzer's merge takes the shortest. How often an edge is passed makes
 * inputs worth growing, not keeping. */
async function keepNew(root, name) {
  const into = join(root, 'build/fuzz/merged', name);
  mkdirSync(into, { recursive: true });
  await run(root, name, ['-merge=1', '-use_counters=0', into, kept(name), growing(name)]);
  for (const path of filesOf(into)) {
    const hash = createHash('sha1').update(readFileSync(path)).digest('hex').slice(0, 12);
    copyFileSync(path, join(root, kept(name), hash));
  }
}

export function nativeTargets(root) {
  const list = readFileSync(join(root, 'native/test/fuzz/fuzz.h'), 'utf8');
  const [line = ''] = /^#define FUZZ_TARGET_LIST(?:.*\\\n)*.*$/m.exec(list) ?? [];
  const names = [...line.matchAll(/ X\((\w+)\)/g)].map(([, name]) => name);
  return names.map((name) => ({
    name,
    native: true,
    run: async ({ seconds, seed, keep }) => {
      for (const folder of [kept(name), growing(name), 'build/fuzz/failed'])
        mkdirSync(join(root, folder), { recursive: true });
      const before = filesOf(join(root, growing(name))).length;
      const { code, text } = await run(root, name, [
        `-max_total_time=${seconds}`,
        `-seed=${seed % 2 ** 31}`,
        `-max_len=${INPUT_MAX}`,
        '-timeout=60',
        '-rss_limit_mb=1024',
        '-print_final_stats=1',
        `-artifact_prefix=build/fuzz/failed/${name}-`,
        growing(name),
        kept(name),
      ]);
      const added = Math.max(0, filesOf(join(root, growing(name))).length - before);
      const input = /Test unit written to (\S+)/.exec(text)?.[1];
      if (keep && code === 0) await keepNew(root, name);
      const replay = `FARKV_TEST=${name} FARKV_FUZZ_INPUT=../${input} make -s -C native test ONLY=fuzz_corpus SAN=address,undefined`;
      const end = text.split('\n').filter((line) => /failed:|ERROR|runtime error|SUMMARY|broken invariant/.test(line));
      return {
        executions: figure(text, /number_of_executed_units: (\d+)/g),
        frames: figure(text, /^frames: (\d+)/gm),
        added,
        reached: `${figure(text, / cov: (\d+)/g)} edges`,
        failed:
          code === 0 ? undefined : `${end.join('\n')}\nreplay: ${input === undefined ? text.slice(-2000) : replay}`,
      };
    },
  }));
}
