import test from 'ava';
import { setImmediate as turn } from 'node:timers/promises';
import { seeded } from '../test/support/random.js';
import { FarkvError, Status } from './errors.js';
import { SLAB_BYTES } from './value-memory.js';
import { setup, text } from '../test/support/keyspace.js';

for (const direct of [true, false]) {
  const how = direct ? 'at once' : 'later';

  test(`get, getEntry and getInto answer ${how}`, async (t) => {
    const { native, kv, settle } = setup({ direct });
    const version = native.store('a', Buffer.from('alpha'), 7, 99);
    const target = Buffer.alloc(10, '.');
    const all = Promise.all([
      kv.get('a'),
      kv.get('b'),
      kv.getEntry('a'),
      kv.getEntry('b'),
      kv.getInto('a', target, 2),
      kv.getInto('b', target),
    ]);
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

  test(`a key that cannot be read leaves nothing under way that nobody waits for (${how})`, async (t) => {
    const { native, kv, settle } = setup({ direct });
    native.store('a', Buffer.from('alpha'));
    const keys: string[] = Object.defineProperty(['a', 'b'], 1, {
      get: () => {
        throw new Error('no such luck');
      },
    });
    await t.throwsAsync(kv.getMany(keys), { code: 'ERR_ARGUMENT', message: /no such luck/ });
    t.throws(() => kv.getManyInto(keys, Buffer.alloc(10), new Uint32Array(4)), {
      code: 'ERR_ARGUMENT',
      message: /no such luck/,
    });
    await settle();
    const after = kv.get('a');
    await settle();
    t.is(text(await after), 'alpha');
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
    for (const [key, value] of got)
      if (value?.equals(expected.get(key)!) !== true) t.fail(`${key} changed after it was handed out`);
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

/** How often `call` is awaited before the event loop turns. */
async function callsPerTurn(call: () => unknown): Promise<number> {
  const loop = { turned: false };
  setImmediate(() => (loop.turned = true));
  let calls = 0;
  for (; calls < 10_000 && !loop.turned; calls++) await Promise.resolve(call()).catch(() => undefined);
  return calls;
}

test('large values and failures let the event loop turn too', async (t) => {
  const { native, kv } = setup();
  native.store('large', Buffer.alloc(SLAB_BYTES + 1));
  native.store('middle', Buffer.alloc(SLAB_BYTES - 1));
  native.store('coded', Buffer.from('x'), 99);
  const signal = AbortSignal.abort();
  const calls: Readonly<Record<string, () => Promise<unknown>>> = {
    large: () => kv.get('large'),
    middle: () => kv.get('middle'),
    'no such codec': () => kv.withCodec('msgpack').get('coded'),
    'a key that is none': () => kv.get(''),
    'no such key': () => kv.get('none'),
    aborted: () => kv.get('middle', { signal }),
    'aborted, without the value': () => kv.has('middle', { signal }),
    'a key that is none, without the value': () => kv.has(''),
  };
  for (const [what, call] of Object.entries(calls)) {
    const count = await callsPerTurn(call);
    t.true(count <= 1100, `${what}: ${count} calls in one turn`);
  }
});

test('batches of GETs that are answered at once let the event loop turn', async (t) => {
  const { native, kv } = setup();
  native.store('a', Buffer.from('x'));
  const keys = Array.from({ length: 64 }, () => 'a');
  const spans = new Uint32Array(128);
  const target = Buffer.alloc(64);
  const calls: readonly [string, number, () => unknown][] = [
    ['getMany', 17, () => kv.getMany(keys)],
    ['getManyInto', 17, () => kv.getManyInto(keys, target, spans)],
    ['getMany of one', 1100, () => kv.getMany(['a'])],
    ['getMany of none', 1100, () => kv.getMany([])],
    ['getManyInto of one', 1100, () => kv.getManyInto(['a'], target, spans)],
    ['getMany of a key that is none', 1100, () => kv.getMany([''])],
  ];
  for (const [what, most, call] of calls) {
    const count = await callsPerTurn(call);
    t.true(count <= most, `${what}: ${count} batches in one turn`);
  }
});

test('answers that are polled for by the hundred let the event loop turn as often as those that come one by one', async (t) => {
  const { native, kv } = setup({ direct: false });
  const keys = Array.from({ length: 64 }, (_, i) => `k${i}`);
  native.flush = () => {
    native.complete();
    return native.ready.length;
  };
  const loop = { turned: false };
  setImmediate(() => (loop.turned = true));
  let batches = 0;
  for (; batches < 1000 && !loop.turned; batches++) await kv.getMany(keys);
  t.true(batches <= 17, `${batches} batches of ${keys.length} in one turn`);
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
  t.deepEqual(
    done,
    Array.from({ length: 20 }, (_, i) => String(i)),
  );
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

test("a change that was sent when its signal fired is indeterminate, and the signal's reason its cause", async (t) => {
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
  const all = [kv.get('a'), kv.put('b', 'x'), kv.put('c', 'x'), kv.delete('d'), kv.getMany(['e', 'f'])].map((p) =>
    t.throwsAsync(p as Promise<unknown>, { code: 'ERR_CLOSED' }),
  );
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
  await t.throwsAsync(kv.put('secret'.repeat(200), 'x'), {
    code: 'ERR_KEY_INVALID',
    message: /^((?!secret).)*this one has 1200 in UTF-8\)$/,
  });
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
  for (const ttlMs of [0, -1, 1.5, Number.NaN, 2 ** 46 + 1, '5']) await bad(kv.put('a', 'x', { ttlMs: any(ttlMs) }));
  for (const flags of [-1, 2 ** 32, 0.5, '1']) await bad(kv.put('a', 'x', { flags: any(flags) }));
  for (const timeoutMs of [0, -5, 1e12, Number.NaN, '1s']) await bad(kv.get('a', { timeoutMs: any(timeoutMs) }));
  await bad(kv.get('a', { signal: any({ aborted: false }) }));
  // An option that nobody reads would be a lost time to live.
  await t.throwsAsync(kv.put('a', 'x', any({ ttl: 60 })), {
    code: 'ERR_ARGUMENT',
    message: 'unknown option ttl; did you mean ttlMs?',
  });
  await t.throwsAsync(kv.compareAndSwap('a', 0n, 'x', any({ ttlMS: 60 })), {
    code: 'ERR_ARGUMENT',
    message: /did you mean ttlMs\?/,
  });
  await t.throwsAsync(kv.get('a', any({ timeout: 5 })), { code: 'ERR_ARGUMENT', message: /did you mean timeoutMs\?/ });
  await bad(kv.putMany([{ key: 'a', value: 'b' }], any({ ttlMs: 60 })));
  await bad(kv.scanPage(any({ limit: 5 })));
  for (const options of [5, null, 'x']) {
    await bad(kv.put('a', 'x', any(options)));
    await bad(kv.get('a', any(options)));
  }
  t.throws(() => kv.getSync('a', any({ signal: AbortSignal.timeout(1) })), { code: 'ERR_ARGUMENT' });
  for (const version of [1, '1', -1n, 1n << 64n, undefined]) await bad(kv.compareAndSwap('a', any(version), 'x'));
  await bad(kv.getMany(any('abc')));
  await bad(kv.putMany(any(['abc'])));
  for (const items of ['abc', { a: 'b' }, undefined, null, 5]) await bad(kv.putMany(any(items)));
  await bad(kv.putMany(any([{ key: 'a', value: 'b' }, undefined])));
  await bad(Promise.resolve().then(() => kv.getManyInto(any('abc'), Buffer.alloc(1), new Uint32Array(8))));
  await bad(Promise.resolve().then(() => kv.getManyInto(['a', 'b'], Buffer.alloc(1), new Uint32Array(3))));
  await bad(Promise.resolve().then(() => kv.getManyInto(['a'], any([]), new Uint32Array(3))));
  await bad(kv.scanPage({ batch: any(0) }));
  await bad(kv.scanPage({ cursor: 'nonsense' }));
  await bad(kv.scanPage({ cursor: '7.0' }));
  for (const target of ['text', new ArrayBuffer(5), new Uint16Array(5)])
    t.throws(() => kv.getInto('a', any(target)), { code: 'ERR_ARGUMENT' });
  for (const offset of [-1, 6, 0.5, Number.NaN])
    t.throws(() => kv.getInto('a', new Uint8Array(5), offset), { code: 'ERR_ARGUMENT' });
  for (const space of [-1, 65_536, 0.5, 'users']) t.throws(() => kv.namespace(any(space)), { code: 'ERR_ARGUMENT' });
  t.throws(() => kv.withCodec(any('json')), { code: 'ERR_ARGUMENT' });
  t.deepEqual(native.log, []);
});

test('compare-and-swap says what is there now', async (t) => {
  const { native, kv, settle } = setup();
  const version = native.store('a', Buffer.from('1'));
  const all = Promise.all([
    kv.compareAndSwap('a', version + 5n, '2'),
    kv.compareAndSwap('a', version, '2'),
    kv.compareAndSwap('new', 0n, 'x'),
    kv.compareAndDelete('gone', 7n),
  ]);
  await settle();
  const [lost, won, made, gone] = await all;
  t.deepEqual(lost, { swapped: false, version });
  t.true(won.swapped && won.version > version);
  t.true(made.swapped);
  t.deepEqual(gone, { swapped: false, version: 0n });
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
    const all = [
      kv.get('a'),
      kv.getEntry('a'),
      kv.getMany(['a', 'b']),
      kv.put('a', 'x'),
      kv.delete('a'),
      kv.compareAndSwap('a', 0n, 'x'),
      kv.scanPage(),
    ];
    await turn();
    native.fail(Status.shardUnavailable);
    operations.drain();
    for (const one of all) await t.throwsAsync(one, absent);
  }
});

test('what a broken connection did not answer says why the server ended it', async (t) => {
  const why = 's1 had ended the connection to worker 0';
  let late = 0;
  const { native, operations, kv } = setup({ direct: false, ended: () => why, unavailable: () => late++ });
  const put = t.throwsAsync(kv.put('a', 'x'), { code: 'ERR_INDETERMINATE', message: /s1 had ended the connection/u });
  native.fail(Status.indeterminate);
  operations.drain();
  await put;
  const get = t.throwsAsync(kv.get('a'), { code: 'ERR_TIMEOUT', message: /s1 had ended the connection/u });
  native.fail(Status.timeout);
  operations.drain();
  await get;
  t.is(late, 2, 'another server may know who answers');
});
