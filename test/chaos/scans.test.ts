/** Which keys a scan must have given. */
import test from 'ava';
import type { Delete, Loss, Operation, Put } from './operation.js';
import { presentThroughout } from './scans.js';

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
