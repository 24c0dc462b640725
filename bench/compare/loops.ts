/**
 * The loops that are timed: one operation after the other, or so many at once. What an operation is given was drawn
 * before, so that the draw is not timed; the draws are uniform and the same in each run.
 */
import { Random } from '../ycsb/random.js';
import { quantile } from './statistics.js';

/** Draws of `count` of the items, uniformly; another sequence with each call, the same ones in the next run. */
export function drawing<T>(items: readonly T[], seed = 1): (count: number) => T[] {
  const random = new Random(seed);
  return (count) => Array.from({ length: count }, () => items[random.below(items.length)] as T);
}

/** The numbers of the items that `drawing` with this seed draws from so many. */
export function drawingNumbers(items: number, seed = 1): (count: number) => Uint32Array {
  const random = new Random(seed);
  return (count) => Uint32Array.from({ length: count }, () => random.below(items));
}

/** The same in batches of `size`. */
export function batches<T>(draw: (count: number) => T[], count: number, size: number): T[][] {
  return Array.from({ length: count }, () => draw(size));
}

const now = (): number => performance.now() * 1e6;

/**
 * Mean nanoseconds of an operation that answers at once, and now and then (a lease to be renewed, timers to be let run)
 * by a promise.
 */
export async function meanNs<T>(items: readonly T[], operation: (item: T) => unknown): Promise<number> {
  const begin = now();
  for (const item of items) {
    const answer = operation(item);
    if (answer instanceof Promise) await answer;
  }
  return (now() - begin) / items.length;
}

/**
 * Nanoseconds of each awaited operation, with `outstanding` of them in flight. None is begun once the limit is over:
 * then there are fewer.
 */
export async function latenciesNs<T>(
  items: readonly T[],
  operation: (item: T) => unknown,
  outstanding = 1,
  limitMs = Infinity,
): Promise<Float64Array> {
  const times = new Float64Array(items.length);
  const done = await inLanes(items, outstanding, limitMs, async (item, i) => {
    const begin = process.hrtime.bigint();
    await operation(item);
    times[i] = Number(process.hrtime.bigint() - begin);
  });
  return times.subarray(0, done);
}

export async function medianNs<T>(
  items: readonly T[],
  operation: (item: T) => unknown,
  outstanding = 1,
  limitMs = Infinity,
): Promise<number> {
  return quantile(await latenciesNs(items, operation, outstanding, limitMs), 0.5);
}

/** Operations a second with `outstanding` of them in flight; none is begun once the limit is over. */
export async function rate<T>(
  items: readonly T[],
  outstanding: number,
  operation: (item: T, at: number) => unknown,
  limitMs = Infinity,
): Promise<number> {
  const begin = now();
  const done = await inLanes(items, outstanding, limitMs, operation);
  return (done * 1e9) / (now() - begin);
}

/** How many were done. */
async function inLanes<T>(
  items: readonly T[],
  lanes: number,
  limitMs: number,
  operation: (item: T, at: number) => unknown,
): Promise<number> {
  const until = limitMs === Infinity ? Infinity : performance.now() + limitMs;
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length && (until === Infinity || performance.now() < until)) {
      const at = next++;
      await operation(items[at] as T, at);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return next;
}

/** Items a second, in batches one after the other. */
export async function batchRate<T>(
  all: readonly (readonly T[])[],
  operation: (batch: readonly T[]) => Promise<unknown>,
): Promise<number> {
  const begin = now();
  let items = 0;
  for (const batch of all) {
    await operation(batch);
    items += batch.length;
  }
  return (items * 1e9) / (now() - begin);
}
