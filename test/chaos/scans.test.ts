/** Which keys a scan must have given, and how many a count may have counted. */
import test from 'ava';
import type { Delete, Get, Loss, Operation, Put } from './operation.js';
import { emptyRecord } from './recorded.js';
import { checkScans, mayBePresent, presentThroughout } from './scans.js';

const put = (call: number, end: number, value: string, outcome: Put['outcome'] = 'stored'): Put => ({
  kind: 'put',
  call,
  end,
  by: 'writer',
  value,
  outcome,
});
const remove = (call: number, end: number, outcome: Delete['outcome'] = 'deleted'): Delete => ({
  kind: 'delete',
  call,
  end,
  by: 'remover',
  outcome,
});
const loss = (call: number, end: number): Loss => ({ kind: 'loss', call, end, by: 'nemesis' });
const scan = { call: 100, end: 200 };

const present: Readonly<Record<string, readonly Operation[]>> = {
  'a value from before': [put(0, 1, 'a')],
  'one that is replaced meanwhile': [put(0, 1, 'a'), put(120, 130, 'b')],
  'one that was deleted and written again': [put(0, 1, 'a'), remove(2, 3), put(4, 5, 'a2')],
  'one that is deleted after the scan': [put(0, 1, 'a'), remove(201, 210)],
  'a delete that promised to have had no effect': [put(0, 1, 'a'), remove(120, 130, 'no-effect')],
};
for (const [what, operations] of Object.entries(present))
  test(`must come: ${what}`, (t) => t.not(presentThroughout(operations, [], scan), undefined));

const uncertain: Readonly<Record<string, readonly Operation[]>> = {
  'a key that was never written': [],
  'one that is written meanwhile': [put(120, 130, 'a')],
  'one whose write may not have taken effect': [put(0, Infinity, 'a', 'open')],
  'one that is deleted meanwhile': [put(0, 1, 'a'), remove(120, 130)],
  'one that a delete without an answer may take away': [put(0, 1, 'a'), remove(2, Infinity, 'open')],
  'one that was deleted at the same time as it was written': [put(0, 10, 'a'), remove(5, 8)],
};
for (const [what, operations] of Object.entries(uncertain))
  test(`may be missing: ${what}`, (t) => t.is(presentThroughout(operations, [], scan), undefined));

test('a key that may have been lost may be missing, one that was lost before it was written may not', (t) => {
  t.is(presentThroughout([put(0, 1, 'a')], [loss(50, 60)], scan), undefined);
  t.is(presentThroughout([put(70, 71, 'a')], [loss(50, 60)], scan), 'a');
});

const get = (call: number, end: number, value: string | undefined): Get => ({ kind: 'get', call, end, by: 'r', value });

const possible: Readonly<Record<string, readonly Operation[]>> = {
  'one that is written meanwhile': [get(0, 1, undefined), put(199, 300, 'a')],
  'one that is deleted meanwhile': [put(0, 1, 'a'), remove(99, 130)],
  'one that was written at the same time as it was deleted': [put(0, 10, 'a'), remove(5, 8)],
  'one that a write without an answer may have made': [put(0, Infinity, 'a', 'open'), remove(5, 8)],
};
for (const [what, operations] of Object.entries(possible))
  test(`may be counted: ${what}`, (t) => t.true(mayBePresent(operations, scan)));

const impossible: Readonly<Record<string, readonly Operation[]>> = {
  'a key that was never written': [get(0, 1, undefined)],
  'one that was deleted before': [put(0, 1, 'a'), remove(2, 3)],
  'one that is written afterwards': [put(0, 1, 'a'), remove(2, 3, 'gone'), put(201, 210, 'b')],
  'one that was read as absent': [put(0, 1, 'a'), get(2, 3, undefined)],
  'one whose write promised to have had no effect': [put(0, 1, 'a', 'no-effect')],
};
for (const [what, operations] of Object.entries(impossible))
  test(`may not be counted: ${what}`, (t) => t.false(mayBePresent(operations, scan)));

/** What is said of a scan and of a count, of namespace 1 and a prefix, when two keys that begin so are there. */
function found(keys: readonly string[], count: number, prefix?: string): string[] {
  const record = emptyRecord();
  for (const key of ['1:g0-1', '1:g0-4', '1:g0-7', '1:g1-4'])
    record.keys.set(key, { shard: 0, operations: [put(0, 1, `a-${key}`)] });
  record.keys.set('1:t0-1', { shard: 0, operations: [{ ...put(0, 1, 'expired'), ttlMs: 1 }] });
  record.keys.set('1:g0-10', { shard: 0, operations: [] });
  const asked = { by: 'r', space: 1, prefix, call: 10e9, end: 11e9 };
  record.scans.push({ ...asked, keys: new Set(keys) });
  record.spaceCounts.push({ ...asked, count });
  const said: string[] = [];
  checkScans(
    record,
    () => [],
    (what) => said.push(what),
  );
  return said;
}

test('a scan of a prefix that leaves out a key with it is wrong, and no other key need come', (t) => {
  t.deepEqual(found(['1:g0-4', '1:g0-7'], 2, 'g0'), []);
  const [missing, ...more] = found(['1:g0-4'], 2, 'g0');
  t.is(
    missing,
    'r: a scan of namespace 1, prefix "g0" gave 1 keys, and not 1 that were there throughout: 1:g0-7 with a-1:g0-7',
  );
  t.deepEqual(more, []);
});

test('a count that is less than the keys that are there is wrong, of a namespace and of a prefix', (t) => {
  const all = ['1:g0-1', '1:g0-4', '1:g0-7', '1:g1-4'];
  t.deepEqual(found(all, 4), []);
  t.regex(found(all, 3).join(), /^r: 3 keys were counted in namespace 1, and 4 were there throughout/);
  t.regex(found(all, 0, 'g0').join(), /^r: 0 keys were counted in namespace 1, prefix "g0", and 2 were there/);
});

test('a count that is more than twice the keys that may be there is wrong', (t) => {
  const all = ['1:g0-1', '1:g0-4', '1:g0-7', '1:g1-4'];
  t.deepEqual(found(all, 8), []);
  t.regex(found(all, 9).join(), /^r: 9 keys were counted in namespace 1, and only 4 may have been there/);
  // Its only value has expired.
  t.regex(found(all, 1, 't0').join(), /^r: 1 keys were counted in namespace 1, prefix "t0", and only 0 may/);
});
