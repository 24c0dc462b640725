/**
 * How long the requests between two looks took, from histograms that count since the start (native/base/histogram.h). A
 * bucket ends at twice its begin: within it the requests are taken to lie evenly, as Prometheus does.
 */
import { FIRST_OCTAVE, HISTOGRAM_BOUNDS, type Counted } from '../../core/exposition.js';

type Histograms = readonly Pick<Counted, 'below'>[];

const belowOf = (all: Histograms, bound: number): number => all.reduce((n, { below }) => n + (below[bound] ?? 0), 0);

/** Nanoseconds; `quantile` from 0 to 1. Undefined: there were no requests. */
export function latencyBetween(now: Histograms, before: Histograms, quantile: number): number | undefined {
  const since = Array.from({ length: HISTOGRAM_BOUNDS }, (_, i) => belowOf(now, i) - belowOf(before, i));
  const all = since.at(-1) ?? 0;
  if (all <= 0) return undefined;
  const rank = quantile * all;
  const at = since.findIndex((n) => n >= rank);
  // What is above the last bound is as long as that at least.
  if (at === HISTOGRAM_BOUNDS - 1) return 2 ** (FIRST_OCTAVE + at - 1);
  const [end, under] = [2 ** (FIRST_OCTAVE + at), since[at - 1] ?? 0];
  const begin = at === 0 ? 0 : end / 2;
  return begin + ((end - begin) * (rank - under)) / ((since[at] ?? 0) - under);
}
