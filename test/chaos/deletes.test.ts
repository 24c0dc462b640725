/** How many keys of a deleteMany can have been there, and what its answer says of each. */
import test from 'ava';
import { resolveDeletes } from './deletes.js';
import type { Delete, Operation, Put } from './operation.js';
import { emptyRecord } from './recorded.js';

const put = (call: number, end: number, outcome: Put['outcome'] = 'stored'): Put => ({
  kind: 'put',
  call,
  end,
  by: 'writer',
  value: `v${call}`,
  outcome,
});
const SOME = { by: 'remover', call: 100, end: 200 };
const remove: Delete = { kind: 'delete', ...SOME, outcome: 'gone' };

/** Keys with what others did to them, of which so many were there; a key that ends with `+` is named twice. */
function resolved(others: Readonly<Record<string, readonly Operation[]>>, found: number) {
  const record = emptyRecord();
  const keys: string[] = [];
  for (const [name, operations] of Object.entries(others)) {
    const key = name.replace('+', '');
    const own = name === key ? [remove] : [remove, remove];
    keys.push(...own.map(() => key));
    record.keys.set(key, { shard: 0, operations: [...operations, ...own] });
  }
  record.deletes.push({ ...SOME, keys, found });
  const said: string[] = [];
  resolveDeletes(
    record,
    () => [],
    (what) => said.push(what),
  );
  const outcomes = keys.map(
    (key) =>
      record.keys.get(key)?.operations.find((o): o is Delete => o.kind === 'delete' && o.by === SOME.by)?.outcome,
  );
  return { said, outcomes };
}

const CERTAIN = { '1:g0-1': [put(0, 1)] };
const POSSIBLE = { '1:g0-4': [put(120, 130)] };
const NEVER = { '1:g0-7': [] };

test('fewer than the keys that were there, and more than can have been, are wrong', (t) => {
  const all = { ...CERTAIN, '1:g1-1': [put(0, 1)], ...POSSIBLE, ...NEVER };
  const wrong = (found: number): string =>
    `remover: ${found} of 4 keys were there when they were deleted, and 2 to 3 can have been`;
  t.deepEqual(resolved(all, 1).said, [wrong(1)]);
  t.deepEqual(resolved(all, 4).said, [wrong(4)]);
  t.deepEqual(resolved(all, 2).said, []);
  t.deepEqual(resolved(all, 3).said, []);
});

test('a number that leaves one way says of each key whether it was there', (t) => {
  const all = { ...CERTAIN, ...POSSIBLE, ...NEVER };
  t.deepEqual(resolved(all, 1).outcomes, ['deleted', 'absent', 'absent']);
  t.deepEqual(resolved(all, 2).outcomes, ['deleted', 'deleted', 'absent']);
});

test('a number that leaves several ways says nothing of any key', (t) => {
  const all = { ...CERTAIN, ...POSSIBLE, '1:g1-4': [put(120, 130)], ...NEVER };
  t.deepEqual(resolved(all, 2), { said: [], outcomes: ['gone', 'gone', 'gone', 'gone'] });
});

test('a key that is named twice was there once, or again where somebody writes it meanwhile', (t) => {
  t.deepEqual(resolved({ '1:g0-1+': [put(0, 1)] }, 1), { said: [], outcomes: ['gone', 'gone'] });
  t.is(resolved({ '1:g0-1+': [put(0, 1)] }, 2).said.length, 1);
  t.is(resolved({ '1:g0-1+': [put(0, 1), put(120, 130)] }, 2).said.length, 0);
});

test('values that expire, tiny ones, and deletes of others leave it open whether a key was there', (t) => {
  const other: Delete = { ...remove, by: 'other', outcome: 'deleted' };
  const open = { '1:t0-1': [{ ...put(0, 1), ttlMs: 10_000 }], '1:y1': [], '1:g0-1': [put(0, 1), other] };
  for (const found of [0, 1, 2, 3]) t.deepEqual(resolved(open, found).said, []);
  t.is(resolved({ '1:t0-1': [], ...POSSIBLE }, 2).said.length, 1);
});
