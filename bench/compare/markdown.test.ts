import { readFileSync } from 'node:fs';
import test from 'ava';
import { inRepository } from '../repository.js';
import { BEGIN, END, figures, filled, joined, rowsOf } from './markdown.js';
import { rowEntries, type RowEntry, type Environment } from './report.js';
import { atLeast, atMost, part } from './row.js';
import { DOCUMENTS, ROWS, type GoalSet } from './rows.js';

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
const [one, two] = rows as [RowEntry, RowEntry];
const document = ['before', '| `one` | of | another | table |', BEGIN, 'of before', END, 'after'].join('\n');

test('between the marks is every figure, under what it was measured on', (t) => {
  const text = filled(document, rows);
  t.true(text.startsWith(`before\n| \`one\` | of | another | table |\n${BEGIN}\n1 of 4 rows met, in 6 minutes.\n`));
  t.true(text.endsWith(`|\n${END}\nafter`));
  t.false(text.includes('of before'));
  t.is(filled(text, rows), text);
  for (const part of [
    '- 2 x CPU\n- Linux 6\n- 1,000 keys\n- then\n\n| row |',
    '| `one` | at least 3.00 times faster | 5.00 (4.00 to 6.00) | farkv 1 us, lmdb 5 us | met |',
    '| `two`: a | at most 80.00 B | 70.00 | x | met |\n| b | at most 1.00 ns | 2.00 | y | **missed** |',
    '| `none` |  | not measured | no a\\|b | **missed** |',
  ])
    t.true(text.includes(part), `${part}\n\n${text}`);
  t.deepEqual(rowsOf(text), ['one', 'two', 'none', 'many']);
});

test('a row that was measured again takes the place of what it was, under its own run', (t) => {
  const again = { ...one, run: 'alone' };
  t.deepEqual(joined([[one, two], [again]]), [again, two]);
  t.regex(figures(joined([[one, two], [again]])), /- alone\n\n\| row[^\n]*\n[^\n]*\n\| `one`/);
});

test('a document without a place for the figures is refused', (t) => {
  t.throws(() => filled(document.replace(END, ''), rows), { message: /there is no <!-- figures/ });
});

test('a document has the figures of each row of its goals, and a place for the next ones', (t) => {
  for (const [goals, path] of Object.entries(DOCUMENTS)) {
    const document = readFileSync(inRepository(path), 'utf8');
    t.deepEqual(
      rowsOf(document).sort(),
      ROWS.filter(({ measure }) => measure[goals as GoalSet] !== undefined)
        .map(({ name }) => name)
        .sort(),
      path,
    );
    t.notThrows(() => filled(document, rows));
  }
});
