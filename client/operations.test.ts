import test from 'ava';
import { setImmediate as turn } from 'node:timers/promises';
import { FakeNativeClient } from '../test/support/fake-native-client.js';
import { seeded } from '../test/support/random.js';
import { BatchPuts } from './batch-puts.js';
import { ABSENT, BatchReads } from './batch-reads.js';
import { Keyspace, resolveCodec } from './client.js';
import { bufferCodec, type Codec } from './codec.js';
import { FarkvError, Status } from './errors.js';
import { Operations } from './operations.js';
import { Scanner } from './scan.js';
import { SLAB_BYTES, ValueMemory } from './value-memory.js';

interface Setup {
  readonly native: FakeNativeClient;
  readonly operations: Operations;
  readonly kv: Keyspace<Uint8Array | string, Buffer>;
  /** Finishes everything, as often as something new is posted. */
  readonly settle: () => Promise<void>;
}

function setup(options: { readonly direct?: boolean; readonly maxQueued?: number; readonly timeoutMs?: number; readonly records?: number } = {}): Setup {
  const native = new FakeNativeClient(options.records);
  native.direct = options.direct ?? true;
  const operations = new Operations(native, new ValueMemory(), options.maxQueued ?? 1000, (shard) => `nobody answers for shard ${shard}`);
  const shared = { operations, batches: new BatchReads(native, operations), puts: new BatchPuts(native, operations), scanner: new Scanner(operations, { first: 0, count: 2 }), defaults: { timeoutMs: options.timeoutMs ?? 1000 } };
  const settle = async (): Promise<void> => {
    await turn();
    while (native.outstanding.length > 0 || native.ready.length > 0) {
      native.complete();
      operations.drain();
      await turn();
    }
  };
  return { native, operations, kv: new Keyspace(shared, 0, bufferCodec), settle };
}

const text = (value: Buffer | undefined): string | undefined => value?.toString();

for (const direct of [true, false]) {
  const how = direct ? 'at once' : 'later';

  test(`get, getEntry and getInto answer ${how}`, async (t) => {
    const { native, kv, settle } = setup({ direct });
    const version = native.store('a', Buffer.from('alpha'), 7, 99);
    const target = Buffer.alloc(10, '.');
    const all = Promise.all([kv.get('a'), kv.get('b'), kv.getEntry('a'), kv.getEntry('b'), kv.getInto('a', target, 2), kv.getInto('b', target)]);
    await settle();
    const [a, b, entry, none, bytes, missing] = await all;
    t.is(text(a), 'alpha');
    t.is(b, undefined);
    t.deepEqual({ ...entry, value: text(entry?.value) }, { value: 'alpha', version, flags: 99 });
    t.is(none, undefined);
    t.is(bytes, 5);
    t.is(missing, undefined);
    t.is(target.toString(), '..alpha...');
  });

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
    t.deepEqual(seen, expected.map((value) => value?.toString('latin1') ?? 'absent 0'));
    t.deepEqual([...spans.subarray(2 * keys.length)], [7, 7, 7], 'beyond its two numbers a key nothing is written');
    t.is(target.toString('latin1', needed, needed + 20), '.'.repeat(20));
    t.is(native.held, 0);

    const small = Promise.resolve().then(() => kv.getManyInto(keys, Buffer.alloc(10), spans));
    const refused = t.throwsAsync(small, { code: 'ERR_BUFFER_TOO_SMALL', message: new RegExp(`has ${needed} bytes, there is room for 10`) });
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

  test(`a key that cannot be read leaves nothing under way that nobody waits for (${how})`, async (t) => {
    const { native, kv, settle } = setup({ direct });
    native.store('a', Buffer.from('alpha'));
    const keys: string[] = Object.defineProperty(['a', 'b'], 1, {
      get: () => {
        throw new Error('no such luck');
      },
    });
    await t.throwsAsync(kv.getMany(keys), { message: 'no such luck' });
    t.throws(() => kv.getManyInto(keys, Buffer.alloc(10), new Uint32Array(4)), { message: 'no such luck' });
    await settle();
    const after = kv.get('a');
    await settle();
    t.is(text(await after), 'alpha');
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
    t.deepEqual((await many).map(text), keys.map((_, i) => `v${i}`));
    await into;
    t.deepEqual(keys.map((_, i) => target.toString('latin1', spans[2 * i], (spans[2 * i] ?? 0) + (spans[2 * i + 1] ?? 0))), keys.map((_, i) => `v${i}`));
  });

  test(`values that were handed out are never written again, whatever their sizes (${how})`, async (t) => {
    const random = seeded(t, import.meta.filename);
    const { native, kv, settle } = setup({ direct, records: 8 });
    const sizes = [0, 1, 7, 100, 5000, 16_384, 16_385, 30_000, SLAB_BYTES - 1, SLAB_BYTES, SLAB_BYTES + 1, 200_000];
    const expected = new Map<string, Buffer>();
    for (let i = 0; i < 60; i++) {
      const value = Buffer.alloc(random.pick(sizes), String.fromCharCode(33 + i));
      native.store(`k${i}`, value);
      expected.set(`k${i}`, value);
    }
    const got: (readonly [string, Buffer | undefined])[] = [];
    for (let round = 0; round < 20; round++) {
      const keys = Array.from({ length: 1 + random.below(20) }, () => `k${random.below(60)}`);
      const single = keys.map(async (key) => got.push([key, await kv.get(key)]));
      const many = kv.getMany(keys).then((values) => values.forEach((value, i) => got.push([keys[i] ?? '', value])));
      await settle();
      await Promise.all([...single, many]);
    }
    for (const [key, value] of got) if (value?.equals(expected.get(key)!) !== true) t.fail(`${key} changed after it was handed out`);
    t.is(native.held, 0);
    t.pass();
  });
}

test('getInto says how much room a value needs', async (t) => {
  for (const direct of [true, false]) {
    const { native, kv, settle } = setup({ direct });
    native.store('a', Buffer.alloc(100));
    native.store('large', Buffer.alloc(SLAB_BYTES + 5, 'x'));
    const failing = (async () => kv.getInto('a', Buffer.alloc(50), 10))();
    const large = (async () => kv.getInto('large', Buffer.alloc(50)))();
    const room = Buffer.alloc(SLAB_BYTES + 10);
    const fits = (async () => kv.getInto('large', room, 5))();
    await Promise.allSettled([settle()]);
    const error = await t.throwsAsync(failing, { instanceOf: FarkvError, code: 'ERR_BUFFER_TOO_SMALL' });
    t.regex(error.message, /the value has 100 bytes, there is room for 40/);
    await t.throwsAsync(large, { code: 'ERR_BUFFER_TOO_SMALL' });
    t.is(await fits, SLAB_BYTES + 5);
    t.is(room.toString('latin1', 5), 'x'.repeat(SLAB_BYTES + 5));
    t.is(native.held, 0);
  }
});

test('a loop that awaits answers at once lets timers run', async (t) => {
  const { native, kv } = setup();
  native.store('a', Buffer.from('x'));
  const timer = { fired: false };
  setTimeout(() => (timer.fired = true), 1);
  const target = Buffer.alloc(1);
  for (let i = 0; i < 1e7 && !timer.fired; i++) await (i % 2 === 0 ? kv.get('a') : kv.getInto('a', target));
  t.true(timer.fired);
});

test('puts that are posted in one microtask ring one doorbell', async (t) => {
  const { native, kv, settle } = setup();
  const puts = Array.from({ length: 50 }, (_, i) => kv.put(`k${i}`, 'v'));
  await Promise.resolve();
  t.is(native.flushes, 1);
  await settle();
  await Promise.all(puts);
  t.is(native.entries.size, 50);
});

test('what does not fit is queued, and posted in order', async (t) => {
  const { native, operations, kv, settle } = setup({ direct: false });
  native.maxOutstanding = 3;
  const done: string[] = [];
  const all = Array.from({ length: 20 }, (_, i) => kv.put('same', String(i)).then(() => done.push(String(i))));
  const read = kv.get('same');
  t.is(operations.unsettled, 21);
  t.is(native.outstanding.length, 3);
  await settle();
  await Promise.all(all);
  t.deepEqual(done, Array.from({ length: 20 }, (_, i) => String(i)));
  t.is(text(await read), '19');
});

test('a put does not overtake those that are queued, also when there is room again', async (t) => {
  const { native, kv, settle } = setup();
  native.maxOutstanding = 1;
  const first = kv.put('a', '1');
  const second = kv.put('a', '2');
  native.complete();
  const third = kv.put('a', '3');
  await settle();
  await Promise.all([first, second, third]);
  t.deepEqual(native.entries.get('0/a')?.value, Uint8Array.from(Buffer.from('3')));
});

test('the queue has an end', async (t) => {
  const { native, kv, settle } = setup({ maxQueued: 2 });
  native.maxOutstanding = 1;
  const results = Promise.allSettled(Array.from({ length: 5 }, (_, i) => kv.put(`k${i}`, 'v')));
  await settle();
  const codes = (await results).map((r) => (r.status === 'fulfilled' ? 'ok' : (r.reason as FarkvError).code));
  t.deepEqual(codes, ['ok', 'ok', 'ok', 'ERR_BUSY', 'ERR_BUSY']);
});

test('what waits in the queue for too long ends with ERR_TIMEOUT, and was never sent', async (t) => {
  const { native, kv } = setup();
  native.maxOutstanding = 1;
  const first = kv.put('a', '1');
  await t.throwsAsync(kv.put('b', '2', { timeoutMs: 20 }), { code: 'ERR_TIMEOUT' });
  t.is(native.log.length, 1);
  native.close();
  void first.catch(() => undefined);
});

test('an AbortSignal ends what is outstanding, what is queued, and what has not begun; its reason is the cause', async (t) => {
  const { native, operations, kv } = setup({ direct: false });
  native.maxOutstanding = 1;
  const abort = new AbortController();
  const { signal } = abort;
  const outstanding = kv.get('a', { signal });
  const queued = kv.put('b', 'x', { signal });
  const many = kv.getMany(['c', 'd'], { signal });
  const reason = new Error('changed my mind');
  abort.abort(reason);
  operations.drain();
  for (const each of [outstanding, queued, kv.get('z', { signal }), kv.delete('z', { signal })]) {
    const error = await t.throwsAsync(each, { instanceOf: FarkvError, code: 'ERR_ABORTED' });
    t.is(error.cause, reason);
  }
  await t.throwsAsync(many, { code: 'ERR_ABORTED' });
  t.deepEqual(native.log, []);
  t.is(operations.unsettled, 0);
  await t.throwsAsync(async () => kv.getInto('z', Buffer.alloc(1), 0, { signal }), { code: 'ERR_ABORTED' });
});

test('a change that was sent when its signal fired is indeterminate, and the signal\'s reason its cause', async (t) => {
  const { native, operations, kv } = setup({ direct: false });
  const reason = new Error('changed my mind');
  const abort = new AbortController();
  const put = kv.put('a', 'x', { signal: abort.signal });
  native.sent = true;
  abort.abort(reason);
  operations.drain();
  const error = await t.throwsAsync(put, { instanceOf: FarkvError, code: 'ERR_INDETERMINATE' });
  t.is(error.cause, reason);
});

test('a shared AbortSignal has one listener, and none when the operations are over', async (t) => {
  const { kv, settle } = setup({ direct: false });
  const abort = new AbortController();
  let listeners = 0;
  const { signal } = abort;
  const add = signal.addEventListener.bind(signal) as (...args: unknown[]) => void;
  const remove = signal.removeEventListener.bind(signal) as (...args: unknown[]) => void;
  signal.addEventListener = (...args: unknown[]) => {
    listeners++;
    add(...args);
  };
  signal.removeEventListener = (...args: unknown[]) => {
    listeners--;
    remove(...args);
  };
  const gets = Array.from({ length: 100 }, (_, i) => kv.get(`k${i}`, { signal }));
  t.is(listeners, 1);
  await settle();
  await Promise.all(gets);
  t.is(listeners, 0);
});

test('close ends everything with ERR_CLOSED, and what comes after too', async (t) => {
  const { native, operations, kv } = setup({ direct: false });
  native.maxOutstanding = 2;
  const all = [kv.get('a'), kv.put('b', 'x'), kv.put('c', 'x'), kv.delete('d'), kv.getMany(['e', 'f'])].map((p) => t.throwsAsync(p as Promise<unknown>, { code: 'ERR_CLOSED' }));
  operations.close();
  operations.close();
  await Promise.all(all);
  await t.throwsAsync(kv.get('a'), { code: 'ERR_CLOSED' });
  await t.throwsAsync(kv.put('a', 'x'), { code: 'ERR_CLOSED' });
  await t.throwsAsync(kv.getMany(['a']), { code: 'ERR_CLOSED' });
  t.throws(() => kv.getSync('a'), { code: 'ERR_CLOSED' });
  t.throws(() => kv.getInto('a', Buffer.alloc(1)), { code: 'ERR_CLOSED' });
});

test('statuses become errors with their code', async (t) => {
  const { native, operations, kv } = setup();
  const put = kv.put('a', 'x');
  native.fail(4);
  operations.drain();
  await t.throwsAsync(put, { instanceOf: FarkvError, code: 'ERR_VALUE_TOO_LARGE' });
});

test('bad keys are refused with what is wrong, and are not repeated', async (t) => {
  const { kv } = setup();
  await t.throwsAsync(kv.get(''), { code: 'ERR_KEY_INVALID', message: /this one is empty/ });
  await t.throwsAsync(kv.put('secret'.repeat(200), 'x'), { code: 'ERR_KEY_INVALID', message: /^((?!secret).)*this one has 1200 in UTF-8\)$/ });
  await t.throwsAsync(kv.delete('ü'.repeat(513)), { code: 'ERR_KEY_INVALID', message: /1026/ });
  await t.throwsAsync(kv.get(new Uint8Array(1025)), { code: 'ERR_KEY_INVALID', message: /1025/ });
  await t.throwsAsync(kv.get(5 as unknown as string), { code: 'ERR_KEY_INVALID', message: /of type number/ });
  await t.throwsAsync(kv.get(null as unknown as string), { code: 'ERR_KEY_INVALID', message: /null/ });
  await t.throwsAsync(kv.getMany(['a', '', 'b']), { code: 'ERR_KEY_INVALID', message: /1 of 3 keys failed/ });
  t.throws(() => kv.getSync({} as unknown as string), { code: 'ERR_KEY_INVALID' });
  t.throws(() => kv.getInto([] as unknown as string, Buffer.alloc(1)), { code: 'ERR_KEY_INVALID' });
});

test('bad arguments are refused before anything is sent', async (t) => {
  const { native, kv } = setup();
  const bad = (promise: Promise<unknown>) => t.throwsAsync(promise, { instanceOf: FarkvError, code: 'ERR_ARGUMENT' });
  const any = (value: unknown) => value as never;
  await bad(kv.put('a', any(5)));
  await bad(kv.put('a', any(null)));
  await bad(kv.put('a', any({ length: 3 })));
  for (const ttlMs of [0, -1, 1.5, Number.NaN, 2 ** 50, '5']) await bad(kv.put('a', 'x', { ttlMs: any(ttlMs) }));
  for (const flags of [-1, 2 ** 32, 0.5, '1']) await bad(kv.put('a', 'x', { flags: any(flags) }));
  for (const timeoutMs of [0, -5, 1e12, Number.NaN, '1s']) await bad(kv.get('a', { timeoutMs: any(timeoutMs) }));
  await bad(kv.get('a', { signal: any({ aborted: false }) }));
  for (const version of [1, '1', -1n, 1n << 64n, undefined]) await bad(kv.compareAndSwap('a', any(version), 'x'));
  await bad(kv.getMany(any('abc')));
  await bad(kv.putMany(any(['abc'])));
  await bad(kv.putMany(any([{ key: 'a', value: 'b' }, undefined])));
  await bad(Promise.resolve().then(() => kv.getManyInto(any('abc'), Buffer.alloc(1), new Uint32Array(8))));
  await bad(Promise.resolve().then(() => kv.getManyInto(['a', 'b'], Buffer.alloc(1), new Uint32Array(3))));
  await bad(Promise.resolve().then(() => kv.getManyInto(['a'], any([]), new Uint32Array(3))));
  await bad(kv.scanPage({ batch: any(0) }));
  await bad(kv.scanPage({ cursor: 'nonsense' }));
  await bad(kv.scanPage({ cursor: '7.0' }));
  for (const target of ['text', new ArrayBuffer(5), new Uint16Array(5)]) t.throws(() => kv.getInto('a', any(target)), { code: 'ERR_ARGUMENT' });
  for (const offset of [-1, 6, 0.5, Number.NaN]) t.throws(() => kv.getInto('a', new Uint8Array(5), offset), { code: 'ERR_ARGUMENT' });
  for (const ns of [-1, 65_536, 0.5, 'users']) t.throws(() => kv.namespace(any(ns)), { code: 'ERR_ARGUMENT' });
  t.throws(() => kv.withCodec(any('json')), { code: 'ERR_ARGUMENT' });
  t.deepEqual(native.log, []);
});

test('compare-and-swap says what is there now', async (t) => {
  const { native, kv, settle } = setup();
  const version = native.store('a', Buffer.from('1'));
  const all = Promise.all([kv.compareAndSwap('a', version + 5n, '2'), kv.compareAndSwap('a', version, '2'), kv.compareAndSwap('new', 0n, 'x'), kv.compareAndDelete('gone', 7n)]);
  await settle();
  const [lost, won, made, gone] = await all;
  t.deepEqual(lost, { swapped: false, version });
  t.true(won.swapped && won.version > version);
  t.true(made.swapped);
  t.deepEqual(gone, { swapped: false, version: 0n });
});

test('getManyInto is ended by a signal, and by close', async (t) => {
  const { native, kv, operations, settle } = setup({ direct: false });
  native.store('a', Buffer.from('alpha'));
  const stop = new AbortController();
  const spans = new Uint32Array(4);
  const target = Buffer.alloc(10);
  const stopped = t.throwsAsync(Promise.resolve(kv.getManyInto(['a', 'b'], target, spans, { signal: stop.signal })), { code: 'ERR_ABORTED' });
  stop.abort(new Error('enough'));
  await settle();
  await stopped;
  const closed = t.throwsAsync(Promise.resolve(kv.getManyInto(['a', 'b'], target, spans)), { code: 'ERR_CLOSED' });
  operations.close();
  await closed;
  t.throws(() => kv.getManyInto(['a'], target, spans), { code: 'ERR_CLOSED' });
});

test('putMany posts in the order of its items, behind what waits already, and goes on when there is room', async (t) => {
  const { native, kv, settle } = setup({ direct: false });
  native.maxOutstanding = 3;
  const items = Array.from({ length: 10 }, (_, i) => ({ key: `k${i}`, value: `v${i}` }));
  const first = kv.putMany(items);
  const second = kv.putMany(items.map(({ key }) => ({ key, value: 'later' })));
  await settle();
  await Promise.all([first, second]);
  t.deepEqual(native.log.map((line) => line.split(' ')[1]), [...items, ...items].map(({ key }) => `0/${key}`));
  t.deepEqual(new Set([...native.entries.values()].map(({ value }) => Buffer.from(value).toString())), new Set(['later']));
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
      // The first that is encoded again, because there was no room for it.
      if (++encoded === 11) {
        native.maxOutstanding = 100;
        inner.push(kv.putMany(Array.from({ length: 10 }, (_, i) => ({ key: `inner${i}`, value: 'inner' }))));
      }
      return Buffer.from(value);
    },
    decode: String,
  };
  const outer = kv.withCodec(nested).putMany(Array.from({ length: 10 }, (_, i) => ({ key: `outer${i}`, value: 'outer' })));
  await settle();
  await outer;
  await Promise.all(inner);
  t.is(inner.length, 1);
  t.is([...native.entries.keys()].filter((key) => key.startsWith('0/outer')).length, 10);
  t.is([...native.entries.keys()].filter((key) => key.startsWith('0/inner')).length, 10);
});

test('a batch fails with the code of the first key that failed, whichever ended first', async (t) => {
  const { native, kv, settle } = setup({ direct: false });
  const puts = t.throwsAsync(kv.putMany([{ key: 'a', value: '1' }, { key: '', value: '2' }]), { code: 'ERR_INDETERMINATE', message: /2 of 2 keys failed/ });
  await turn();
  native.fail(Status.indeterminate);
  await settle();
  await puts;
  const gone = t.throwsAsync(kv.getMany(['a', 'b']), { code: 'ERR_SHARD_UNAVAILABLE', message: /nobody answers for shard 0/ });
  await turn();
  native.fail(Status.shardUnavailable);
  await settle();
  await gone;
});

test('putMany fails after all have ended, with all failures in its cause', async (t) => {
  const { native, kv, settle } = setup();
  const puts = kv.putMany([{ key: 'a', value: '1' }, { key: '', value: '2' }, { key: 'b', value: '3', ttlMs: 500, flags: 3 }, { key: 'c', value: '4', ttlMs: -1 }]);
  const error = t.throwsAsync(puts, { code: 'ERR_KEY_INVALID', message: /2 of 4 keys failed/ });
  await settle();
  const { cause } = await error;
  t.deepEqual((cause as AggregateError).errors.map((e) => (e as FarkvError).code), ['ERR_KEY_INVALID', 'ERR_ARGUMENT']);
  t.deepEqual(native.log, ['put 0/a ttl 0 flags 0 codec 0', 'put 0/b ttl 500 flags 3 codec 0']);
});

test('namespaces are kept apart', async (t) => {
  const { native, kv, settle } = setup();
  const put = kv.namespace(7).put('a', 'seven');
  await settle();
  await put;
  t.deepEqual([...native.entries.keys()], ['7/a']);
  t.is(text(await kv.namespace(7).get('a')), 'seven');
  t.is(await kv.get('a'), undefined);
});

test('msgpack values come back as they were; another codec refuses them; buffer reads their bytes', async (t) => {
  const { native, kv, settle } = setup();
  const typed = kv.withCodec('msgpack');
  const values = [{ name: 'Ada', tags: ['x', 'y'], at: new Date(0), raw: Buffer.from([1, 2, 3]) }, [1, -2, 3.5, 2 ** 40], 'text', null, false, 12n ** 15n, new Set([1, 2])];
  for (const value of values) {
    const put = typed.put('v', value);
    await settle();
    await put;
    t.deepEqual(await typed.get('v'), value);
  }
  await t.throwsAsync(typed.put('v', undefined), { code: 'ERR_ARGUMENT', message: /undefined/ });
  await t.throwsAsync(typed.put('v', Symbol('v')), { code: 'ERR_ARGUMENT' });
  t.true(Buffer.isBuffer(await kv.get('v')));
  native.store('plain', Buffer.from('plain bytes'));
  await t.throwsAsync(typed.get('plain'), { code: 'ERR_CORRUPT', message: /written with codec 0/ });
  native.store('broken', Buffer.from([0x92, 0xa5]), 1);
  await t.throwsAsync(typed.get('broken'), { code: 'ERR_CORRUPT', message: /could not decode/ });
});

test('a decoded msgpack value does not lie in memory that is used again', async (t) => {
  for (const direct of [true, false]) {
    const { kv, native, settle } = setup({ direct });
    const typed = kv.withCodec<{ readonly bytes: Buffer }>('msgpack');
    for (let i = 0; i < 20; i++) {
      const put = typed.put(`k${i}`, { bytes: Buffer.alloc(100, i) });
      native.direct = direct;
      await settle();
      await put;
    }
    const gets = Array.from({ length: 20 }, (_, i) => typed.get(`k${i}`));
    await settle();
    for (const [i, value] of (await Promise.all(gets)).entries()) t.deepEqual(value?.bytes, Buffer.alloc(100, i));
  }
});

test('a codec of the program may call the client while it decodes', async (t) => {
  for (const direct of [true, false]) {
    const { kv, native, settle } = setup({ direct });
    const inner: Promise<Buffer | undefined>[] = [];
    const nested: Codec<string, string> = {
      id: 20,
      name: 'nested',
      encode: (value) => Buffer.from(value),
      decode: (bytes) => {
        inner.push(kv.get('other'));
        kv.getSync('other');
        return bytes.toString();
      },
    };
    native.store('other', Buffer.alloc(3000, '#'));
    for (let i = 0; i < 30; i++) native.store(`k${i}`, Buffer.alloc(2000, 65 + i), 20);
    const view = kv.withCodec(nested);
    const keys = Array.from({ length: 30 }, (_, i) => `k${i}`);
    const gets = Promise.all([...keys.map((key) => view.get(key)), view.getMany(keys)]);
    await settle();
    const results = await gets;
    const expected = keys.map((_, i) => String.fromCharCode(65 + i).repeat(2000));
    t.deepEqual(results.slice(0, 30), expected);
    t.deepEqual(results[30], expected);
    await settle();
    for (const value of await Promise.all(inner)) t.is(value?.toString(), '#'.repeat(3000));
  }
});

test('codecs are checked', (t) => {
  const codec = (id: number) => ({ id, name: 'mine', encode: (v: string) => Buffer.from(v), decode: String });
  t.notThrows(() => resolveCodec(codec(16)));
  for (const id of [-1, 2, 15, 256, 1.5]) t.throws(() => resolveCodec(codec(id)), { code: 'ERR_ARGUMENT' });
  t.throws(() => resolveCodec({ id: 16, name: 'x' } as never), { code: 'ERR_ARGUMENT' });
});

test('a codec that throws or gives no bytes fails the put', async (t) => {
  const { kv } = setup();
  const cause = new Error('no');
  const thrower = kv.withCodec<string, string>({ id: 16, name: 'thrower', encode: () => { throw cause; }, decode: String });
  const error = await t.throwsAsync(thrower.put('a', 'x'), { code: 'ERR_ARGUMENT' });
  t.is(error.cause, cause);
  await t.throwsAsync(kv.withCodec({ id: 16, name: 'odd', encode: () => 'text' as never, decode: String }).put('a', 'x'), { code: 'ERR_ARGUMENT' });
});

function scanBody(entries: readonly { readonly key: string; readonly value?: string; readonly valueBytes?: number }[]): Buffer {
  return Buffer.concat(entries.map(({ key, value, valueBytes }) => {
    const head = Buffer.alloc(32);
    head.writeBigUInt64LE(77n, 0);
    head.writeBigUInt64LE(1234n, 8);
    head.writeUInt32LE(valueBytes ?? value?.length ?? 0, 16);
    head.writeUInt32LE(5, 20);
    head.writeUInt16LE(key.length, 24);
    head[27] = value === undefined ? 0 : 1;
    return Buffer.concat([head, Buffer.from(key), Buffer.from(value ?? '')]);
  }));
}

test('a scan walks through the shards, page by page', async (t) => {
  const { native, kv, settle } = setup();
  const steps = () => [
    { body: scanBody([{ key: 'a' }, { key: 'b' }]), next: 5n },
    { body: scanBody([]), next: 0n },
    { body: scanBody([{ key: 'c' }]), next: 0n },
  ];
  native.scanBodies = steps();
  const page = kv.scanPage({ batch: 2 });
  await settle();
  const { entries, cursor } = await page;
  t.deepEqual(entries.map(({ key, ...rest }) => ({ key: key.toString(), ...rest })), [
    { key: 'a', version: 77n, flags: 5, expiresAtMs: 1234 },
    { key: 'b', version: 77n, flags: 5, expiresAtMs: 1234 },
  ]);
  t.is(cursor, '0.5');
  const rest = kv.scanPage({ batch: 2, cursor: '0.5' });
  await settle();
  t.deepEqual((await rest).entries.map(({ key }) => key.toString()), ['c']);
  t.is((await rest).cursor, undefined);
  t.deepEqual(native.log, ['scan 0 0 0 2 false', 'scan 0 0 5 2 false', 'scan 0 1 0 2 false']);
});

test('a scan with values reads by itself what did not fit, and leaves out what is gone', async (t) => {
  const { native, kv, settle } = setup();
  native.store('large', Buffer.alloc(100_000, 'L'));
  native.scanBodies = [{ body: scanBody([{ key: 'small', value: 'S' }, { key: 'large', valueBytes: 100_000 }, { key: 'gone', valueBytes: 9 }]), next: 0n }];
  const found: string[] = [];
  const walk = (async () => {
    for await (const { key, value } of kv.scan({ values: true })) found.push(`${key.toString()} ${value.length}`);
  })();
  for (let i = 0; i < 5; i++) await settle();
  await walk;
  t.deepEqual(found, ['small 1', 'large 100000']);
});

test('a scan page larger than a slab is taken whole', async (t) => {
  const { native, kv, settle } = setup();
  const many = Array.from({ length: 2000 }, (_, i) => ({ key: `key-${i}`, value: 'v'.repeat(50) }));
  native.scanBodies = [{ body: scanBody(many), next: 0n }];
  const page = kv.scanPage({ values: true, batch: 4096 });
  await settle();
  await settle();
  t.is((await page).entries.length, 2000);
  t.is(native.held, 0);
});

test('a scan reply that ends within an entry is refused', async (t) => {
  const { native, kv, settle } = setup();
  native.scanBodies = [{ body: scanBody([{ key: 'abc', value: 'xyz' }]).subarray(0, 36), next: 0n }];
  const page = t.throwsAsync(kv.scanPage({ values: true }), { code: 'ERR_PROTOCOL' });
  await settle();
  await page;
});

test('completions for operations that nobody waits for are a broken invariant', (t) => {
  const { native, operations } = setup();
  native.put(0, 'a', Buffer.from('x'), 0, 0, 0);
  native.complete();
  t.throws(() => operations.drain(), { code: 'ERR_INTERNAL' });
});

test('a shard that nobody answers for is explained, whichever way the answer comes', async (t) => {
  for (const direct of [true, false]) {
    const { native, operations, kv } = setup({ direct });
    const absent = { code: 'ERR_SHARD_UNAVAILABLE', message: /\(nobody answers for shard 0\)/ };
    if (direct) {
      native.refusal = Status.shardUnavailable;
      t.throws(() => kv.getSync('a'), absent);
      t.throws(() => kv.getInto('a', Buffer.alloc(8)), absent);
      t.throws(() => kv.getIntoSync('a', Buffer.alloc(8)), absent);
    }
    const all = [kv.get('a'), kv.getEntry('a'), kv.getMany(['a', 'b']), kv.put('a', 'x'), kv.delete('a'), kv.compareAndSwap('a', 0n, 'x'), kv.scanPage()];
    await turn();
    native.fail(Status.shardUnavailable);
    operations.drain();
    for (const one of all) await t.throwsAsync(one, absent);
  }
});
