/** How batches end that do not go on to their end: every item that was not put is a failure, and no batch waits for ever. */
import test from 'ava';
import { setImmediate as turn } from 'node:timers/promises';
import type { BatchFailures } from './batch.js';
import { setup } from '../test/support/keyspace.js';

const keysOf = (count: number, name = 'k'): string[] => Array.from({ length: count }, (_, i) => `${name}${i}`);
const itemsOf = (count: number, name = 'k'): { key: string; value: string }[] =>
  keysOf(count, name).map((key) => ({ key, value: 'x' }));

/** A client with few places, and a batch that takes its share of them and waits. */
function crowded(timeoutMs = 60_000) {
  const rig = setup({ direct: false, maxOutstanding: 30, maxQueued: 10_000 });
  rig.native.maxOutstanding = 30;
  const batch = rig.kv.putMany(itemsOf(500, 'batch '), { timeoutMs });
  const answer = async (count = 10): Promise<void> => {
    rig.native.complete(count);
    rig.operations.drain();
    await turn();
  };
  const finish = async (): Promise<void> => {
    while (rig.native.outstanding.length > 0) await answer();
    await batch;
  };
  return { ...rig, batch, answer, finish };
}

test('what an iterable still had when a signal ended the call is a failure', async (t) => {
  const { native, kv, settle } = setup({ direct: false });
  native.maxOutstanding = 4096;
  const stop = new AbortController();
  // In the drain that ends the first piece, before the call has looked at the signal.
  const single = kv.put('single', 'x').then(() => stop.abort());
  const ended = t.throwsAsync(kv.putMany(new Set(itemsOf(2048)), { signal: stop.signal }), { code: 'ERR_ABORTED' });
  await settle();
  await single;
  const { cause } = await ended;
  const { indexes, taken } = cause as BatchFailures;
  t.deepEqual([indexes, taken], [[1024], 1024], 'of the items behind the first 1,024 none was put');
  t.is(native.entries.size, 1025);
});

test('an iterable whose items are all put has no failure, whatever comes then', async (t) => {
  const { native, kv, settle } = setup({ direct: false });
  native.maxOutstanding = 4096;
  const stop = new AbortController();
  const single = kv.put('single', 'x').then(() => stop.abort());
  const all = kv.putMany(new Set(itemsOf(1000)), { signal: stop.signal });
  await settle();
  await Promise.all([single, all]);
  t.is(native.entries.size, 1001);
});

const bad = {
  get key(): string {
    throw new Error('no key');
  },
  value: 'x',
  ttlMs: 60_000,
};

test('an item that throws when it is read is a failure, and the others are put', async (t) => {
  const { native, kv, settle } = setup({ direct: false });
  const { signal } = new AbortController();
  const [a, b] = [
    { key: 'a', value: 'x', ttlMs: 60_000 },
    { key: 'b', value: 'x' },
  ];
  for (const items of [[a, bad, b], Object.assign([a, a, b], { 1: undefined })]) {
    native.entries.clear();
    const failed = t.throwsAsync(kv.putMany(items as (typeof a)[], { signal }), { message: /1 of 3 keys failed/ });
    await settle();
    await failed;
    t.deepEqual([...native.entries.keys()], ['0/a', '0/b']);
  }
});

test('items as a Map has them are refused with what is wanted', async (t) => {
  const { kv, settle } = setup({ direct: false });
  const pairs = new Map([['key', 'value']]) as unknown as { key: string; value: string }[];
  const failed = t.throwsAsync(kv.putMany(pairs), {
    code: 'ERR_ARGUMENT',
    message: '1 of 1 keys failed; the first: an item of putMany is { key, value }, and this one is an array',
  });
  await settle();
  await failed;
});

test('an item that throws behind another batch does not keep later batches waiting', async (t) => {
  const { native, kv, finish } = crowded();
  const failed = t.throwsAsync(kv.putMany([bad, { key: 'good', value: 'x' }]), { message: /1 of 2 keys failed/ });
  const later = kv.putMany(itemsOf(3, 'later '));
  await finish();
  await Promise.all([failed, later]);
  t.true(native.entries.has('0/good') && native.entries.has('0/later 2'));
});

test('a call of one piece that goes by itself does not wait for the batches before it', async (t) => {
  const { kv, operations, answer, finish } = crowded();
  const one = kv.putMany([{ key: 'one', value: 'x', ttlMs: 60_000 }]);
  await answer(11);
  await one;
  t.true(operations.changes.waits);
  await finish();
});

test('a batch behind another ends by its own signal, its own time-out, and with the client', async (t) => {
  const { kv, operations, batch, answer } = crowded();
  const stop = new AbortController();
  const long = t.throwsAsync(kv.putMany(itemsOf(2000, 'long '), { signal: stop.signal }), { code: 'ERR_ABORTED' });
  const brief = t.throwsAsync(kv.putMany(itemsOf(5, 'brief '), { timeoutMs: 20 }), {
    code: 'ERR_TIMEOUT',
    message: /5 of 5 keys failed/,
  });
  const last = t.throwsAsync(kv.deleteMany(keysOf(5)), { code: 'ERR_CLOSED' });
  await brief;
  stop.abort();
  await answer();
  await long;
  const ended = t.throwsAsync(batch, { code: 'ERR_CLOSED' });
  operations.close();
  await Promise.all([ended, last]);
  t.false(operations.changes.waits);
});

test('a getMany that a signal may end leaves room for single calls, too', async (t) => {
  const { native, kv, settle } = setup({ direct: false, maxOutstanding: 30 });
  native.maxOutstanding = 30;
  const gets = kv.getMany(keysOf(500), { signal: new AbortController().signal });
  await turn();
  t.is(native.outstanding.length, 10);
  const single = kv.put('single', 'one');
  t.is(native.outstanding.length, 11, 'it is posted at once');
  await settle();
  await single;
  t.is((await gets).length, 500);
});

test('programs that ask again as soon as they are answered do not keep a batch from its share', async (t) => {
  const { native, kv, batch, answer } = crowded();
  let over = false;
  const loops = keysOf(60, 'loop ').map(async (key) => {
    while (!over) await kv.put(key, 'x');
  });
  const written = (): number => native.log.filter((line) => line.includes('batch ')).length;
  for (let round = 0; round < 200 && written() < 500; round++) await answer();
  t.is(written(), 500);
  over = true;
  while (native.outstanding.length > 0) await answer();
  await Promise.all([batch, ...loops]);
});
