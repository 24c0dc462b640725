/** farkv/keyv under Keyv and cache-manager, against a server. */
import { keyvIteratorTests, default as keyvTestSuite } from '@keyv/test-suite';
import test from 'ava';
import { createCache } from 'cache-manager';
import { Keyv } from 'keyv';
import { once } from 'node:events';
import { KeyvFarkv } from '../../adapters/keyv.js';
import { startServer } from '../../server/index.js';
import { keysOf, oneServer } from '../support/adapters.js';
import { freePorts } from '../support/cluster.js';
import { vitestFor } from '../support/keyv-suite.js';

const server = oneServer(test);

type Suite = (vitest: unknown, keyv: typeof Keyv, store: () => KeyvFarkv) => void;
const store = (): KeyvFarkv => new KeyvFarkv(server().client);
(keyvTestSuite as unknown as Suite)(vitestFor(test, 'suite'), Keyv, store);
(keyvIteratorTests as unknown as Suite)(vitestFor(test, 'suite of iterators'), Keyv, store);

async function listed(cache: Keyv): Promise<unknown[]> {
  const entries: unknown[] = [];
  for await (const entry of cache.iterator!(undefined)) entries.push(entry);
  return entries;
}

test('clear() leaves what other namespaces, prefixes and programs have', async (t) => {
  const kv = server().space();
  const others = ['keyv', 'keyv2:a:1', 'key', 'a:1', 'other:a:1', 'keyv:ab:1', 'keyv:b:1'];
  for (const key of others) await kv.put(key, 'other');
  const cache = new Keyv({ store: new KeyvFarkv(kv), namespace: 'a' });
  await Promise.all(Array.from({ length: 3000 }, (_, i) => cache.set(`key ${i}`, i)));
  await cache.set('1', 'one');
  t.is((await keysOf(kv)).length, others.length + 3001);
  await cache.clear();
  t.deepEqual(await keysOf(kv), [...others].sort());
  const all = new KeyvFarkv(kv);
  await all.clear();
  t.deepEqual(await keysOf(kv), others.filter((key) => !key.startsWith('keyv:')).sort());
});

test('an adapter under Keyvs of two namespaces clears for neither, and lists for the last alone', async (t) => {
  const kv = server().space();
  const shared = new KeyvFarkv(kv);
  const [a, b] = ['a', 'b'].map((namespace) => new Keyv({ store: shared, namespace, throwOnErrors: true }));
  await a!.set('1', 'of a');
  await b!.set('1', 'of b');
  const refused = { code: 'ERR_ARGUMENT', message: /one KeyvFarkv for each Keyv; they may share a client/ };
  for (const cache of [a!, b!]) {
    cache.on('error', () => undefined);
    await t.throwsAsync(cache.clear(), refused);
  }
  // The one whose namespace the adapter has lists its own; the other would list those.
  t.deepEqual(await listed(b!), [['1', 'of b']]);
  await t.throwsAsync(listed(a!), refused);
  t.deepEqual([await a!.get('1'), await b!.get('1')], ['of a', 'of b']);
  t.deepEqual(await keysOf(kv), ['keyv:a:1', 'keyv:b:1']);

  // All of the prefix, and one namespace of it, are two as well; the same one twice is one.
  const all = new KeyvFarkv(kv);
  for (const namespace of ['', 'a']) new Keyv({ store: all, namespace });
  await t.throwsAsync(all.clear(), refused);
  const twice = new KeyvFarkv(kv);
  const [first] = [1, 2].map(() => new Keyv({ store: twice, namespace: 'a', throwOnErrors: true }));
  await first!.clear();
  t.deepEqual(await keysOf(kv), ['keyv:b:1']);
});

test('a namespace that is null is none', async (t) => {
  const kv = server().space();
  const adapter = new KeyvFarkv(kv);
  adapter.namespace = null as unknown as undefined;
  t.is(adapter.namespace, undefined);
  await adapter.set('a', 'x');
  const names: unknown[] = [];
  for await (const [name] of adapter.iterator(null as unknown as undefined)) names.push(name);
  t.deepEqual(names, ['a']);
  await adapter.clear();
  t.deepEqual(await keysOf(kv), []);
});

test('without prefixes of Keyv, the empty namespace has what is cleared and listed', async (t) => {
  const kv = server().space();
  const options = { useKeyPrefix: false, throwOnErrors: true };
  // Keyv's default is a namespace that none of these keys begins with.
  const byDefault = new Keyv({ store: new KeyvFarkv(kv, { prefix: 'bare' }), ...options });
  await byDefault.set('a', 1);
  await byDefault.clear();
  t.deepEqual(await keysOf(kv), ['bare:a']);

  const cache = new Keyv({ store: new KeyvFarkv(kv, { prefix: 'bare' }), namespace: '', ...options });
  await cache.set('b', 2);
  await kv.put('other:a', 'stays');
  t.deepEqual((await listed(cache)).sort(), [
    ['a', 1],
    ['b', 2],
  ]);
  await cache.clear();
  t.deepEqual(await keysOf(kv), ['other:a']);
});

test('a prefix that could be the beginning of another is refused', (t) => {
  for (const prefix of ['', 'a:', 'a:b', ':', 'p'.repeat(256), 5 as unknown as string])
    t.throws(() => new KeyvFarkv('127.0.0.1:7400', { prefix }), { code: 'ERR_ARGUMENT' });
});

test("a time to live is the entry's own: farkv forgets it without Keyv", async (t) => {
  const kv = server().space();
  const adapter = new KeyvFarkv(kv);
  const cache = new Keyv({ store: adapter, namespace: 'n' });
  await cache.set('short', 1, 86_400_000);
  await cache.set('long', 1);
  await adapter.setMany([
    { key: 'n:a', value: 'x', ttl: 0.5 },
    { key: 'n:b', value: 'y' },
  ]);
  const expiries = new Map<string, number | undefined>();
  for await (const { key, expiresAtMs } of kv.scan()) expiries.set(String(key), expiresAtMs);
  const left = expiries.get('keyv:n:short')! - Date.now();
  t.true(left > 0 && left <= 86_400_000 + 10_000, `${left} ms`);
  t.is(expiries.get('keyv:n:long'), undefined);
  t.true(expiries.has('keyv:n:b'));
  while ((await adapter.get('n:a')) !== undefined);
  t.is(await adapter.get('n:b'), 'y');
});

test('times to live of any length are taken', async (t) => {
  const kv = server().space();
  const cache = new Keyv({ store: new KeyvFarkv(kv), namespace: 'n', throwOnErrors: true });
  await cache.set('long', 'v', Number.MAX_SAFE_INTEGER);
  await cache.setMany([{ key: 'many', value: 'v', ttl: 2 ** 46 + 1 }]);
  for (const key of ['long', 'many']) {
    t.is(await cache.get(key), 'v');
    t.true((await kv.getEntry(`keyv:n:${key}`))!.expiresAtMs! > Date.now() + 2 ** 45, key);
  }
});

test('what Keyv gives comes back as it was, serialized or not', async (t) => {
  const kv = server().space();
  const plain = new Keyv({ store: new KeyvFarkv(kv), namespace: 'plain' });
  plain.serialize = undefined;
  plain.deserialize = undefined;
  const value = { list: [1, 'two', null], bytes: Buffer.from([0, 255]), at: new Date(5) };
  await plain.set('k', value);
  t.deepEqual(await plain.get('k'), value);
  const adapter = new KeyvFarkv(kv, { prefix: 'direct' });
  await adapter.setMany([
    { key: 'a', value: 'alpha' },
    { key: 'b', value: '' },
  ]);
  t.deepEqual(await adapter.getMany(['a', 'absent', 'b']), ['alpha', undefined, '']);
  t.deepEqual(await adapter.hasMany(['a', 'absent', 'b']), [true, false, true]);
  t.true(await adapter.has('b'));
  t.true(await adapter.deleteMany(['absent', 'a']));
  t.false(await adapter.deleteMany(['absent', 'a']));
  t.false(await adapter.delete('a'));
});

test("disconnect() ends a connection of the adapter's own, and not a client that it was given", async (t) => {
  const { client, address } = server();
  const given = new Keyv({ store: new KeyvFarkv(client), namespace: 'given' });
  await given.set('k', 1);
  await given.disconnect();
  t.is(await client.get('absent'), undefined);

  const own = new KeyvFarkv({ servers: address, namespace: 900, timeoutMs: 120_000 }, { prefix: 'own' });
  await own.set('k', 'v');
  t.deepEqual(await keysOf(client.namespace(900)), ['own:k']);
  await own.disconnect();
  await own.disconnect();
  await t.throwsAsync(own.get('k'), { code: 'ERR_CLOSED' });
});

test('an adapter whose server is not there yet reports it, and connects when it is', async (t) => {
  const [port] = await freePorts(1);
  const adapter = new KeyvFarkv(`127.0.0.1:${port}`);
  t.teardown(() => adapter.disconnect());
  const cache = new Keyv({ store: adapter });
  const reported = once(cache as unknown as EventTarget & NodeJS.EventEmitter, 'error');
  t.is(await cache.get('k'), undefined);
  t.like((await reported)[0], { code: 'ERR_DISCONNECTED' });
  // Without a listener it is a rejection, and no exception of the emitter's.
  await t.throwsAsync(new KeyvFarkv(`127.0.0.1:${port}`).get('k'), { code: 'ERR_DISCONNECTED' });

  const embedded = await startServer({
    listen: `127.0.0.1:${port}`,
    fabricListen: '127.0.0.1:0',
    peerListen: '127.0.0.1:0',
    memory: '64mb',
  });
  t.teardown(() => embedded.close());
  t.true(await cache.set('k', 'v'));
  t.is(await cache.get('k'), 'v');
});

test('cache-manager: wrap, many, times to live, clear', async (t) => {
  const kv = server().space();
  const cache = createCache({ stores: [new Keyv({ store: new KeyvFarkv(kv), namespace: 'cm' })], ttl: 86_400_000 });
  t.teardown(() => cache.disconnect());
  let computed = 0;
  const compute = (): Promise<{ n: number }> => Promise.resolve({ n: ++computed });
  t.deepEqual(await cache.wrap('w', compute), { n: 1 });
  t.deepEqual(await cache.wrap('w', compute), { n: 1 });
  await cache.mset([
    { key: 'a', value: 1 },
    { key: 'b', value: 2, ttl: 3_600_000 },
  ]);
  t.deepEqual(await cache.mget(['a', 'absent', 'b']), [1, undefined, 2]);
  const ends = await cache.ttl('b');
  t.true(ends! > Date.now() && ends! <= Date.now() + 3_600_000);
  await cache.mdel(['a', 'b']);
  t.deepEqual(await keysOf(kv), ['keyv:cm:w']);
  await cache.del('w');
  t.deepEqual(await cache.wrap('w', compute), { n: 2 });
  await kv.put('mine', 'stays');
  await cache.clear();
  t.deepEqual(await keysOf(kv), ['mine']);
});
