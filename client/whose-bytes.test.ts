/**
 * Bytes that were handed out stay as they are: the memory of values, and what a drain makes of records that are not as
 * they should be.
 */
import test from 'ava';
import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import { CompletionField, NO_VALUE } from '../native/native-client.js';
import { ABSENT } from './batch-reads.js';
import type { Codec } from './codec.js';
import { DrainCursor } from './completion.js';
import { Status } from './errors.js';
import { POISON, Slab, SLAB_BYTES, ValueMemory } from './value-memory.js';
import { FakeNativeClient } from '../test/support/fake-native-client.js';
import { setup, text } from '../test/support/keyspace.js';
import { seeded } from '../test/support/random.js';

test('what a slab gives back is poisoned, and what is held is never given back', (t) => {
  const slab = new Slab();
  slab.memory.fill('x');
  slab.lend(100);
  t.is(slab.used, 104);
  slab.hold(40);
  slab.giveBack(0);
  t.is(slab.used, 40, 'not below what is held');
  t.deepEqual(slab.memory.subarray(40, 104), Buffer.alloc(64, POISON), 'the test runs with FARKV_POISON_SLABS=1');
  t.is(slab.memory.toString('latin1', 0, 40), 'x'.repeat(40));
  t.is(slab.memory.toString('latin1', 104, 110), 'xxxxxx');
});

test('a slab refuses what lies outside of it, and what was never lent', (t) => {
  const slab = new Slab();
  slab.hold(64);
  for (const end of [NO_VALUE, NO_VALUE + 64, SLAB_BYTES + 1, -1, Number.NaN]) {
    t.throws(() => slab.hold(end), { code: 'ERR_INTERNAL', message: /a value ends at/ });
    t.throws(() => slab.lend(end), { code: 'ERR_INTERNAL', message: /a value ends at/ });
  }
  t.throws(() => slab.giveBack(65), { code: 'ERR_INTERNAL', message: /were given back/ });
  t.is(slab.used, 64);
});

/**
 * A drain behind 48 bytes that are held, whose native side gives these records as [status, bytes, offset], and says
 * that it wrote so many bytes.
 */
function drained(
  records: readonly (readonly [number, number, number])[],
  written: number,
): { cursor: DrainCursor; slab: Slab } {
  const native = new FakeNativeClient();
  const values = new ValueMemory();
  native.drain = (rest) => {
    rest.set(Buffer.alloc(written, 'v'));
    records.forEach((record, i) => native.completions.set([i, ...record], i * CompletionField.Words));
    native.info[CompletionField.Bytes] = written;
    return records.length;
  };
  const cursor = new DrainCursor(native, values);
  const slab = values.ready();
  slab.memory.fill('h', 0, 48);
  slab.hold(48);
  cursor.drain();
  return { cursor, slab };
}

test('a record without a value has no bytes, and keeping them takes nothing back', (t) => {
  const { cursor, slab } = drained(
    [
      [Status.ok, 20, 0],
      [Status.ok, 0, NO_VALUE],
      [Status.ok, 0, 20],
    ],
    20,
  );
  const kept = cursor.value(true);
  t.is(text(kept), 'v'.repeat(20));
  cursor.at = CompletionField.Words;
  t.notThrows(() => t.is(cursor.value(true), undefined));
  cursor.at = 2 * CompletionField.Words;
  t.is(cursor.value(true)?.length, 0, 'a value of no bytes is a value');
  cursor.commit();
  t.is(slab.used, 72);
  t.is(text(kept), 'v'.repeat(20));
  t.is(slab.memory.toString('latin1', 0, 48), 'h'.repeat(48));
});

test('bytes that the drain did not write are refused, and what it handed out before stays', (t) => {
  const { cursor, slab } = drained(
    [
      [Status.ok, 20, 0],
      [Status.ok, 8, 13],
      [Status.ok, 0, NO_VALUE - 1],
      [Status.ok, NO_VALUE, 4],
    ],
    20,
  );
  const kept = cursor.value(true);
  for (const i of [1, 2, 3]) {
    cursor.at = i * CompletionField.Words;
    t.throws(() => cursor.value(true), { code: 'ERR_INTERNAL', message: /where 20 were written/ });
    t.throws(() => cursor.value(false), { code: 'ERR_INTERNAL', message: /where 20 were written/ });
  }
  cursor.commit();
  t.is(slab.used, 72);
  t.is(text(kept), 'v'.repeat(20));
});

test('a drained value that is not kept is poisoned when the drain is over, one that is kept stays', (t) => {
  const { cursor } = drained(
    [
      [Status.ok, 8, 0],
      [Status.ok, 8, 8],
    ],
    16,
  );
  const kept = cursor.value(true);
  cursor.at = CompletionField.Words;
  const lent = cursor.value(false);
  t.is(text(lent), 'vvvvvvvv');
  cursor.commit();
  t.is(text(kept), 'vvvvvvvv');
  t.deepEqual(lent, Buffer.alloc(8, POISON));
});

test('values that a codec takes for itself while it decodes are not given back with what it decoded', async (t) => {
  for (const direct of [true, false]) {
    const { native, kv, settle } = setup({ direct });
    const inner: (Buffer | undefined)[] = [];
    const nested: Codec<string, string> = {
      id: 20,
      name: 'nested',
      copies: true,
      encode: (value) => Buffer.from(value),
      decode: (bytes) => {
        inner.push(kv.getSync(`other ${inner.length}`));
        return bytes.toString();
      },
    };
    for (let i = 0; i < 60; i++) native.store(`other ${i}`, Buffer.from(`other ${i}|other|`));
    native.store('outer', Buffer.from('outer|outer|'), 20);
    const view = kv.withCodec(nested);
    for (let i = 0; i < 20; i++) {
      const get = view.get('outer');
      await settle();
      t.is(await get, 'outer|outer|');
      const many = view.getMany(['outer', 'outer']);
      await settle();
      t.deepEqual(await many, ['outer|outer|', 'outer|outer|']);
    }
    t.is(inner.length, 60);
    inner.forEach((value, i) => t.is(text(value), `other ${i}|other|`));
  }
});

test('a codec may close the client while it decodes: what had ended is answered, and the rest is ERR_CLOSED', async (t) => {
  const { native, kv, operations } = setup({ direct: false });
  const closing: Codec<string, string> = {
    id: 20,
    name: 'closing',
    encode: (value) => Buffer.from(value),
    decode: (bytes) => {
      operations.close();
      return bytes.toString();
    },
  };
  native.store('a', Buffer.from('alpha'), 20);
  const first = kv.withCodec(closing).get('a');
  const put = kv.put('b', 'beta');
  const get = kv.get('a');
  native.complete();
  const late = t.throwsAsync(kv.get('c'), { code: 'ERR_CLOSED' });
  t.notThrows(() => operations.drain());
  t.is(await first, 'alpha');
  await t.notThrowsAsync(put, 'it has taken effect');
  t.is(text(await get), 'alpha');
  await late;
  t.is(operations.unsettled, 0);
});

test('getMany and getManyInto give each key its own bytes, whatever is late, absent, empty, doubled or too large', async (t) => {
  const random = seeded(t, import.meta.filename);
  for (let round = 0; round < 150; round++) {
    const { native, kv, settle } = setup({ records: 8 + random.below(60), maxQueued: 10_000, timeoutMs: 120_000 });
    native.maxOutstanding = random.pick([5, 1000, 5000]);
    const names = Array.from({ length: 1 + random.below(60) }, (_, i) => `key ${i}`);
    const expected = new Map<string, string>();
    for (const name of names) {
      if (random.below(3) === 0) native.late.add(`0/${name}`);
      if (random.below(5) === 0) continue;
      const value = Buffer.alloc(
        random.pick([0, 1, 7, 8, 30, 200, random.below(20) === 0 ? SLAB_BYTES + 9 : 50]),
        `${name}|`,
      );
      native.store(name, value);
      expected.set(name, String(value));
    }
    const keys = Array.from({ length: random.pick([1, 10, 300, 1024, 1025, 2500]) }, () => random.pick(names));
    const right = keys.map((key) => expected.get(key));
    const needed = right.reduce((sum, value) => sum + (value?.length ?? 0), 0);
    const room = random.pick([needed, needed, needed + 100, Math.max(0, needed - 1), random.below(needed + 1)]);
    const target = Buffer.alloc(room + 16, '.');
    const spans = new Uint32Array(2 * keys.length);
    const many = kv.getMany(keys);
    const into = (async () => kv.getManyInto(keys, target.subarray(0, room), spans))().catch((error: unknown) => error);
    await settle();
    t.deepEqual((await many).map(text), right);
    const answer = await into;
    if (room >= needed) t.is(answer, needed);
    else t.like(answer, { code: 'ERR_BUFFER_TOO_SMALL' });
    t.is(target.toString('latin1', room), '.'.repeat(16));
    const seen = keys.map((_, i) => {
      const [from = 0, length = 0] = spans.subarray(2 * i, 2 * i + 2);
      return from === ABSENT ? undefined : target.toString('latin1', from, from + length);
    });
    // Also where not all did fit: what is there is right, the rest is absent.
    if (room >= needed) t.deepEqual(seen, right);
    else seen.forEach((value, i) => t.true(value === undefined || value === right[i]));
  }
});

test('what waits for room is not changed by what the caller does to its buffers after the call', async (t) => {
  const { kv, native, settle } = setup({ direct: false });
  native.maxOutstanding = 1;
  native.store('read', Buffer.from('right'));
  native.store('gone', Buffer.from('deleted'));
  const version = native.store('swapped', Buffer.from('before'));
  const first = kv.put('first', 'holds the only place');
  const buffers = ['put', 'many', 'gone', 'swapped', 'read'].map((key) => Buffer.from(key));
  const [put, many, gone, swapped, read] = buffers as [Buffer, Buffer, Buffer, Buffer, Buffer];
  const values = ['value of put', 'value of many', 'value of swapped'].map((value) => Buffer.from(value));
  const [ofPut, ofMany, ofSwapped] = values as [Buffer, Buffer, Buffer];
  const target = Buffer.alloc(5);
  const ends = Promise.all([
    kv.put(put, ofPut),
    kv.putMany([{ key: many, value: ofMany }]),
    kv.delete(gone),
    kv.compareAndSwap(swapped, version, ofSwapped),
    kv.get(read),
    kv.getInto(read, target),
    kv.getMany([read]),
  ]);
  for (const buffer of [...buffers, ...values]) buffer.fill('?');
  while (native.outstanding.length > 0) await settle();
  await first;
  const [, , deleted, , value, , [inBatch]] = await ends;
  t.true(deleted);
  t.deepEqual([text(value), String(target), text(inBatch)], ['right', 'right', 'right']);
  const stored = new Map([...native.entries].map(([name, entry]) => [name, Buffer.from(entry.value).toString()]));
  t.deepEqual([...stored.keys()].sort(), ['0/first', '0/many', '0/put', '0/read', '0/swapped']);
  t.deepEqual(
    ['0/put', '0/many', '0/swapped'].map((name) => stored.get(name)),
    ['value of put', 'value of many', 'value of swapped'],
  );
});

test('changes that go alone behind another batch are not changed by what the caller does after the call', async (t) => {
  const { kv, native, settle } = setup({ direct: false, maxOutstanding: 1 });
  native.maxOutstanding = 1;
  const first = kv.putMany(['a', 'b', 'c'].map((key) => ({ key, value: `before ${key}` })));
  const buffers = ['expires', 'in time', 'signal', 'by signal'].map((text) => Buffer.from(text));
  const [expires, inTime, signal, bySignal] = buffers as [Buffer, Buffer, Buffer, Buffer];
  const ends = Promise.all([
    kv.putMany([{ key: expires, value: inTime, ttlMs: 3_600_000 }]),
    kv.putMany([{ key: signal, value: bySignal }], { signal: new AbortController().signal }),
  ]);
  for (const buffer of buffers) buffer.fill('?');
  while (native.outstanding.length > 0) await settle();
  await Promise.all([first, ends]);
  const stored = Object.fromEntries([...native.entries].map(([name, entry]) => [name, text(Buffer.from(entry.value))]));
  t.deepEqual(stored, {
    '0/a': 'before a',
    '0/b': 'before b',
    '0/c': 'before c',
    '0/expires': 'in time',
    '0/signal': 'by signal',
  });
});

test('keys of a batch that waits for its first place are not changed by what the caller does to them after the call', async (t) => {
  const { kv, native, settle } = setup({ direct: false, maxOutstanding: 1 });
  native.maxOutstanding = 1;
  native.store('read', Buffer.from('right'));
  const first = kv.put('first', 'holds the only place');
  const read = Buffer.from('read');
  const many = kv.getMany([read]);
  read.fill('?');
  while (native.outstanding.length > 0) await settle();
  await first;
  t.deepEqual((await many).map(text), ['right']);
});

test('a slab whose memory somebody has taken away is left for another one', (t) => {
  // As ArrayBuffer.prototype.transfer does, which Node.js 20 does not have.
  setFlagsFromString('--allow-natives-syntax');
  const detach = runInThisContext('(memory) => %ArrayBufferDetach(memory)') as (memory: ArrayBufferLike) => void;
  const values = new ValueMemory();
  const slab = values.ready();
  slab.hold(100);
  t.is(values.ready(), slab);
  detach(slab.memory.buffer);
  t.is(slab.memory.length, 0);
  const next = values.ready();
  t.not(next, slab);
  t.is(next.memory.length, SLAB_BYTES);
});
