import test from 'ava';
import { crossingOf, GATHER } from './gathered-reads.js';
import { setup, text, type Setup } from '../test/support/keyspace.js';

/** A keyspace over a transport that does not answer at once, with keys k0, k1, ..., whose next GETs are gathered. */
async function gathering(options: Parameters<typeof setup>[0] = {}): Promise<Setup> {
  const made = setup({ direct: false, ...options });
  for (let i = 0; i < 200; i++) made.native.store(`k${i}`, Buffer.from(`v${i}`));
  const both = Promise.all([made.kv.get('k0'), made.kv.get('k1')]);
  await made.settle();
  await both;
  made.native.texts = 0;
  return made;
}

test('GETs that are asked for side by side are posted in crossings of many, each with its own answer', async (t) => {
  const { native, kv, settle } = await gathering();
  const count = 2 * GATHER + 5;
  const all = Promise.all([...Array.from({ length: count }, (_, i) => kv.get(`k${i}`)), kv.get('none')]);
  t.is(native.outstanding.length, 2 * GATHER, 'those that fill a crossing do not wait for the microtask');
  await settle();
  t.is(native.texts, 3);
  t.deepEqual((await all).map(text), [...Array.from({ length: count }, (_, i) => `v${i}`), undefined]);
});

test('crossings share what is in flight evenly: neither many small ones nor one that leaves the owner waiting', async (t) => {
  t.deepEqual([1, 15, 16, 33, 64, 100, 124, 125, 1000].map(crossingOf), [32, 32, 8, 17, 32, 50, 62, 42, 50]);
  for (let n = 1; n < 5000; n++)
    t.true(crossingOf(n) >= 8 && crossingOf(n) <= 64 && (n < 16 || 2 * crossingOf(n) <= n + 1), String(n));
  const { native, kv, settle } = await gathering();
  const ask = (): Promise<unknown> => Promise.all(Array.from({ length: 100 }, (_, i) => kv.get(`k${i}`)));
  const first = ask();
  t.is(native.outstanding.length, 3 * GATHER);
  await settle();
  await first;
  native.doorbells.length = 0;
  const second = ask();
  t.is(native.outstanding.length, 100, 'two crossings of 50');
  t.deepEqual(native.doorbells, [50, 50]);
  await settle();
  await second;
});

test('the first GETs of a client and one that is alone are posted by themselves', async (t) => {
  const { native, kv, settle } = await gathering();
  const one = kv.get('k3');
  t.is(native.outstanding.length, 0);
  await settle();
  t.is(text(await one), 'v3');
  const two = kv.get('k4');
  t.is(native.outstanding.length, 1, 'gathering ended with the one that was alone');
  await settle();
  t.is(text(await two), 'v4');
  t.is(native.texts, 0);
});

test('what differs in namespace, time-out or kind of key is not mixed', async (t) => {
  const { native, kv, settle } = await gathering();
  const other = kv.namespace(7);
  const puts = Promise.all([other.put('k1', 'seven'), other.put('k2', 'eight')]);
  await settle();
  await puts;
  const bytes = Buffer.from('k5');
  const values = Promise.all([
    kv.get('k1'),
    kv.get('k2'),
    other.get('k1'),
    other.get('k2'),
    kv.get('k3', { timeoutMs: 7 }),
    kv.get('k4', { timeoutMs: 7 }),
    kv.get(bytes),
    kv.get('k6'),
    kv.get('k7'),
    kv.get('k8', { signal: new AbortController().signal }),
  ]);
  bytes.write('k9');
  await settle();
  t.deepEqual((await values).map(text), ['v1', 'v2', 'seven', 'eight', 'v3', 'v4', 'v5', 'v6', 'v7', 'v8']);
  t.is(native.texts, 4);
});

test('keys that are there at once are read by themselves, and gathering ends', async (t) => {
  const { native, kv, settle } = await gathering();
  const some = Promise.all([kv.get('k1'), kv.get('k2'), kv.get('none')]);
  native.direct = true;
  native.store('k2', Buffer.alloc(0));
  await settle();
  t.deepEqual((await some).map(text), ['v1', '', undefined]);
  const next = kv.get('k4');
  t.is(native.outstanding.length, 0, 'it was answered at once');
  t.is(text(await next), 'v4');
});

test('what finds no room is queued; what is refused fails with its reason', async (t) => {
  const { native, kv, settle } = await gathering();
  native.maxOutstanding = 3;
  const all = Promise.all(Array.from({ length: 100 }, (_, i) => kv.get(`k${i}`)));
  await settle();
  t.deepEqual(
    (await all).map(text),
    Array.from({ length: 100 }, (_, i) => `v${i}`),
  );
  native.maxOutstanding = 1000;
  const more = Promise.all([kv.get('k1'), kv.get('k2')]);
  await settle();
  await more;
  native.refusal = 4;
  const refused = await Promise.allSettled([kv.get(''), kv.get('k2')]);
  t.deepEqual(
    refused.map((r) => r.status),
    ['rejected', 'rejected'],
  );
});

test('closing ends what is gathered', async (t) => {
  const { operations, kv } = await gathering();
  const some = Promise.allSettled([kv.get('k1'), kv.get('k2')]);
  t.is(operations.unsettled, 2);
  operations.close();
  t.deepEqual(
    (await some).map((r) => r.status === 'rejected' && (r.reason as { code: string }).code),
    ['ERR_CLOSED', 'ERR_CLOSED'],
  );
  await t.throwsAsync(kv.get('k1'), { code: 'ERR_CLOSED' });
});
