import test from 'ava';
import { afterPuts as status } from '../../test/support/status-after-puts.js';
import { SAMPLE_MS, SAMPLES } from './bounds.js';
import { comparable, History } from './history.js';
import { CHARTS, type Sample } from './page/figures.js';
import { viewOf } from './view.js';

const figure = (sample: Sample | undefined, name: string): number | null | undefined =>
  sample?.[1 + Object.values<readonly string[]>(CHARTS).flat().indexOf(name)];
const times = (history: History): number[] => history.samples.map(([atMs]) => atMs);

test('a sample has the rates since the one before, however often there was a look', (t) => {
  const history = new History();
  for (let s = 0; s <= 20; s++) history.take({ atMs: s * 1000, status: status(s <= 5 ? s * 100 : 500) });
  t.deepEqual(times(history), [SAMPLE_MS, 2 * SAMPLE_MS]);
  const [loaded, idle] = history.samples;
  t.is(figure(loaded, 'put'), 50);
  t.is(figure(loaded, 'GETs of clients'), 50);
  t.is(figure(loaded, 'READs per GET'), 2);
  t.is(figure(idle, 'put'), 0);
  t.is(figure(idle, 'READs per GET'), null, 'of no GETs there is none');
});

test('an hour is kept, in the order of time, also where the clock was set back', (t) => {
  const history = new History();
  for (let i = 0; i <= SAMPLES + 10; i++) history.take({ atMs: i * SAMPLE_MS, status: status(i) });
  t.is(history.samples.length, SAMPLES);
  t.is(times(history)[0], 11 * SAMPLE_MS);
  t.true(JSON.stringify(history.samples).length < 100 << 10);
  const back = 100.5 * SAMPLE_MS;
  for (const atMs of [back, back + SAMPLE_MS]) history.take({ atMs, status: status(9999) });
  t.is(times(history).at(-2), 100 * SAMPLE_MS);
  t.is(times(history).at(-1), back + SAMPLE_MS);
});

test('what the next look is compared with is all that it needs, and nothing per shard', (t) => {
  const [before, now] = [
    { atMs: 0, status: status(100, 4096) },
    { atMs: 1000, status: status(300, 4096) },
  ];
  t.true(JSON.stringify(comparable(before)).length < 2000);
  t.deepEqual(viewOf(now, comparable(before)), viewOf(now, before));
  t.is(viewOf(now, comparable(before)).rates.put, 200);
});
