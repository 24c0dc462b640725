import test from 'ava';
import { editDistance, nearest, unknownName } from './nearest.js';

test('the distance counts inserted, deleted, replaced and swapped letters', (t) => {
  for (const [a, b, n] of [['', '', 0], ['abc', 'abc', 0], ['abc', 'abd', 1], ['abc', 'acb', 1], ['abc', 'ab', 1], ['', 'abc', 3], ['kitten', 'sitting', 3]] as const) {
    t.is(editDistance(a, b), n);
    t.is(editDistance(b, a), n);
  }
});

test('the name that was probably meant is found whatever the spelling', (t) => {
  const known = ['memory', 'max-clients', 'peers', 'peer-token', 'shards'];
  for (const [wrote, meant] of [['memroy', 'memory'], ['maxclient', 'max-clients'], ['max_clients', 'max-clients'], ['sharsd', 'shards'], ['peer', 'peers'], ['quux', undefined]] as const) {
    t.is(nearest(wrote, known), meant);
  }
  t.is(unknownName('option', 'memroy', known, '--'), 'unknown option --memroy; did you mean --memory?');
  t.is(unknownName('option', 'zzzzzz', known, '--'), 'unknown option --zzzzzz');
});
