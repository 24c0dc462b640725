import test from 'ava';
import { HISTOGRAM_BOUNDS } from '../../core/exposition.js';
import { latencyBetween } from './latency-between.js';

/** Requests that took so many nanoseconds, as the data plane counts them. */
const counted = (...took: readonly number[]): { readonly below: readonly number[] } => ({
  below: Array.from({ length: HISTOGRAM_BOUNDS }, (_, i) =>
    i === HISTOGRAM_BOUNDS - 1 ? took.length : took.filter((ns) => ns < 2 ** (10 + i)).length,
  ),
});
const EMPTY = { below: [] };

test('what was slow before the last look is not in the latency since', (t) => {
  const slow = Array<number>(1000).fill(1e9);
  const fast = Array<number>(100).fill(3000);
  const p99 = latencyBetween([counted(...slow, ...fast)], [counted(...slow)], 0.99);
  t.true(p99 !== undefined && p99 > 2048 && p99 <= 4096, String(p99));
});

test('quantiles lie where requests are, those of all workers together', (t) => {
  const fast = counted(...Array<number>(75).fill(500));
  const slow = counted(...Array<number>(25).fill(5000));
  t.is(latencyBetween([fast, slow], [EMPTY, EMPTY], 0.375), 512);
  t.is(latencyBetween([fast, slow], [], 0.75), 1024);
  t.is(latencyBetween([fast, slow], [], 0.875), 6144);
});

test('without requests there is no latency, and one above all bounds is as long as the last at least', (t) => {
  t.is(latencyBetween([EMPTY], [EMPTY], 0.5), undefined);
  t.is(latencyBetween([counted(5000)], [counted(5000)], 0.5), undefined);
  t.is(latencyBetween([], [], 0.5), undefined);
  t.is(latencyBetween([counted(1e12)], [], 0.5), 2 ** 33);
});
