/**
 * NativeClient against a data plane in this process, over each provider that a host without special hardware has. Calls
 * of many keys: client-batches.test.ts.
 */
import test from 'ava';
import { addon } from '../addon.js';
import { CompletionField, PENDING_BASE } from '../native-client.js';
import { isSameHost, PROVIDERS } from '../../core/providers.js';
import { DEVICELESS } from '../../test/support/deviceless.js';
import { Driver, Plane, SHARDS } from '../../test/support/native-pair.js';

const WORDS: number = CompletionField.Words;

test('C and TypeScript have the same list of providers', (t) => {
  t.deepEqual(addon.constants.allProviders, PROVIDERS);
});

test('what lies in a prepared key is checked, and hashed anew where it is not of this client and namespace', async (t) => {
  const plane = await Plane.start({ provider: 'shm' });
  const client = Driver.to(plane);
  await client.put('a', 'one');
  await client.get('a');
  const prepared = client.native.prepareKey(0, 'a') as unknown as Int8Array;
  const words = new BigUint64Array(3);
  new Int8Array(words.buffer).set(prepared);
  const get = async (key: BigUint64Array, space = 0): Promise<string> =>
    (await client.outcome(() => client.native.get(space, new Int8Array(key.buffer) as never, undefined, 0, 10_000)))
      .status;
  t.is(await get(words), 'OK');
  t.is(await get(words, 1), 'NOT_FOUND');
  t.is(client.native.shardOf(1, prepared as never), client.native.shardOf(1, 'a'));
  // Another seed's: the mark tells, and the hash is not believed.
  const foreign = words.slice();
  foreign[0] = ~foreign[0]!;
  foreign[1] = foreign[1]! ^ 1n;
  t.is(await get(foreign), 'OK');
  // Longer than it is, empty, too long, too short.
  const long = words.slice();
  long[1] = (long[1]! & 0xffff_ffff_ffffn) | (9n << 48n);
  t.is(await get(long), 'ERR_KEY_INVALID');
  for (const count of [0n, 1025n, 65_535n]) {
    const changed = new BigUint64Array(200);
    changed.set(words);
    changed[1] = (changed[1]! & 0xffff_ffff_ffffn) | (count << 48n);
    t.is(await get(changed), 'ERR_KEY_INVALID');
  }
  for (const n of [0, 1, 2]) t.is(await get(words.slice(0, n)), 'ERR_KEY_INVALID');
  t.is(
    (await client.outcome(() => client.native.get(0, new Float64Array(8) as never, undefined, 0, 1000))).status,
    'ERR_KEY_INVALID',
  );
  t.throws(() => client.native.prepareKey(0, ''), { code: 'ERR_KEY_INVALID' });
  t.throws(() => client.native.prepareKey(65_536, 'a'), { code: 'ERR_PROTOCOL' });
  client.close();
  t.throws(() => client.native.prepareKey(0, 'a'), { code: 'ERR_CLOSED' });
  await plane.close();
});

for (const provider of DEVICELESS) {
  test(`${provider}: what was put is got, what was deleted is not`, async (t) => {
    const plane = await Plane.start({ provider });
    const client = Driver.to(plane);
    t.is((await client.get('a')).status, 'NOT_FOUND');
    const put = await client.put('a', 'one');
    t.is(put.status, 'OK');
    const got = await client.get('a');
    t.is(got.value.toString(), 'one');
    t.is(got.version, put.version);
    t.is((await client.get(Buffer.from('a'))).value.toString(), 'one');
    t.is((await client.delete('a')).status, 'OK');
    t.is((await client.get('a')).status, 'NOT_FOUND');
    t.is((await client.delete('a')).status, 'NOT_FOUND');
    t.is(client.callbacksInside, 0);
    t.deepEqual(client.events, [{ type: 'connected', owner: 1, provider }]);
    client.close();
    await plane.close();
  });

  test(`${provider}: flags, codec and time to live travel with a value`, async (t) => {
    const plane = await Plane.start({ provider });
    const client = Driver.to(plane);
    await client.outcome(() => client.native.put(0, 'k', Buffer.from('v'), 60_000, 0xdeadbeef, 7, 10_000));
    const got = await client.get('k');
    t.is(got.userFlags, 0xdeadbeef);
    t.is(got.codec, 7);
    await client.outcome(() => client.native.put(0, 'brief', Buffer.from('v'), 1, 0, 0, 10_000));
    let status = 'OK';
    while (status === 'OK') ({ status } = await client.get('brief'));
    t.is(status, 'NOT_FOUND');
    client.close();
    await plane.close();
  });

  test(`${provider}: compare-and-swap wins only with the present version`, async (t) => {
    const plane = await Plane.start({ provider });
    const client = Driver.to(plane);
    const first = await client.compareAndSwap('n', 0n, '1');
    t.is(first.status, 'OK');
    const lost = await client.compareAndSwap('n', 0n, '2');
    t.is(lost.status, 'VERSION_MISMATCH');
    t.is(lost.version, first.version);
    const second = await client.compareAndSwap('n', first.version, '2');
    t.true(second.version > first.version);
    t.is((await client.compareAndSwap('n', first.version, undefined)).status, 'VERSION_MISMATCH');
    t.is((await client.compareAndSwap('n', second.version, undefined)).status, 'OK');
    t.is((await client.get('n')).status, 'NOT_FOUND');
    client.close();
    await plane.close();
  });

  test(`${provider}: values of many sizes go both ways, through a slab that is smaller`, async (t) => {
    const plane = await Plane.start({ provider, memoryBytes: 64 << 20 });
    const client = Driver.to(plane, {}, 64 << 10);
    for (const bytes of [0, 1, 1000, 16_000, 16_384, 65_536, 65_537, 1 << 20, 8 << 20]) {
      const value = Buffer.alloc(bytes);
      for (let i = 0; i < bytes; i += 7) value[i] = i;
      t.is((await client.put(`size ${bytes}`, value)).status, 'OK');
      const got = await client.outcome(() => client.native.get(0, `size ${bytes}`, undefined, 0, 20_000));
      t.is(got.status, 'OK');
      t.true(got.value.equals(value), `${bytes} bytes`);
    }
    const small = Buffer.alloc(10);
    const answer = await client.get('size 1000', 10_000, small);
    if (isSameHost(provider)) {
      t.is(answer.status, 'ERR_BUFFER_TOO_SMALL');
      t.is(answer.bytes, 1000);
    } else {
      t.is(answer.value.length, 1000);
    }
    client.close();
    await plane.close();
  });

  test(`${provider}: a buffer may be changed and dropped as soon as put has returned`, async (t) => {
    const plane = await Plane.start({ provider, memoryBytes: 64 << 20 });
    const client = Driver.to(plane);
    const puts: Promise<unknown>[] = [];
    for (let i = 0; i < 50; i++) {
      const value = Buffer.alloc(i % 2 === 0 ? 300 : 40_000, i);
      puts.push(client.put(`dropped ${i}`, value));
      value.fill(0xee);
    }
    await Promise.all(puts);
    for (let i = 0; i < 50; i++) {
      const got = await client.get(`dropped ${i}`);
      t.true(got.value.equals(Buffer.alloc(i % 2 === 0 ? 300 : 40_000, i)));
    }
    client.close();
    await plane.close();
  });

  test(`${provider}: what has no value has no offset, and a value of no bytes has one`, async (t) => {
    const plane = await Plane.start({ provider });
    const client = Driver.to(plane);
    const put = await client.put('empty', '');
    const got = await client.outcome(() => client.native.get(0, 'empty', undefined, 0, 10_000));
    const absent = await client.outcome(() => client.native.get(0, 'absent', undefined, 0, 10_000));
    const full = await client.outcome(() =>
      client.native.scan(0, client.native.shardOf(0, 'empty'), 0n, 10, true, 10_000),
    );
    const nothing = await client.outcome(() => client.native.scan(7, 0, 0n, 10, true, 10_000));
    const all = [put, got, absent, full, nothing];
    t.deepEqual(
      all.map(({ status, later, hasValue }) => [status, later, hasValue]),
      [
        ['OK', true, false],
        ['OK', true, true],
        ['NOT_FOUND', true, false],
        ['OK', true, true],
        ['OK', true, false],
      ],
    );
    t.is(nothing.bytes, 0);
    client.close();
    await plane.close();
  });

  test(`${provider}: scan returns every key, page by page`, async (t) => {
    const plane = await Plane.start({ provider });
    const client = Driver.to(plane, { maxOutstanding: 500 });
    const keys = new Set(Array.from({ length: 500 }, (_, i) => `scan ${i}`));
    await Promise.all([...keys].map((key) => client.put(key, 'x')));
    for (let shard = 0; shard < SHARDS; shard++) {
      let cursor = 0n;
      do {
        const from = cursor;
        const page = await client.outcome(() => client.native.scan(0, shard, from, 50, false, 10_000));
        t.is(page.status, 'OK');
        for (let at = 0; at < page.value.length;) {
          const length = page.value.readUInt16LE(at + 24);
          keys.delete(page.value.toString('utf8', at + 32, at + 32 + length));
          at += 32 + length;
        }
        cursor = page.version;
      } while (cursor !== 0n);
    }
    t.is(keys.size, 0);
    client.close();
    await plane.close();
  });

  test(`${provider}: what cannot be answered in time ends with the reason`, async (t) => {
    const plane = await Plane.start({ provider, closed: true });
    const client = Driver.to(plane);
    // How far an operation came when its time was over is a matter of luck; the reason must be seen sooner or later.
    const reasons = async (get: string, put: string): Promise<void> => {
      while ((await client.get('a', 30)).status !== get);
      for (let status = ''; status !== put;) {
        ({ status } = await client.put('a', 'v', 30));
        t.true([put, 'ERR_INDETERMINATE', 'ERR_TIMEOUT'].includes(status), status);
      }
    };
    await reasons('ERR_SHARD_UNAVAILABLE', 'ERR_SHARD_UNAVAILABLE');
    await plane.close();
    await reasons('ERR_SHARD_UNAVAILABLE', 'ERR_SHARD_UNAVAILABLE');
    client.close();
  });

  test(`${provider}: a cancelled operation ends with ERR_ABORTED`, async (t) => {
    const plane = await Plane.start({ provider, closed: true });
    const client = Driver.to(plane);
    const { native } = client;
    const answers = [native.get(0, 'a', undefined, 0, 10_000), native.put(0, 'a', Buffer.from('v'), 0, 0, 0, 10_000)];
    const outcomes = answers.map((answer) => client.adopt(answer - PENDING_BASE));
    for (const answer of answers) client.native.cancel(answer - PENDING_BASE);
    client.native.cancel(12_345);
    for (const outcome of outcomes) t.is((await outcome).status, 'ERR_ABORTED');
    client.close();
    await plane.close();
  });

  test(`${provider}: more than maxOutstanding is refused at once, and there is room again afterwards`, async (t) => {
    const plane = await Plane.start({ provider, closed: true });
    const client = Driver.to(plane, { maxOutstanding: 8 });
    const first = Array.from({ length: 8 }, (_, i) => client.put(`k${i}`, 'v', 100));
    t.is((await client.put('one more', 'v')).status, 'ERR_BUSY');
    t.is((await client.get('one more')).status, 'ERR_BUSY');
    for (const outcome of first) t.not((await outcome).status, 'ERR_BUSY');
    t.not((await client.put('now', 'v', 50)).status, 'ERR_BUSY');
    client.close();
    await plane.close();
  });

  test(`${provider}: a client goes on by itself when its owner comes back as another incarnation`, async (t) => {
    const plane = await Plane.start({ provider });
    const client = Driver.to(plane);
    await client.put('a', 'old');
    t.is((await client.get('a')).value.toString(), 'old');
    await plane.close();
    // What is sent to an owner that is about to end is indeterminate; what waits for the next one is not.
    while (!client.events.some(({ type }) => type === 'disconnected')) await new Promise(setImmediate);
    const waiting = client.put('a', 'new');
    const again = await Plane.start({ provider, address: plane.address, incarnation: 2n });
    t.is((await waiting).status, 'OK');
    t.is((await client.get('a')).value.toString(), 'new');
    client.close();
    await again.close();
  });

  test(`${provider}: bad arguments are answers, not crashes`, async (t) => {
    const plane = await Plane.start({ provider });
    const client = Driver.to(plane);
    const value = Buffer.from('v');
    const target = Buffer.alloc(8);
    const bad = (v: unknown): never => v as never;
    t.is((await client.get('')).status, 'ERR_KEY_INVALID');
    t.is((await client.get('x'.repeat(1025))).status, 'ERR_KEY_INVALID');
    t.is((await client.get(bad(5))).status, 'ERR_KEY_INVALID');
    for (const call of [
      () => client.native.get(70_000, 'k', target, 0, 1000),
      () => client.native.get(0, 'k', target, 9, 1000),
      () => client.native.get(0, 'k', target, -1, 1000),
      () => client.native.get(0, 'k', bad('text'), 0, 1000),
      () => client.native.get(0, 'k', bad(new Float64Array(2)), 0, 1000),
      () => client.native.getSync(0, 'k', bad(undefined), 0, 1000),
      () => client.native.put(0, 'k', bad('text'), 0, 0, 0, 1000),
      () => client.native.put(0, 'k', value, -1, 0, 0, 1000),
      () => client.native.put(0, 'k', value, NaN, 0, 0, 1000),
      () => client.native.put(0, 'k', value, 0, 0, 256, 1000),
      () => client.native.compareAndSwap(0, 'k', -1n, value, 0, 0, 0, 1000),
      () => client.native.compareAndSwap(0, 'k', bad(1), value, 0, 0, 0, 1000),
      () => client.native.scan(0, SHARDS, 0n, 10, false, 1000),
      () => client.native.scan(0, 0, 0n, 0, false, 1000),
    ]) {
      t.is((await client.outcome(call)).status, 'ERR_PROTOCOL', String(call));
    }
    t.throws(() => client.native.getMany(0, bad('no array'), target, 0, new Uint32Array(2 * WORDS), 1000), {
      code: 'ERR_PROTOCOL',
    });
    t.throws(() => client.native.getMany(0, ['a', 'b'], target, 0, new Uint32Array(8), 1000), { code: 'ERR_PROTOCOL' });
    t.throws(() => client.native.take(7, target), { code: 'ERR_PROTOCOL' });
    t.throws(() => client.native.setTicket(Buffer.alloc(3)), { code: 'ERR_CONFIG' });
    t.throws(() => client.native.setOwners(bad([{ owner: 'x' }])), { code: 'ERR_CONFIG' });
    t.throws(() => client.native.setRoutes(bad([{ shard: 0 }])), { code: 'ERR_CONFIG' });
    t.throws(() => new Driver({ maxOutstanding: 0 }), { code: 'ERR_CONFIG' });
    t.throws(() => new Driver({ onReady: bad(undefined) }), { code: 'ERR_CONFIG' });
    client.close();
    await plane.close();
  });
}
