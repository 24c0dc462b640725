/**
 * A process that makes calls with all variants of the SDK in turns of some milliseconds, in an order that is drawn for
 * each group of turns, and answers with the processor time of a call in each turn. This file is the parent's side and,
 * started as a program, the child's.
 */
import { fileURLToPath } from 'node:url';
import { Random } from '../ycsb/random.js';
import type { CallLoop, CallName } from './call-loops.js';
import { loadVariant, VARIANTS, type Variant } from './client-variants.js';
import { LineProcess } from './line-process.js';
import { median } from './statistics.js';

const SELF = fileURLToPath(import.meta.url);
const TURN_MS = 4;
const GROUPS = 100;
/** Until V8 has compiled what it compiles. */
const WARM_UP_MS = 300;

/** Nanoseconds of a call by variant, group by group. */
export type Turns = Readonly<Record<Variant, readonly number[]>>;

export async function turnsOf(call: CallName, address: string, key: string, seed: number): Promise<Turns> {
  const child = new LineProcess(process.execPath, [SELF, call, address, key, String(seed)]);
  try {
    return JSON.parse(await child.heard()) as Turns;
  } finally {
    await child.stop();
  }
}

/** User and system time of all threads of this process: the kernel accounts the running one up to now. */
function processorNs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

async function nsOfCall(loop: CallLoop, calls: number): Promise<number> {
  const before = processorNs();
  await loop(calls);
  return (processorNs() - before) / calls;
}

async function warmUp(loop: CallLoop): Promise<void> {
  const until = performance.now() + WARM_UP_MS;
  while (performance.now() < until) await loop(500);
}

async function child(call: CallName, address: string, key: string, seed: number): Promise<void> {
  const random = new Random(seed);
  const drawn = (): Variant[] =>
    VARIANTS.map((variant) => ({ variant, at: random.below(2 ** 30) }))
      .sort((a, b) => a.at - b.at)
      .map(({ variant }) => variant);
  const opened = new Map<Variant, { readonly loop: CallLoop; readonly close: () => Promise<void> }>();
  // What is loaded and compiled first may lie better in memory, so that is drawn too.
  for (const variant of drawn()) {
    const { openLoops } = await loadVariant(variant);
    const open = await openLoops(address, key, variant === 'timed');
    opened.set(variant, { loop: open.loops[call], close: () => open.close() });
  }
  const loopOf = (variant: Variant): CallLoop => opened.get(variant)?.loop ?? (() => Promise.resolve());
  for (let i = 0; i < 2; i++) for (const variant of drawn()) await warmUp(loopOf(variant));
  const some: number[] = [];
  for (let i = 0; i < 50; i++) some.push(await nsOfCall(loopOf('bare'), 500));
  const calls = Math.ceil((TURN_MS * 1e6) / median(some));
  const turns: Record<Variant, number[]> = { bare: [], again: [], guarded: [], timed: [] };
  for (let group = 0; group < GROUPS; group++)
    for (const variant of drawn()) turns[variant].push(await nsOfCall(loopOf(variant), calls));
  for (const { close } of opened.values()) await close();
  process.stdout.write(`${JSON.stringify(turns)}\n`);
}

if (process.argv[1] === SELF) {
  const [call, address, key, seed] = process.argv.slice(2);
  await child(call as CallName, address ?? '', key ?? '', Number(seed));
}
