import type { BatchFailures } from './batch.js';
import test from 'ava';
import { setImmediate as turn } from 'node:timers/promises';
import { ABSENT } from './batch-reads.js';
import type { Codec } from './codec.js';
import { FarkvError, Status } from './errors.js';
import { SLAB_BYTES } from './value-memory.js';
import { setup, text } from '../test/support/keyspace.js';

for (const direct of [true, false]) {
  const how = direct ? 'at once' : 'later';

  test(`getManyInto lays values side by side into the caller's memory ${how}`, async (t) => {
    const { native, kv, settle } = setup({ direct, records: 8 });
    const values = Array.from({ length: 40 }, (_, i) => Buffer.alloc(i % 7, String.fromCharCode(48 + i)));
    const large = Buffer.alloc(SLAB_BYTES + 5, 'L');
    values.forEach((value, i) => native.store(`k${i}`, value, i % 2 === 0 ? 0 : 1));
    native.store('large', large, 9);
    const keys = ['none', ...values.map((_, i) => `k${i}`), 'large', 'k3', 'nothing'];
    const expected = [undefined, ...values, large, values[3], undefined];
    const target = Buffer.alloc(SLAB_BYTES + 400, '.');
    const spans = new Uint32Array(2 * keys.length + 3).fill(7);
    const needed = expected.reduce((sum, value) => sum + (value?.length ?? 0), 0);
    const answer = kv.getManyInto(keys, target, spans);
    t.is(typeof answer, direct ? 'number' : 'object');
    await settle();
    t.is(await answer, needed);
    const seen = expected.map((_, i) => {
      const [from = 0, length = 0] = spans.subarray(2 * i, 2 * i + 2);
      return from === ABSENT ? `absent ${length}` : target.toString('latin1', from, from + length);
    });
    t.deepEqual(
      seen,
      expected.map((value) => value?.toString('latin1') ?? 'absent 0'),
    );
    t.deepEqual([...spans.subarray(2 * keys.length)], [7, 7, 7], 'beyond its two numbers a key nothing is written');
    t.is(target.toString('latin1', needed, needed + 20), '.'.repeat(20));
    t.is(native.held, 0);

    const small = Promise.resolve().then(() => kv.getManyInto(keys, Buffer.alloc(10), spans));
    const refused = t.throwsAsync(small, {
      code: 'ERR_BUFFER_TOO_SMALL',
      message: new RegExp(`has ${needed} bytes, there is room for 10`),
    });
    await turn();
    await settle();
    await refused;
    t.is(native.held, 0);

    const bad = Promise.resolve().then(() => kv.getManyInto(['a', '', 'b'], target, spans));
    const failed = t.throwsAsync(bad, { code: 'ERR_KEY_INVALID', message: /1 of 3 keys failed/ });
    await turn();
    await settle();
    await failed;
    t.is(await kv.getManyInto([], target, spans), 0);
  });

  test(`a getMany and a getManyInto of more than fits under way end all the same (${how})`, async (t) => {
    const { native, kv, settle } = setup({ direct });
    native.maxOutstanding = 3;
    for (let i = 0; i < 20; i++) native.store(`k${i}`, Buffer.from(`v${i}`));
    const keys = Array.from({ length: 20 }, (_, i) => `k${i}`);
    const spans = new Uint32Array(40);
    const target = Buffer.alloc(100);
    const many = kv.getMany(keys);
    const into = kv.getManyInto(keys, target, spans);
    await settle();
    t.deepEqual(
      (await many).map(text),
      keys.map((_, i) => `v${i}`),
    );
    await into;
    t.deepEqual(
      keys.map((_, i) => target.toString('latin1', spans[2 * i], (spans[2 * i] ?? 0) + (spans[2 * i + 1] ?? 0))),
      keys.map((_, i) => `v${i}`),
    );
  });
}

test('getManyInto is ended by a signal, and by close', async (t) => {
  const { native, kv, operations, settle } = setup({ direct: false });
  native.store('a', Buffer.from('alpha'));
  const stop = new AbortController();
  const spans = new Uint32Array(4);
  const target = Buffer.alloc(10);
  const stopped = t.throwsAsync(Promise.resolve(kv.getManyInto(['a', 'b'], target, spans, { signal: stop.signal })), {
    code: 'ERR_ABORTED',
  });
  stop.abort(new Error('enough'));
  await settle();
  await stopped;
  const closed = t.throwsAsync(Promise.resolve(kv.getManyInto(['a', 'b'], target, spans)), { code: 'ERR_CLOSED' });
  operations.close();
  await closed;
  t.throws(() => kv.getManyInto(['a'], target, spans), { code: 'ERR_CLOSED' });
});

test('a signal that has fired ends getMany and getManyInto before anything is asked', async (t) => {
  for (const direct of [true, false]) {
    const { native, kv } = setup({ direct });
    native.store('a', Buffer.from('alpha'));
    const signal = AbortSignal.abort(new Error('enough'));
    const spans = new Uint32Array(2).fill(7);
    const refused = { code: 'ERR_ABORTED' };
    await t.throwsAsync(kv.getMany(['a'], { signal }), refused);
    t.throws(() => kv.getManyInto(['a'], Buffer.alloc(10), spans, { signal }), refused);
    await t.throwsAsync(kv.getMany([], { signal }), refused);
    t.is(native.outstanding.length, 0);
  }
});

test('putMany posts in the order of its items, behind what waits already, and goes on when there is room', async (t) => {
  const { native, kv, settle } = setup({ direct: false });
  native.maxOutstanding = 3;
  const items = Array.from({ length: 10 }, (_, i) => ({ key: `k${i}`, value: `v${i}` }));
  const first = kv.putMany(items);
  const second = kv.putMany(items.map(({ key }) => ({ key, value: 'later' })));
  await settle();
  await Promise.all([first, second]);
  t.deepEqual(
    native.log.map((line) => line.split(' ')[1]),
    [...items, ...items].map(({ key }) => `0/${key}`),
  );
  t.deepEqual(
    new Set([...native.entries.values()].map(({ value }) => Buffer.from(value).toString())),
    new Set(['later']),
  );
  native.maxOutstanding = 3000;
  const large = kv.putMany(Array.from({ length: 2500 }, (_, i) => ({ key: `n${i}`, value: '' })));
  await settle();
  await large;
  t.is(native.entries.size, 2510);
});

test('a codec of the program may call putMany while a putMany is under way', async (t) => {
  const { native, kv, settle } = setup({ direct: false });
  native.maxOutstanding = 3;
  const inner: Promise<void>[] = [];
  let encoded = 0;
  const nested: Codec<string, string> = {
    id: 20,
    name: 'nested',
    encode: (value) => {
      // By the first that has found no room.
      if (++encoded === 5) {
        native.maxOutstanding = 100;
        inner.push(kv.putMany(Array.from({ length: 10 }, (_, i) => ({ key: `inner${i}`, value: 'inner' }))));
      }
      return Buffer.from(value);
    },
    decode: String,
  };
  const outer = kv
    .withCodec(nested)
    .putMany(Array.from({ length: 10 }, (_, i) => ({ key: `outer${i}`, value: 'outer' })));
  await settle();
  await outer;
  await Promise.all(inner);
  t.is(inner.length, 1);
  t.is([...native.entries.keys()].filter((key) => key.startsWith('0/outer')).length, 10);
  t.is([...native.entries.keys()].filter((key) => key.startsWith('0/inner')).length, 10);
});

test('a batch fails with the code of the first key that failed, whichever ended first', async (t) => {
  const { native, kv, settle } = setup({ direct: false });
  const puts = t.throwsAsync(
    kv.putMany([
      { key: 'a', value: '1' },
      { key: '', value: '2' },
    ]),
    { code: 'ERR_INDETERMINATE', message: /2 of 2 keys failed/ },
  );
  await turn();
  native.fail(Status.indeterminate);
  await settle();
  await puts;
  const gone = t.throwsAsync(kv.getMany(['a', 'b']), {
    code: 'ERR_SHARD_UNAVAILABLE',
    message: /nobody answers for shard 0/,
  });
  await turn();
  native.fail(Status.shardUnavailable);
  await settle();
  await gone;
});

test('putMany fails after all have ended, with all failures in its cause', async (t) => {
  const { native, kv, settle } = setup();
  const puts = kv.putMany([
    { key: 'a', value: '1' },
    { key: '', value: '2' },
    { key: 'b', value: '3', ttlMs: 500, flags: 3 },
    { key: 'c', value: '4', ttlMs: -1 },
  ]);
  const error = t.throwsAsync(puts, { code: 'ERR_KEY_INVALID', message: /2 of 4 keys failed/ });
  await settle();
  const { cause } = await error;
  t.deepEqual(
    (cause as AggregateError).errors.map((e) => (e as FarkvError).code),
    ['ERR_KEY_INVALID', 'ERR_ARGUMENT'],
  );
  t.deepEqual((cause as BatchFailures).indexes, [1, 3]);
  t.deepEqual(native.log, ['put 0/a ttl 0 flags 0 codec 0', 'put 0/b ttl 500 flags 3 codec 0']);
});

test('deleteMany counts what was there, also of keys that had to wait or that a signal may end', async (t) => {
  const { native, kv, settle } = setup({ direct: false, maxQueued: 5000 });
  const keys = Array.from({ length: 3000 }, (_, i) => `k${i}`);
  for (const key of keys) native.store(key, Buffer.from('x'));
  const given = [...keys, 'none', 'k0'];
  const all = kv.deleteMany(given);
  given.fill('none');
  await settle();
  t.is(await all, 3000);
  t.is(native.entries.size, 0);
  native.store('a', Buffer.from('x'));
  const watched = kv.deleteMany(['a', 'b'], { signal: new AbortController().signal });
  await settle();
  t.is(await watched, 1);
  native.store('a', Buffer.from('x'));
  const failed = t.throwsAsync(kv.deleteMany(['a', '', 'b']), {
    code: 'ERR_KEY_INVALID',
    message: /^1 of 3 keys failed/,
  });
  await settle();
  await failed;
  t.is(native.entries.size, 0);
  await t.throwsAsync(kv.deleteMany('a' as never), { code: 'ERR_ARGUMENT' });
});
