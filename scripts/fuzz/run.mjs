// The fuzzer: gives the C core and the planes of the control port what hostile peers may send, and looks for inputs
// that reach new code. docs/testing.md says what is checked.
//
//   npm run fuzz -- --seconds N           all targets, for so long in all, two at a time
//   ... --frames N                        fails if there were fewer in all
//   ... --target T [--target U]           these alone
//   ... --seed S                          the first decisions of all targets; printed where it was drawn
//   ... --jobs N                          targets at a time
//   ... --keep                            adds the inputs that reach new code to the repository's corpus
//   ... --coverage                        says which lines of which files the corpora reach
//
// Inputs that reached new code stay in build/fuzz/corpus, where the next run begins. An input that fails is saved in
// build/fuzz/failed, and the command that replays it is printed. Exits with 1 if there is one.
import { randomInt } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { coverage } from './coverage.mjs';
import { nativeTargets, buildNative } from './native.mjs';
import { typescriptTargets } from './typescript.mjs';

const root = join(import.meta.dirname, '../..');
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    frames: { type: 'string' },
    target: { type: 'string', multiple: true },
    seed: { type: 'string' },
    jobs: { type: 'string', default: String(Math.min(2, availableParallelism())) },
    keep: { type: 'boolean', default: false },
    coverage: { type: 'boolean', default: false },
  },
});

function fail(text) {
  process.stderr.write(`fuzz: ${text}\n`);
  process.exit(2);
}
function number(name) {
  const value = Number(values[name]);
  if (!Number.isSafeInteger(value) || value < 1) fail(`--${name} takes a whole number`);
  return value;
}

const seed = values.seed === undefined ? randomInt(1, 2 ** 31) : number('seed');
const seconds = number('seconds');
const jobs = number('jobs');
const wanted = values.frames === undefined ? 0 : number('frames');

const setup = spawnSync(process.execPath, ['scripts/setup.mjs'], { cwd: root, stdio: 'inherit' });
if (setup.status !== 0) process.exit(1);
const all = [...nativeTargets(root), ...typescriptTargets(root)];
const chosen = values.target === undefined ? all : all.filter(({ name }) => values.target.includes(name));
if (chosen.length < (values.target?.length ?? 1)) fail(`--target is one of ${all.map(({ name }) => name).join(', ')}`);
if (chosen.some(({ native }) => native)) buildNative(root, jobs);

const total = (results, what) => results.reduce((sum, one) => sum + one[what], 0);
const say = (text) => process.stdout.write(`${text}\n`);
say(`fuzz: seed ${seed}, ${seconds} seconds, ${chosen.map(({ name }) => name).join(', ')}`);

/** Each target has the same share of the time. */
async function runAll() {
  const share = Math.max(1, Math.floor((seconds * jobs) / chosen.length));
  const waiting = [...chosen];
  const results = [];
  const lane = async () => {
    for (let target = waiting.shift(); target !== undefined; target = waiting.shift()) {
      const result = await target.run({ seconds: share, seed, keep: values.keep });
      say(
        `${target.name.padEnd(12)} ${String(result.executions).padStart(9)} executions ${String(result.frames).padStart(10)} frames ` +
          `${String(result.added).padStart(5)} new inputs  ${result.reached}${result.failed === undefined ? '' : '  FAILED'}`,
      );
      if (result.failed !== undefined) say(result.failed);
      results.push(result);
    }
  };
  await Promise.all(Array.from({ length: jobs }, lane));
  return results;
}

const begun = Date.now();
const results = await runAll();
const failed = results.filter((one) => one.failed !== undefined);
say(
  `fuzz: ${total(results, 'executions')} executions, ${total(results, 'frames')} frames, ${total(results, 'added')} new inputs, ${failed.length} failed, in ${Math.round((Date.now() - begun) / 1000)} seconds`,
);
if (values.coverage) for (const line of coverage(root, chosen, results)) say(line);
if (total(results, 'frames') < wanted) {
  say(`fuzz: fewer than ${wanted} frames`);
  process.exit(1);
}
process.exit(failed.length > 0 ? 1 : 0);
