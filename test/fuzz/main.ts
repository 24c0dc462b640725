/**
 * One target of the fuzzer: `npm run fuzz` starts it. Inputs are chosen as in any fuzzer that is guided by coverage: one
 * that reaches blocks which none had reached is kept, and others are made from it. V8 counts for a batch of inputs, so
 * each batch with something new runs again, one input after the other, to find whose it is.
 *
 *   node dist/test/fuzz/main.js TARGET --seconds N --seed S --begin FOLDER --into FOLDER --failed FOLDER
 *   node dist/test/fuzz/main.js TARGET --input FILE       replays one
 *   node dist/test/fuzz/main.js --names                   prints the targets
 *
 * Prints one line of JSON at the end. Exit codes: 0 nothing is broken, 1 something is.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Random } from '../support/random.js';
import { Coverage } from './coverage.js';
import { decodeInput, encodeInput, framesOf, type Input } from './input.js';
import { Mutator } from './mutator.js';
import type { FuzzTarget, Rig } from './target.js';
import { TARGETS } from './targets.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    names: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    begin: { type: 'string', multiple: true, default: [] },
    into: { type: 'string' },
    failed: { type: 'string', default: 'build/fuzz/failed' },
    input: { type: 'string' },
  },
});

/** A batch takes about so long. */
const BATCH_MS = 200;
/** An input that takes longer than this has stopped something. */
const HANGS_MS = 60_000;
const HEAP_MAX = 1 << 30;
/** Bytes of an input that is worth keeping from run to run. */
const KEPT_MAX = 8192;

/** What is wrong, or undefined. */
async function failureOf(rig: Rig, input: Input): Promise<unknown> {
  const hangs = setTimeout(() => {
    process.stderr.write('an input does not end\n');
    process.exit(1);
  }, HANGS_MS);
  try {
    await rig.run(input);
    return stray;
  } catch (error) {
    return error;
  } finally {
    clearTimeout(hangs);
  }
}

/** An error that nobody waited for. */
let stray: unknown;
process.on('unhandledRejection', (error) => (stray ??= error));
process.on('uncaughtException', (error) => (stray ??= error));

const describe = (failure: unknown): string =>
  failure instanceof Error ? (failure.stack ?? failure.message) : JSON.stringify(failure);

const hashOf = (bytes: Uint8Array): string => createHash('sha1').update(bytes).digest('hex').slice(0, 12);

function save(folder: string, input: Input): string {
  const bytes = encodeInput(input);
  mkdirSync(folder, { recursive: true });
  const path = join(folder, hashOf(bytes));
  writeFileSync(path, bytes);
  return path;
}

class Fuzzer {
  readonly #target: FuzzTarget;
  readonly #rig: Rig;
  readonly #random = new Random(Number(values.seed));
  readonly #coverage = new Coverage();
  readonly #population: Input[] = [];
  readonly #mutator: Mutator;
  executions = 0;
  frames = 0;
  added = 0;
  failed: { readonly why: string; readonly path: string } | undefined;

  constructor(target: FuzzTarget, rig: Rig) {
    this.#target = target;
    this.#rig = rig;
    this.#mutator = new Mutator(this.#random, target.first);
  }

  get blocks(): Coverage['files'] {
    return this.#coverage.files;
  }

  async run(): Promise<void> {
    const known = values.begin
      .filter((folder) => existsSync(folder))
      .flatMap((folder) => readdirSync(folder).map((name) => decodeInput(readFileSync(join(folder, name)))));
    for (const input of [...this.#target.first, ...known]) {
      await this.#execute(input);
      this.#population.push(input);
    }
    this.#coverage.take();
    const end = performance.now() + 1000 * Number(values.seconds);
    while (performance.now() < end && this.failed === undefined) await this.#batch(end);
  }

  async #batch(end: number): Promise<void> {
    const until = Math.min(end, performance.now() + BATCH_MS);
    const batch: Input[] = [];
    while (performance.now() < until && this.failed === undefined) {
      const input = this.#mutator.mutate(this.#random.pick(this.#population), this.#random.pick(this.#population));
      batch.push(input);
      await this.#execute(input);
    }
    const fresh = new Set(this.#coverage.take().fresh);
    for (const input of batch) {
      if (fresh.size === 0 || this.failed !== undefined) break;
      await this.#execute(input);
      const reached = [...this.#coverage.take().all].filter((block) => fresh.has(block));
      if (reached.length === 0) continue;
      for (const block of reached) fresh.delete(block);
      this.#population.push(input);
      this.added += 1;
      if (values.into !== undefined && encodeInput(input).length <= KEPT_MAX) save(values.into, input);
    }
    if (process.memoryUsage().heapUsed > HEAP_MAX) throw new Error('memory grows with inputs');
  }

  async #execute(input: Input): Promise<void> {
    this.executions += 1;
    this.frames += framesOf(input);
    const failure = await failureOf(this.#rig, input);
    if (failure === undefined) return;
    this.failed = { why: describe(failure), path: save(values.failed, input) };
  }
}

if (values.names) {
  process.stdout.write(`${TARGETS.map(({ name }) => name).join('\n')}\n`);
  process.exit(0);
}
const target = TARGETS.find(({ name }) => name === positionals[0]);
if (target === undefined) throw new Error(`no target ${positionals[0] ?? ''}`);
const rig = await target.open();
if (values.input !== undefined) {
  const failure = await failureOf(rig, decodeInput(readFileSync(values.input)));
  process.stdout.write(failure === undefined ? 'nothing is broken\n' : `${describe(failure)}\n`);
  process.exit(failure === undefined ? 0 : 1);
}
const fuzzer = new Fuzzer(target, rig);
await fuzzer.run();
const { executions, frames, added, failed, blocks } = fuzzer;
process.stdout.write(`${JSON.stringify({ executions, frames, added, failed, blocks })}\n`);
process.exit(failed === undefined ? 0 : 1);
