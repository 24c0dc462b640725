/** What a key whose values expire may answer, and what it may not. Times in milliseconds. */
import test from 'ava';
import { checkExpiry } from './expiry.js';
import type { Delete, Get, Has, Loss, Operation, Put, Swap } from './operation.js';

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
/** A swap that leaves the time at which the entry expires. */
const keeps = (call: number, end: number, expected: bigint, value: string): Swap => ({
  kind: 'swap',
  call: call * NS,
  end: end * NS,
  by: 'swapper',
  expected,
  value,
  outcome: { swapped: true, version: expected + 1n },
});
const get = (call: number, end: number, value: string | undefined, version?: bigint): Get => ({
  kind: 'get',
  version,
  call: call * NS,
  end: end * NS,
  by: 'reader',
  value,
});
/** There, and what `ttl` said. */
const has = (call: number, end: number, leftMs?: number): Has => ({
  kind: 'has',
  call: call * NS,
  end: end * NS,
  by: 'looker',
  expiry: leftMs === undefined ? undefined : { from: (call + leftMs - 1) * NS, to: (end + leftMs) * NS },
});
const remove = (call: number, end: number, outcome: Delete['outcome'] = 'deleted'): Delete => ({
  kind: 'delete',
  call: call * NS,
  end: end * NS,
  by: 'remover',
  outcome,
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
  'a swap leaves the expiry of what was there': [
    put(0, 1, 'a', 100),
    get(2, 3, 'a', 5n),
    keeps(4, 5, 5n, 'b'),
    get(50, 51, 'b'),
    get(300, 301, undefined),
  ],
  'nobody knows when what a swap left expires': [
    keeps(4, 5, 5n, 'b'),
    get(5000, 5001, 'b'),
    get(5002, 5003, undefined),
  ],
  'a key that is there before its expiry, with what is left then': [put(0, 1, 'a', 100), has(50, 51), has(60, 61, 40)],
  'what is left is of any value that may be there': [
    put(0, 1, 'a', 100),
    put(2, 9, 'b', 10_000),
    has(3, 4, 97),
    has(5, 6, 9998),
  ],
  'a key that an open write may have made is there, as long as nobody has read its value': [
    put(0, 1, 'a', 100, 'open'),
    has(5000, 5001),
    has(5002, 5003, 99),
  ],
  'a delete finds what may be there': [put(0, 1, 'a', 100), remove(2, 3)],
  'a swap leaves what is left': [put(0, 1, 'a', 10_000), get(2, 3, 'a', 5n), keeps(4, 5, 5n, 'b'), has(500, 501, 9500)],
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
  'a value long after the expiry that swaps left': [
    /399 ms after it had expired/,
    [put(0, 1, 'a', 100), get(2, 3, 'a', 5n), keeps(4, 5, 5n, 'b'), keeps(6, 7, 6n, 'c'), get(500, 501, 'c')],
  ],
  'an absence long before the expiry that a swap left': [
    /absent 9990 ms before b expires/,
    [put(0, 1, 'a', 10_000), get(2, 3, 'a', 5n), keeps(4, 5, 5n, 'b'), get(9, 10, undefined)],
  ],
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
  'a key that is there long after the expiry': [/399 ms after it had expired/, [put(0, 1, 'a', 100), has(500, 501)]],
  'a delete that finds a value long after the expiry': [
    /399 ms after it had expired/,
    [put(0, 1, 'a', 100), remove(500, 501)],
  ],
  'a key that is there after a delete': [
    /present, .* after delete had taken its place/,
    [put(0, 1, 'a', 10_000), remove(2, 3), has(4, 5)],
  ],
  'a key that a second delete finds': [
    /present, .* after delete had taken its place/,
    [put(0, 1, 'a', 10_000), remove(2, 3, 'gone'), remove(4, 5)],
  ],
  'a key that is there, and nobody wrote': [/present, and never written/, [has(4, 5)]],
  'a key that is there before its write': [/before it was written/, [has(0, 1), put(2, 3, 'a', 100)]],
  'more time that is left than any value has': [
    /a was said to expire 898 ms too late/,
    [put(0, 1, 'a', 100), has(50, 51, 950)],
  ],
  'the time that a value before had left': [
    /present, .* b was said to expire 9001 ms too early/,
    [put(0, 1, 'a', 900), put(2, 3, 'b', 10_000), has(4, 5, 996)],
  ],
  'more time that is left after a swap that leaves it': [
    /b was said to expire 400 ms too late/,
    [put(0, 1, 'a', 1000), get(2, 3, 'a', 5n), keeps(400, 402, 5n, 'b'), has(410, 411, 992)],
  ],
  'less time that is left after a swap that leaves it': [
    /b was said to expire 500 ms too early/,
    [put(0, 1, 'a', 1000), get(2, 3, 'a', 5n), keeps(4, 5, 5n, 'b'), has(9, 10, 490)],
  ],
  'an open write that was read has expired': [
    /4900 ms after it had expired/,
    [put(0, 1, 'a', 100, 'open'), get(9, 10, 'a'), has(5010, 5011)],
  ],
  'a value whose own expiry is another': [
    /a was said to expire 899 ms too late/,
    [put(0, 1, 'a', 100), put(0, 1, 'b', 1000), { ...get(2, 3, 'a'), expiry: { from: 1000 * NS, to: 1001 * NS } }],
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
