/** The loops that are timed: one operation after the other, or so many at once. Keys are visited in a fixed pseudo-random order. */
import { quantile } from './statistics.js';

/** A cheap full-period walk over 0 .. count - 1 that no cache likes: an odd stride near the golden ratio (Knuth, TAOCP 3, 6.4). */
export function walk(count: number): () => number {
  let stride = Math.floor(count * 0.6180339887) | 1;
  const common = (a: number, b: number): number => (b === 0 ? a : common(b, a % b));
  while (common(stride, count) !== 1) stride += 2;
  let at = 0;
  return () => {
    at += stride;
    if (at >= count) at -= count;
    return at;
  };
}

/** Mean nanoseconds of an operation that answers at once, and now and then (a lease to be renewed, timers to be let run) by a promise. */
export async function meanNs(operations: number, operation: (index: number) => unknown, next: () => number): Promise<number> {
  const begin = process.hrtime.bigint();
  for (let i = 0; i < operations; i++) {
    const answer = operation(next());
    if (answer instanceof Promise) await answer;
  }
  return Number(process.hrtime.bigint() - begin) / operations;
}

/** Median nanoseconds of an awaited operation, one at a time. */
export async function medianNs(operations: number, operation: (index: number) => Promise<unknown>, next: () => number): Promise<number> {
  const times = new Array<number>(operations);
  for (let i = 0; i < operations; i++) {
    const begin = process.hrtime.bigint();
    await operation(next());
    times[i] = Number(process.hrtime.bigint() - begin);
  }
  return quantile(times, 0.5);
}

/** Operations a second with `outstanding` of them in flight. */
export async function rate(operations: number, outstanding: number, operation: (index: number) => Promise<unknown>, next: () => number): Promise<number> {
  let left = operations;
  const lane = async (): Promise<void> => {
    while (left > 0) {
      left--;
      await operation(next());
    }
  };
  const begin = process.hrtime.bigint();
  await Promise.all(Array.from({ length: outstanding }, lane));
  return operations / (Number(process.hrtime.bigint() - begin) / 1e9);
}

/** Items a second in batches of `size`. */
export async function batchRate(batches: number, size: number, batch: (indexes: readonly number[]) => Promise<unknown>, next: () => number): Promise<number> {
  const begin = process.hrtime.bigint();
  for (let i = 0; i < batches; i++) await batch(Array.from({ length: size }, next));
  return (batches * size) / (Number(process.hrtime.bigint() - begin) / 1e9);
}
