/** Medians and spreads: what a comparison says of its rounds. Pure. */
import { Random } from '../ycsb/random.js';

export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/**
 * The p-quantile (0 to 1) of values that are sorted, by linear interpolation between neighbours (type 7 of Hyndman and
 * Fan, 1996).
 */
export function quantileOfSorted(sorted: ArrayLike<number>, p: number): number {
  if (sorted.length === 0) throw new RangeError('a quantile of nothing');
  const at = (sorted.length - 1) * p;
  const below = sorted[Math.floor(at)] ?? 0;
  const above = sorted[Math.ceil(at)] ?? below;
  return below + (above - below) * (at - Math.floor(at));
}

export function quantile(values: ArrayLike<number>, p: number): number {
  return quantileOfSorted(Float64Array.from(values).sort(), p);
}

/** Median with the smallest and largest value: with five to ten rounds nothing finer is honest. */
export function spread(values: readonly number[]): Spread {
  return { median: quantile(values, 0.5), low: Math.min(...values), high: Math.max(...values) };
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** Ratios of two contestants round by round, so that what drifts with the machine cancels. */
export function ratios(a: readonly number[], b: readonly number[]): number[] {
  return a.map((x, i) => x / (b[i] ?? Number.NaN));
}

const RESAMPLES = 2000;

/**
 * Where the median lies with 95 %, by the bootstrap (Efron, 1979): of so many samples of the values, drawn with
 * replacement, that part of the medians. The same values give the same interval.
 */
export function medianInterval(values: readonly number[]): [low: number, high: number] {
  const random = new Random(1);
  const medians = Array.from({ length: RESAMPLES }, () =>
    median(values.map(() => values[random.below(values.length)] ?? Number.NaN)),
  );
  return [quantile(medians, 0.025), quantile(medians, 0.975)];
}
