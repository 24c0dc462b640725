/** What a key whose values expire may answer, and what it may not. Times in milliseconds. */
import test from 'ava';
import { checkExpiry } from './expiry.js';
import type { Delete, Get, Loss, Operation, Put } from './operation.js';

const NS = 1e6;
const put = (call: number, end: number, value: string, ttlMs: number, outcome: Put['outcome'] = 'stored'): Put => ({
  kind: 'put',
  call: call * NS,
  end: outcome === 'open' ? Infinity : end * NS,
  by: 'writer',
  value,
  ttlMs,
  outcome,
});
const get = (call: number, end: number, value: string | undefined): Get => ({
  kind: 'get',
  call: call * NS,
  end: end * NS,
  by: 'reader',
  value,
});
const remove = (call: number, end: number): Delete => ({
  kind: 'delete',
  call: call * NS,
  end: end * NS,
  by: 'remover',
  outcome: 'deleted',
});
const loss = (call: number, end: number): Loss => ({ kind: 'loss', call: call * NS, end: end * NS, by: 'nemesis' });
const found = (operations: readonly Operation[], losses: readonly Loss[] = []): string[] =>
  checkExpiry(operations, losses).map(({ why }) => why);

const right: Readonly<Record<string, readonly Operation[]>> = {
  'a value before its expiry, and its absence after it': [
    put(0, 1, 'a', 100),
    get(50, 51, 'a'),
    get(300, 301, undefined),
  ],
  'around the expiry two readers may differ': [put(0, 1, 'a', 100), get(90, 91, undefined), get(110, 111, 'a')],
  'an open write may take effect late': [put(0, 1, 'a', 100, 'open'), get(5000, 5001, 'a')],
  'a value is replaced': [put(0, 1, 'a', 10_000), put(2, 3, 'b', 10_000), get(4, 5, 'b')],
  'a write at the same time may be the later one': [put(0, 9, 'a', 10_000), put(2, 3, 'b', 10_000), get(10, 11, 'a')],
  'a deleted value is absent': [put(0, 1, 'a', 10_000), remove(2, 3), get(4, 5, undefined)],
  'an open write of a short time to live may have taken the place': [
    put(0, 1, 'a', 10_000),
    put(2, 3, 'b', 50, 'open'),
    get(500, 501, undefined),
  ],
};
for (const [what, operations] of Object.entries(right))
  test(`permitted: ${what}`, (t) => t.deepEqual(found(operations), []));

const wrong: Readonly<Record<string, readonly [RegExp, readonly Operation[]]>> = {
  'a value long after its expiry': [/399 ms after it had expired/, [put(0, 1, 'a', 100), get(500, 501, 'a')]],
  'an absence long before the expiry': [
    /absent 9995 ms before a expires/,
    [put(0, 1, 'a', 10_000), get(4, 5, undefined)],
  ],
  'a value that was replaced': [
    /after b had taken its place/,
    [put(0, 1, 'a', 10_000), put(2, 3, 'b', 10_000), get(4, 5, 'a')],
  ],
  'a value that was deleted': [
    /after delete had taken its place/,
    [put(0, 1, 'a', 10_000), remove(2, 3), get(4, 5, 'a')],
  ],
  'a value that nobody wrote': [/never written/, [get(4, 5, 'a')]],
  'a value whose write had no effect': [/had no effect/, [put(0, 1, 'a', 10_000, 'no-effect'), get(4, 5, 'a')]],
  'a value before its write': [/before it was written/, [get(0, 1, 'a'), put(2, 3, 'a', 100)]],
};
for (const [what, [why, operations]] of Object.entries(wrong)) {
  test(`refused: ${what}`, (t) => {
    const all = found(operations);
    t.is(all.length, 1);
    t.regex(all[0] ?? '', why);
  });
}

test('only a permitted loss explains that a value is gone long before its expiry', (t) => {
  const operations = [put(0, 1, 'a', 10_000), get(400, 401, undefined)];
  t.deepEqual(found(operations, [loss(100, 200)]), []);
  t.is(found(operations, [loss(500, 600)]).length, 1);
});
