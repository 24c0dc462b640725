/** farkv/unstorage under unstorage's createStorage: what its own drivers are tested for, and what is farkv's. */
import test, { type ExecutionContext } from 'ava';
import { createStorage, prefixStorage, type Storage } from 'unstorage';
import { farkvDriver, type FarkvDriverOptions } from '../../adapters/unstorage.js';
import type { BufferValue, Keyspace } from '../../client/index.js';
import { keysOf, oneServer } from '../support/adapters.js';

const server = oneServer(test);

interface Setup {
  readonly kv: Keyspace<BufferValue, Buffer>;
  readonly driver: ReturnType<typeof farkvDriver>;
  readonly storage: Storage;
}

function setup(t: ExecutionContext, options: Omit<FarkvDriverOptions, 'source'> = {}): Setup {
  const kv = server().space();
  const driver = farkvDriver({ source: kv, ...options });
  const storage = createStorage({ driver });
  t.teardown(() => storage.dispose());
  return { kv, driver, storage };
}

/** When the entry of this key expires, by the clock, ms; undefined: never. */
async function expiryOf(kv: Keyspace<never, unknown>, key: string): Promise<number | undefined> {
  for await (const entry of kv.scan()) if (String(entry.key) === key) return entry.expiresAtMs;
  throw new Error(`${key} is not there`);
}

test('items: set, has, get, keys, remove, clear', async (t) => {
  const { storage, driver, kv } = setup(t);
  t.deepEqual(await storage.getKeys(), []);
  t.is(await storage.getItem('s1:a'), null);
  t.false(await storage.hasItem('s1:a'));
  await storage.setItem('s1:a', 'test_data');
  await storage.setItem('s2:a', 'test_data');
  await storage.setItem('s3:a?q=1', 'test_data');
  t.true(await storage.hasItem('s1:a'));
  t.is(await storage.getItem('s1:a'), 'test_data');
  t.is(await storage.getItem('s3:a?q=2'), 'test_data');
  t.deepEqual((await storage.getKeys()).sort(), ['s1:a', 's2:a', 's3:a']);
  t.deepEqual(await storage.getKeys('s1'), ['s1:a']);
  t.deepEqual(await storage.getKeys('s'), []);
  t.deepEqual(await keysOf(kv), ['unstorage:s1:a', 'unstorage:s2:a', 'unstorage:s3:a']);
  await storage.removeItem('s1:a');
  t.false(await storage.hasItem('s1:a'));
  // unstorage itself clears whole mounts only.
  await driver.clear!('s2:', {});
  t.deepEqual(await storage.getKeys(), ['s3:a']);
  await storage.clear();
  t.deepEqual(await storage.getKeys(), []);
});

test('values of each kind come back, many at once too', async (t) => {
  const { storage } = setup(t);
  const values: Readonly<Record<string, string | number | boolean | object | null>> = {
    text: 'Zoë \u{1f980}',
    number: 5,
    flag: true,
    nothing: null,
    object: { json: 'works', list: [1, 2] },
    empty: '',
  };
  for (const [key, value] of Object.entries(values)) {
    await storage.setItem(key, value);
    t.deepEqual(await storage.getItem(key), value, key);
  }
  t.deepEqual(await storage.getItems(['number', 'absent', 'text']), [
    { key: 'number', value: 5 },
    { key: 'absent', value: null },
    { key: 'text', value: 'Zoë \u{1f980}' },
  ]);
  await storage.setItems<string | object>([
    { key: 'm1', value: 'one' },
    { key: 'm2', value: { two: 2 } },
  ]);
  t.deepEqual([await storage.getItem('m1'), await storage.getItem('m2')], ['one', { two: 2 }]);
  await t.throwsAsync(storage.setItem('wrong', new WeakMap()), { message: /Cannot stringify/ });
});

test('raw items are bytes', async (t) => {
  const { storage } = setup(t);
  const bytes = Uint8Array.from([1, 2, 3, 0, 255]);
  for (const value of [bytes, Buffer.from(bytes), bytes.buffer.slice(0)]) {
    await storage.setItemRaw('/data/raw.bin', value);
    t.deepEqual(await storage.getItemRaw<Buffer>('/data/raw.bin'), Buffer.from(bytes));
    await storage.removeItem('/data/raw.bin');
    t.is(await storage.getItemRaw('/data/raw.bin'), null);
  }
  await storage.setItemRaw('text', 'as it is');
  t.is(await storage.getItem('text'), 'as it is');
  await t.throwsAsync(storage.setItemRaw('object', { a: 1 }), { code: 'ERR_ARGUMENT', message: /setItem stores/ });
});

test('a time to live: of an item, of the driver, and what is left of it', async (t) => {
  const { storage, kv } = setup(t, { ttl: 86_400 });
  await storage.setItem('driver', 'v');
  await storage.setItem('own', 'v', { ttl: 3600 });
  await storage.setItemRaw('raw', Buffer.from('v'), { ttl: 3600 });
  await storage.setItems<string | object>([{ key: 'one', value: 'v' }], { ttl: 3600 });
  await storage.setItem('stays', 'v', { ttl: 0 });
  for (const [key, seconds] of [
    ['driver', 86_400],
    ['own', 3600],
    ['raw', 3600],
    ['one', 3600],
  ] as const) {
    const left = (await expiryOf(kv, `unstorage:${key}`))! - Date.now();
    t.true(left > 0 && left <= seconds * 1000 + 10_000, `${key}: ${left} ms`);
    const meta = await storage.getMeta(key);
    t.is(meta.size, 1);
    t.true(meta.ttl! > 0 && meta.ttl! <= seconds, `${key}: ${meta.ttl} s`);
  }
  await kv.touch('unstorage:own', { ttlMs: 7_200_000 });
  const { ttl = 0 } = await storage.getMeta('own');
  t.true(ttl > 3600 && ttl <= 7200, `touched: ${ttl} s`);
  await kv.touch('unstorage:own');
  t.is((await storage.getMeta('own')).ttl, undefined);
  await kv.put('unstorage:flagged', 'v', { flags: 7 });
  t.is((await storage.getMeta('flagged')).ttl, undefined);
  t.is(await expiryOf(kv, 'unstorage:stays'), undefined);
  t.is((await storage.getMeta('stays')).ttl, undefined);
  t.deepEqual({ ...(await storage.getMeta('absent')) }, {});
  await storage.setMeta('own', { mtime: new Date(5) });
  t.like(await storage.getMeta('own'), { size: 1, mtime: new Date(5) });
  await storage.setItem('short', 'v', { ttl: 0.01 });
  while (await storage.hasItem('short'));
  t.is(await storage.getItem('short'), null);
  await t.throwsAsync(storage.setItem('wrong', 'v', { ttl: '5' }), { code: 'ERR_ARGUMENT' });
});

test('times to live of any length are taken', async (t) => {
  const { storage, kv } = setup(t);
  await storage.setItem('long', 'v', { ttl: Number.MAX_SAFE_INTEGER });
  t.is(await storage.getItem('long'), 'v');
  t.true((await expiryOf(kv, 'unstorage:long'))! > Date.now() + 2 ** 45);
  t.true((await storage.getMeta('long')).ttl! > 0);
});

test('mounts and prefixes: clear() and getKeys() stay within theirs', async (t) => {
  const { kv } = setup(t);
  const storage = createStorage();
  storage.mount('one', farkvDriver({ source: kv, prefix: 'one' }));
  storage.mount('two', farkvDriver({ source: kv, prefix: 'on' }));
  await kv.put('mine', 'stays');
  await storage.setItem('one:a', 1);
  await storage.setItem('one:b:c', 2);
  await storage.setItem('two:a', 3);
  const within = prefixStorage(storage, 'one:b');
  t.is(await within.getItem('c'), 2);
  t.deepEqual(await within.getKeys(), ['c']);
  t.deepEqual((await storage.getKeys()).sort(), ['one:a', 'one:b:c', 'two:a']);
  await storage.clear('one');
  t.deepEqual(await keysOf(kv), ['mine', 'on:a']);
});

test("dispose() ends a connection of the driver's own, and not a client that it was given", async (t) => {
  const { client, address } = server();
  const given = createStorage({ driver: farkvDriver({ source: client, prefix: 'given' }) });
  await given.setItem('a', 1);
  await given.dispose();
  t.is(String(await client.get('given:a')), '1');
  const driver = farkvDriver({ source: address, prefix: 'own' });
  const own = createStorage({ driver });
  await own.setItem('a', 1);
  const kv = await driver.getInstance!();
  await own.dispose();
  await t.throwsAsync(kv.get('own:a'), { code: 'ERR_CLOSED' });
  await t.throwsAsync(own.getItem('a'), { code: 'ERR_CLOSED' });
});
