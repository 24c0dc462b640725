import test from 'ava';
import { parseProperties } from './properties.js';

test('the three separators, blanks around them and empty values', (t) => {
  const p = parseProperties('a=1\nb: 2\nc 3\n  d\t=\t4  \ne\nf=\n');
  t.deepEqual(
    [...p],
    [
      ['a', '1'],
      ['b', '2'],
      ['c', '3'],
      ['d', '4  '],
      ['e', ''],
      ['f', ''],
    ],
  );
});

test('comments and blank lines are skipped, also when a comment ends in a backslash', (t) => {
  const p = parseProperties('# a=1 \\\n! b=2\n\n   \n  # c=3\nd=4');
  t.deepEqual([...p], [['d', '4']]);
});

test('a backslash at the end continues the line, two do not', (t) => {
  const p = parseProperties('a=one \\\n    two\nb=slash\\\\\nc=3');
  t.deepEqual(
    [...p],
    [
      ['a', 'one two'],
      ['b', 'slash\\'],
      ['c', '3'],
    ],
  );
});

test('escapes in keys and values', (t) => {
  const p = parseProperties('a\\ key\\=x=tab\\there\\u0041\\z\nwith\\:colon:v=w:x');
  t.deepEqual(
    [...p],
    [
      ['a key=x', 'tab\thereAz'],
      ['with:colon', 'v=w:x'],
    ],
  );
});

test('the last of equal keys counts, and every line end is known', (t) => {
  t.deepEqual(
    [...parseProperties('a=1\r\nb=2\ra=3')],
    [
      ['a', '3'],
      ['b', '2'],
    ],
  );
});

test('a byte order mark before the first name is no part of it', (t) => {
  t.deepEqual(
    [...parseProperties('\ufeffa=1\n\ufeffb=2')],
    [
      ['a', '1'],
      ['\ufeffb', '2'],
    ],
  );
});
