import test from 'ava';
import { medianInterval, quantile, ratios, spread } from './statistics.js';

test('quantiles interpolate between neighbours and do not change their input', (t) => {
  const values = [4, 1, 3, 2];
  t.is(quantile(values, 0.5), 2.5);
  t.is(quantile(values, 0), 1);
  t.is(quantile(values, 1), 4);
  t.deepEqual(values, [4, 1, 3, 2]);
  t.throws(() => quantile([], 0.5), { instanceOf: RangeError });
});

test('numbers are sorted as numbers', (t) => {
  t.deepEqual(spread([10, 9, 100]), { median: 10, low: 9, high: 100 });
});

test('ratios are taken round by round', (t) => {
  t.deepEqual(ratios([2, 8], [1, 2]), [2, 4]);
});

test('the interval of a median holds it, repeats, and shrinks with more values', (t) => {
  const values = (count: number): number[] => Array.from({ length: count }, (_, i) => ((i * 37) % count) / count);
  const [low, high] = medianInterval(values(20));
  t.true(low < 0.475 && high > 0.475);
  t.deepEqual(medianInterval(values(20)), [low, high]);
  const [lowOfMany, highOfMany] = medianInterval(values(400));
  t.true(highOfMany - lowOfMany < (high - low) / 2);
  t.deepEqual(medianInterval([1, 1, 1]), [1, 1]);
});
