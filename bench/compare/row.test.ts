import test from 'ava';
import {
  atLeast,
  atMost,
  compare,
  interleave,
  part,
  progress,
  reached,
  rowMet,
  weakest,
  type RowResult,
} from './row.js';

const lab = { rounds: 3, signal: new AbortController().signal };

test('sides are measured in turn, after a round of each that does not count', async (t) => {
  const order: string[] = [];
  const side = (name: string, values: number[]) => ({
    name,
    run: () => Promise.resolve((order.push(name), values.shift() ?? Number.NaN)),
  });
  t.deepEqual(await interleave(lab, [side('a', [99, 1, 2, 3]), side('b', [99, 4, 5, 6])]), [
    [1, 2, 3],
    [4, 5, 6],
  ]);
  t.is(order.join(''), 'abababab');
});

test('nothing more is measured once the end was asked for', async (t) => {
  const stop = new AbortController();
  let runs = 0;
  const run = () => Promise.resolve((stop.abort(new Error('enough')), ++runs));
  await t.throwsAsync(interleave({ rounds: 3, signal: stop.signal }, [{ name: 'a', run }]), { message: 'enough' });
  t.is(runs, 1);
});

test('times are better when lower, rates when higher; ratios are those of a round', async (t) => {
  const side = (name: string, values: number[]) => ({ name, run: () => Promise.resolve(values.shift() ?? Number.NaN) });
  const time = await compare(
    lab,
    'time',
    atLeast(3, 'times lower'),
    side('farkv', [1, 10, 20, 40]),
    side('peer', [1, 40, 60, 400]),
    'time',
  );
  t.deepEqual(time.measured, { median: 4, low: 3, high: 10 });
  const rate = await compare(
    lab,
    'rate',
    atLeast(3, 'times'),
    side('farkv', [1, 40, 60, 400]),
    side('peer', [1, 10, 20, 40]),
    'rate',
  );
  t.deepEqual(rate.measured, { median: 4, low: 3, high: 10 });
  t.true(rate.met);
});

test('a goal is reached exactly at its value, unless it has to stay below', (t) => {
  t.true(reached(atLeast(3, ''), 3));
  t.false(reached(atLeast(3, ''), 2.99));
  t.true(reached(atMost(3, ''), 3));
  t.false(reached({ kind: 'below', value: 3, unit: '' }, 3));
});

test('progress is twice as good on either kind of goal', (t) => {
  t.is(progress(atLeast(3, ''), 6), 2);
  t.is(progress(atMost(3, ''), 1.5), 2);
  t.is(progress(atMost(3, ''), 0), Number.POSITIVE_INFINITY);
});

const row = (...parts: RowResult['parts']): RowResult => ({ name: 'r', theme: 'GETs', work: 'w', parts, seconds: 1 });

test('a row is met when all of its parts are, and stands for the one that is farthest behind', (t) => {
  const good = part('good', atMost(10, ''), [1], '');
  const scarce = part('scarce', atLeast(10, ''), [11], '');
  const bad = part('bad', atLeast(10, ''), [5], '');
  t.true(rowMet(row(good, scarce)));
  t.is(weakest(row(good, scarce)), scarce);
  t.false(rowMet(row(good, scarce, bad)));
  t.is(weakest(row(good, bad, scarce)), bad);
  t.false(rowMet(row()));
});
