import { readFileSync } from 'node:fs';
import test from 'ava';
import { inRepository } from '../repository.js';
import { BEGIN, beside, END, figures, filled, floorsOf, joined } from './markdown.js';
import { rowEntries, type RowEntry, type Environment } from './report.js';
import { atLeast, atMost, part } from './row.js';
import { ROWS } from './rows.js';

const where: Environment = {
  machine: '2 x CPU',
  versions: 'Linux 6',
  providers: 'shm',
  run: '1,000 keys',
  command: 'c',
  date: 'then',
};
const of = (name: string, ...parts: ReturnType<typeof part>[]) => ({
  name,
  theme: 'GETs' as const,
  work: 'w',
  seconds: 90,
  parts,
  ...(parts.length === 0 ? { problem: 'no a|b' } : {}),
});
const faster = part('one', atLeast(3, 'times faster'), [4, 5, 6], 'farkv 1 us, lmdb 5 us');
const rows: RowEntry[] = rowEntries(
  [
    of('one', faster),
    of('two', part('a', atMost(80, 'B'), [70], 'x'), part('b', atMost(1, 'ns'), [2], 'y')),
    of('none'),
    of('many', ...[1.5, 2, 3, 0.5, 4].map((value, i) => part(`part ${i}`, atLeast(1, 'times'), [value], `side ${i}`))),
  ],
  where,
);
const [one, two, none, many] = rows as [RowEntry, RowEntry, RowEntry, RowEntry];
const document = [
  'before',
  '| row | the floor | in figures | measured |',
  '|---|---|---|---|',
  '| `one` | 2 misses, `a \\| b` | 3 ns | of before |',
  '| `other` | 1 | 2 | stays |',
  '| `two` | f | g | |',
  '',
  '| `one` | of | another | table |',
  BEGIN,
  'of before',
  END,
  'after',
].join('\n');

test('what is measured stands in the last column beside the floors, and nowhere else', (t) => {
  const lines = filled(document, rows).split('\n');
  t.is(
    lines[3],
    '| `one` | 2 misses, `a \\| b` | 3 ns | met: farkv 1 us, lmdb 5 us; 5.00 (4.00 to 6.00) times faster |',
  );
  t.is(lines[4], '| `other` | 1 | 2 | stays |');
  t.is(lines[5], '| `two` | f | g | met: x; 70.00 B; **missed**: y; 2.00 ns |');
  t.is(lines[7], '| `one` | of | another | table |');
  t.is(lines.at(-1), 'after');
  t.is(filled(filled(document, rows), rows), filled(document, rows));
});

test('between the marks is every figure, under what it was measured on', (t) => {
  const text = filled(document, rows);
  t.false(text.slice(text.indexOf(BEGIN)).includes('of before'));
  t.true(text.includes('1 of 4 rows met, in 6 minutes.'));
  t.true(text.includes('2 x CPU; Linux 6; 1,000 keys; then.'));
  t.true(
    text.includes(
      '| `two` | a | at most 80.00 B | 70.00 B | x | met |\n|  | b | at most 1.00 ns | 2.00 ns | y | **missed** |',
    ),
  );
  t.true(text.includes('| `none` |  |  | not measured | no a\\|b | **missed** |'));
});

test('a row of many figures is told by the weakest; one that was not measured says why', (t) => {
  t.is(beside(many), '4 of 5 met; the weakest, **missed**: side 3; 0.50 times');
  t.is(beside(none), 'not measured: no a\\|b');
});

test('a row that was measured again takes the place of what it was, under its own run', (t) => {
  const again = { ...one, run: 'alone' };
  t.deepEqual(joined([[one, two], [again]]), [again, two]);
  t.regex(figures(joined([[one, two], [again]])), /alone\.\n\n\| row[^\n]*\n[^\n]*\n\| `one`/);
});

test('a document without a place for the figures is refused', (t) => {
  t.throws(() => filled(document.replace(END, ''), rows), { message: /there is no <!-- figures/ });
  t.throws(() => filled(document.replace('in figures', 'x'), rows), { message: /there is no table/ });
});

test('bench/README.md has a floor for each row that has a goal over peers, and a place for the figures', (t) => {
  const readme = readFileSync(inRepository('bench/README.md'), 'utf8');
  t.deepEqual(
    floorsOf(readme).sort(),
    ROWS.filter(({ measure }) => measure.peers !== undefined)
      .map(({ name }) => name)
      .sort(),
  );
  t.notThrows(() => filled(readme, rows));
});
