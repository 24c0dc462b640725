import test from 'ava';
import { PERCENTILES, type Curve } from './curves.js';
import { lines, spreadText, toJson, type Environment } from './report.js';
import { reportPage } from './report-page.js';
import { atLeast, atMost, part, type RowResult } from './row.js';

const where: Environment = {
  machine: '2 x <CPU>',
  versions: 'Linux 6',
  providers: 'shm',
  run: 'r',
  command: "npm run bench:compare -- --only 'a&b'",
  date: 'd',
};
const rows: readonly RowResult[] = [
  {
    name: 'one',
    theme: 'GETs',
    work: 'one figure',
    seconds: 1,
    parts: [part('the "figure"', atLeast(3, 'times'), [4, 5, 6], 'farkv 1 us, lmdb 5 us')],
  },
  {
    name: 'several',
    theme: 'Memory',
    work: 'several figures',
    seconds: 2,
    parts: [
      part('a', atMost(80, 'B'), [70], 'x'),
      part('b', atMost(1, 'ns'), [0, -2, 2], 'y'),
      part('c', atMost(80, 'B'), [8000], 'z'),
    ],
  },
  { name: 'none', theme: 'PUTs', work: 'no figure', seconds: 3, parts: [], problem: 'it did not <start>' },
];
const curves: readonly Curve[] = ['farkv shm', 'farkv tcp', 'ioredis', 'memcached', 'lmdb'].map((name, i) => ({
  name,
  ns: PERCENTILES.map((p) => (300 * (i + 1)) / (1 - p)),
}));

test('the JSON has one entry for each row; one of several figures has its weakest, and all of them as parts', (t) => {
  const entries = JSON.parse(toJson(rows, where)) as Record<string, unknown>[];
  t.deepEqual(entries[0], {
    name: 'one',
    goal: 'at least 3.00 times',
    measured: 5,
    spread: [4, 6],
    met: true,
    detail: 'farkv 1 us, lmdb 5 us',
    seconds: 1,
    run: '2 x <CPU>; Linux 6; r; d',
  });
  t.like(entries[1], {
    name: 'several',
    goal: 'at most 80.00 B',
    measured: 8000,
    spread: [8000, 8000],
    met: false,
    parts: [
      { name: 'a', met: true },
      { name: 'b', measured: 0, met: true },
      { name: 'c', met: false },
    ],
  });
  t.deepEqual(entries[2], {
    name: 'none',
    goal: 'no figure',
    measured: null,
    spread: null,
    met: false,
    detail: 'it did not <start>',
    seconds: 3,
    run: '2 x <CPU>; Linux 6; r; d',
  });
  t.is(entries.length, 3);
});

test('the text says what was met, what was missed and what was not measured', (t) => {
  t.regex(
    lines(rows[0]!),
    /met +the "figure"\n +goal at least 3\.00 times; measured 5\.00 \(4\.00 to 6\.00\): farkv 1 us/,
  );
  t.regex(lines(rows[1]!), /MISSED +c/);
  t.regex(lines(rows[2]!), /NOT MEASURED +it did not <start>/);
});

test('a figure close to its goal has a digit more, one of a single round no spread, and nothing is below nothing', (t) => {
  t.is(spreadText(2.023, 2.021, 2.0241, 2.02), '2.023 (2.021 to 2.024)');
  t.is(spreadText(1.5, 1.25, 2, 2.02), '1.50 (1.25 to 2.00)');
  t.is(spreadText(70, 70, 70, 80), '70.00');
  t.is(spreadText(-0.001, -1, 2000, 1), '0.00 (-1.00 to 2,000)');
});

test('the page stands alone: no script, nothing from elsewhere, and texts cannot break out of it', (t) => {
  const page = reportPage({ where, rows, curves });
  t.notRegex(page, /<script|<link|<img|src=|href=|@import|url\(|https?:/);
  t.notRegex(page, /<CPU>|<start>|'a&b'/);
  t.regex(page, /the &quot;figure&quot;/);
  t.regex(page, /prefers-color-scheme: dark/);
});

test('the page has a curve for each store, a bar and a goal for each figure, and no coordinate that is not a number', (t) => {
  const page = reportPage({ where, rows, curves });
  t.is(page.match(/<polyline /g)?.length, 5);
  for (const { name } of curves) t.true(page.includes(`>${name}</text>`));
  // A bar for each of the four figures, and for each row that was measured at a glance.
  t.is(page.match(/<rect [^>]*class="bar (?:met|missed)"/g)?.length, 6);
  t.is(page.match(/class="goal"/g)?.length, 5);
  t.is(page.match(/>not measured/g)?.length, 2);
  t.notRegex(page, /NaN|Infinity|undefined/);
});

test('the sides of a group stand beside one another, once, and are told in one line', (t) => {
  const rate = (median: number) => ({ median, low: median / 2, high: median * 2 });
  const group = {
    title: 'A: reads & updates',
    sides: [
      { name: 'shm', rate: rate(150_000) },
      { name: 'Redis', rate: rate(60_000) },
    ],
  };
  const parts = [
    part('shm against Redis', atLeast(1, 'times'), [2.5], 'x'),
    part('tcp against Redis', atLeast(1, 'times'), [0.5], 'y'),
  ].map((p) => ({ ...p, group }));
  const row: RowResult = { name: 'ycsb', theme: 'YCSB', work: 'w', seconds: 1, parts };
  t.is(
    lines(row),
    'ycsb (1 s)\n  A: reads & updates\n          shm 150,000/s, Redis 60,000/s\n  met     shm against Redis: 2.50, goal at least 1.00 times\n  MISSED  tcp against Redis: 0.50, goal at least 1.00 times',
  );
  const page = reportPage({ where, rows: [row], curves: [] });
  t.is(page.match(/class="side s\d"/g)?.length, 2);
  t.is(page.match(/>A: reads &amp; updates</g)?.length, 1);
  t.regex(page, />150,000\/s</);
  t.regex(page, /missed: 0\.50, goal ≥ 1\.00; 1 of 2 met/);
});

test('every element of the page is closed where it was opened', (t) => {
  const open: string[] = [];
  for (const [, end, name = '', closed] of reportPage({ where, rows, curves }).matchAll(
    /<(\/?)([a-z][a-z0-9]*)(?:[^>"]|"[^"]*")*?(\/?)>/g,
  )) {
    if (end === '/') t.is(open.pop(), name);
    else if (closed !== '/' && name !== 'meta' && name !== 'br') open.push(name);
  }
  t.deepEqual(open, []);
});

test('a page without curves has no empty chart', (t) => {
  t.notRegex(reportPage({ where, rows, curves: [] }), /polyline|How long a GET takes/);
});
