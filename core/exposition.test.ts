import test from 'ava';
import { exposition, histogram, HISTOGRAM_BOUNDS, type Family, Timing } from './exposition.js';

const FAMILIES: readonly Family[] = [
  { name: 'farkv_things_total', help: 'Things, of a \\ and a\nline', type: 'counter', samples: [{ value: 3 }] },
  {
    name: 'farkv_level',
    help: 'Level',
    type: 'gauge',
    samples: [
      { labels: { of: 'a "b"\\\n', and: '' }, value: 0.5 },
      { labels: { of: 'c' }, value: Infinity },
    ],
  },
  { name: 'farkv_none', help: 'Nothing', type: 'gauge', samples: [] },
];

test('families are written as Prometheus reads them, whatever labels have in them', (t) => {
  t.is(
    exposition(FAMILIES),
    [
      '# HELP farkv_things_total Things, of a \\\\ and a\\nline',
      '# TYPE farkv_things_total counter',
      'farkv_things_total 3',
      '# HELP farkv_level Level',
      '# TYPE farkv_level gauge',
      'farkv_level{of="a \\"b\\"\\\\\\n",and=""} 0.5',
      'farkv_level{of="c"} +Inf',
      '# HELP farkv_none Nothing',
      '# TYPE farkv_none gauge',
      '',
    ].join('\n'),
  );
  t.is(exposition([]), '');
});

test('families of one name are one, with the samples of all', (t) => {
  const of = (cluster: string, value: number): Family => ({
    ...FAMILIES[0]!,
    samples: [{ labels: { cluster }, value }],
  });
  t.deepEqual(
    exposition([of('a', 1), FAMILIES[2]!, of('b', 2)])
      .split('\n')
      .slice(1, 4),
    ['# TYPE farkv_things_total counter', 'farkv_things_total{cluster="a"} 1', 'farkv_things_total{cluster="b"} 2'],
  );
});

test('OpenMetrics names a counter without _total, and its samples with it', (t) => {
  t.regex(
    exposition(FAMILIES, true),
    /^# HELP farkv_things Things.*\n# TYPE farkv_things counter\nfarkv_things_total 3\n/,
  );
});

test('histograms are in seconds, cumulative, and the sums of several', (t) => {
  const below = (...counts: number[]): number[] => counts;
  const samples = histogram(
    [
      { count: 3, sum: 5000, below: below(1, 2, 3) },
      { count: 0, sum: 0, below: [] },
      { count: 10, sum: 45_000, below: below(0, 4, 10) },
    ],
    { op: 'put' },
  );
  t.deepEqual(samples, [
    { suffix: '_bucket', labels: { op: 'put', le: '0.000001024' }, value: 1 },
    { suffix: '_bucket', labels: { op: 'put', le: '0.000002048' }, value: 6 },
    { suffix: '_bucket', labels: { op: 'put', le: '+Inf' }, value: 13 },
    { suffix: '_sum', labels: { op: 'put' }, value: 0.00005 },
    { suffix: '_count', labels: { op: 'put' }, value: 13 },
  ]);
  t.deepEqual(histogram([]), []);
  const none = histogram([{ count: 0, sum: 0, below: [] }], { op: 'get' });
  t.deepEqual(
    none.map(({ suffix, value }) => [suffix, value]),
    [...Array.from({ length: HISTOGRAM_BOUNDS }, () => ['_bucket', 0]), ['_sum', 0], ['_count', 0]],
    'nothing was counted',
  );
  t.deepEqual([none[0]?.labels, none[HISTOGRAM_BOUNDS - 1]?.labels?.le], [{ op: 'get', le: '0.000001024' }, '+Inf']);
  const timing = new Timing();
  t.is(histogram([timing]).at(-1)?.value, 0);
  for (const ns of [1000, 1024, 5_000_000_000_000]) timing.add(ns);
  t.like(timing, { count: 3, sum: 5_000_000_002_024 });
  t.deepEqual([timing.below[0], timing.below[1], timing.below[23], timing.below[24]], [1, 2, 2, 3]);
});
