/**
 * What the SDK's methods do, against server processes. sdk-connect.test.ts has how one connects, sdk-ends.test.ts how
 * things end, sdk.long.test.ts large values, processes and threads.
 */
import test, { type ExecutionContext } from 'ava';
import {
  ABSENT,
  connect,
  type BufferValue,
  type Client,
  type ClientStats,
  type ConnectOptions,
} from '../../client/index.js';
import { canSpin } from '../../core/providers.js';
import { CALLS } from '../chaos/calls.js';
import { DEVICELESS } from '../support/deviceless.js';
import { Cluster } from '../support/cluster.js';
import { clientOf, ownNamespace, sharedCluster, storesWhole } from '../support/sdk-clients.js';

const shared = sharedCluster(test);
const client = (
  t: ExecutionContext,
  options: Partial<ConnectOptions> = {},
  cluster: Cluster = shared(),
): Promise<Client<BufferValue, Buffer>> => clientOf(t, cluster, options);

/**
 * The counters before and after GETs none of which this machine let lie for longer than a GET may take: such a one is
 * READ again.
 */
async function inTime(
  kv: Client<BufferValue, Buffer>,
  gets: () => Promise<void>,
): Promise<readonly [ClientStats, ClientStats]> {
  for (;;) {
    const before = kv.stats();
    await gets();
    const after = kv.stats();
    if (after.lateDiscards === before.lateDiscards) return [before, after];
  }
}

test('tcp: a GET of a key whose place is known is one READ, and never an old value', async (t) => {
  const namespace = ownNamespace();
  const kv = await client(t, { transport: 'tcp', strict: true, namespace });
  const changer = await client(t, { transport: 'tcp', strict: true, namespace });
  const keys = Array.from({ length: 100 }, (_, i) => `place ${i}`);
  await kv.putMany(keys.map((key) => ({ key, value: 'one' })));
  await kv.getMany(keys);
  const [before, after] = await inTime(kv, async () => {
    t.deepEqual(
      (await kv.getMany(keys)).map(String),
      keys.map(() => 'one'),
    );
    for (const key of keys) t.is(String(await kv.get(key)), 'one');
  });
  t.is(after.reads - before.reads, 200);
  t.is(after.locationHits - before.locationHits, 200);
  t.is(after.followedReads, before.followedReads);
  for (const [i, key] of keys.entries()) await (i % 2 === 0 ? changer.put(key, 'two') : changer.delete(key));
  for (const [i, key] of keys.entries()) t.is((await kv.get(key))?.toString(), i % 2 === 0 ? 'two' : undefined);
  t.is(kv.stats().locationStale - after.locationStale, 100);
  // What this client changes itself costs no stale READ.
  await kv.putMany(keys.map((key) => ({ key, value: 'three' })));
  t.deepEqual(
    (await kv.getMany(keys)).map(String),
    keys.map(() => 'three'),
  );
  t.is(kv.stats().locationStale - after.locationStale, 100);
});

test('tcp: without a location cache every GET goes by the index, and is one round trip all the same', async (t) => {
  const kv = await client(t, { transport: 'tcp', strict: true, cachedLocations: 0 });
  await kv.put('a', 'alpha');
  const [before, after] = await inTime(kv, async () => {
    for (let i = 0; i < 10; i++) t.is(String(await kv.get('a')), 'alpha');
  });
  t.is(after.reads - before.reads, 10);
  t.is(after.followedReads - before.followedReads, 10);
});

for (const transport of DEVICELESS) {
  test(`${transport}: a prepared key is taken wherever a key is`, async (t) => {
    const kv = await client(t, { transport, strict: true });
    for (const name of ['user1', 'Zoë \u{1f980}', 'k'.repeat(1024), Buffer.from([0, 255, 7])]) {
      const key = kv.key(name);
      t.is(await kv.get(key), undefined);
      await kv.put(key, 'alpha');
      t.is(String(await kv.get(name)), 'alpha');
      t.is(String(await kv.get(key)), 'alpha');
      t.is(String((await kv.getEntry(key))?.value), 'alpha');
      const target = Buffer.alloc(16);
      t.is(await kv.getInto(key, target, 3), 5);
      t.is(target.toString('utf8', 3, 8), 'alpha');
      if (transport === 'shm') t.is(String(kv.getSync(key)), 'alpha');
      t.deepEqual(
        (await kv.getMany([key, 'absent', name, kv.key(key)])).map((value) => value?.toString()),
        ['alpha', undefined, 'alpha', 'alpha'],
      );
      await kv.putMany([{ key, value: 'beta' }]);
      const { version } = (await kv.getEntry(name))!;
      t.true((await kv.compareAndSwap(key, version, 'gamma')).swapped);
      t.is(kv.shardOf(key), kv.shardOf(name));
      // In another namespace it is the same text, and another entry.
      const other = kv.namespace(60_000);
      t.is(await other.get(key), undefined);
      await other.put(key, 'other');
      t.is(String(await other.get(name)), 'other');
      t.true(await other.delete(key));
      t.is(String(await kv.get(name)), 'gamma');
      t.true(await kv.delete(key));
      t.is(await kv.get(name), undefined);
    }
    for (const wrong of ['', 'k'.repeat(1025), undefined as unknown as string])
      t.throws(() => kv.key(wrong), { code: 'ERR_KEY_INVALID' });
    await kv.close();
    t.throws(() => kv.key('a'), { code: 'ERR_CLOSED' });
  });

  test(`${transport}: every method`, async (t) => {
    const kv = await client(t, { transport, strict: true });
    for (const { provider, connected } of kv.transports()) t.deepEqual([provider, connected], [transport, true]);
    t.is(await kv.get('a'), undefined);
    await kv.put('a', 'alpha', { flags: 0xfedcba98 });
    await kv.put(Buffer.from([0, 255, 7]), Buffer.from([1, 2, 3]));
    t.is(String(await kv.get('a')), 'alpha');
    t.deepEqual(await kv.get(new Uint8Array([0, 255, 7])), Buffer.from([1, 2, 3]));

    const entry = await kv.getEntry('a');
    t.is(entry?.flags, 0xfedcba98);
    t.true((entry?.version ?? 0n) > 0n);
    t.deepEqual([await kv.has('a'), await kv.has(Buffer.from('a')), await kv.has('missing')], [true, true, false]);
    t.deepEqual([await kv.ttl('a'), await kv.ttl('missing')], [null, undefined]);
    await kv.put('large', Buffer.alloc(300_000), { ttlMs: 3_600_000 });
    t.true(await kv.has('large'));
    const left = await kv.ttl('large');
    t.true(typeof left === 'number' && left > 3_000_000 && left <= 3_660_000, String(left));
    t.true(await kv.delete('large'));
    const target = Buffer.alloc(8, '.');
    t.is(await kv.getInto('a', target, 1), 5);
    t.is(String(target), '.alpha..');
    t.is(await kv.getInto('missing', target), undefined);
    await t.throwsAsync(async () => kv.getInto('a', target, 4), {
      code: 'ERR_BUFFER_TOO_SMALL',
      message: /has 5 bytes, there is room for 4/,
    });
    if (canSpin(transport)) {
      t.is(String(kv.getSync('a')), 'alpha');
      t.is(kv.getSync('missing'), undefined);
      t.is(kv.getIntoSync('a', target, 3), 5);
      t.throws(() => kv.getIntoSync('a', target, 4), { code: 'ERR_BUFFER_TOO_SMALL' });
    } else {
      t.throws(() => kv.getSync('a'), {
        code: 'ERR_UNSUPPORTED',
        message: /over shm and verbs only, not over tcp: await get or getInto/,
      });
      t.throws(() => kv.getIntoSync('a', target), { code: 'ERR_UNSUPPORTED' });
    }

    await kv.putMany(Array.from({ length: 3000 }, (_, i) => ({ key: `m${i}`, value: `value ${i}`, flags: i })));
    const many = await kv.getMany(['none', ...Array.from({ length: 3000 }, (_, i) => `m${i}`), 'nothing']);
    t.deepEqual(many.map(String), ['undefined', ...Array.from({ length: 3000 }, (_, i) => `value ${i}`), 'undefined']);
    t.deepEqual(await kv.getMany([]), []);
    const names = Array.from({ length: 3000 }, (_, i) => `side ${i}`);
    const [side, spans] = [Buffer.alloc(64 << 10), new Uint32Array(6002)];
    for (let round = 0; round < 2; round++) {
      await kv.putMany(names.map((name) => ({ key: name, value: `${name} in round ${round}` })));
      const used = await kv.getManyInto([...names, 'nothing'], side.fill(0), spans);
      t.is(
        used,
        names.reduce((sum, name) => sum + name.length + 11, 0),
      );
      const seen = names.map((_, i) =>
        side.toString('latin1', spans[2 * i], (spans[2 * i] ?? 0) + (spans[2 * i + 1] ?? 0)),
      );
      t.deepEqual(
        seen,
        names.map((name) => `${name} in round ${round}`),
      );
      t.deepEqual([...spans.subarray(6000)], [ABSENT, 0]);
    }
    const needed = { code: 'ERR_BUFFER_TOO_SMALL', message: /there is room for 1000/ };
    await t.throwsAsync(async () => kv.getManyInto(names, side.subarray(0, 1000), spans), needed);
    t.is(await kv.deleteMany([...names, 'nothing', names[0] ?? '']), 3000);
    t.is(await kv.deleteMany(names), 0);
    t.deepEqual(await kv.getMany(names), new Array(3000).fill(undefined));
    t.is(await kv.deleteMany([]), 0);

    const lost = await kv.compareAndSwap('a', (entry?.version ?? 0n) + 1n, 'beta');
    t.deepEqual(lost, { swapped: false, version: entry?.version });
    const won = await kv.compareAndSwap('a', entry?.version ?? 0n, 'beta');
    t.true(won.swapped && won.version > (entry?.version ?? 0n));
    t.is((await kv.getEntry('a'))?.version, won.version);
    await kv.touch('a', { ttlMs: 3_600_000 });
    const { version: touched, expiresAtMs } = (await kv.getEntry('a'))!;
    const kept = await kv.compareAndSwap('a', touched, 'gamma');
    t.is((await kv.getEntry('a'))?.expiresAtMs, expiresAtMs);
    const longer = await kv.compareAndSwap('a', kept.version, 'delta', { ttlMs: 7_200_000 });
    t.true(((await kv.getEntry('a'))?.expiresAtMs ?? 0) > (expiresAtMs ?? 0) + 1_000_000);
    const last = await kv.compareAndSwap('a', longer.version, 'beta', { ttlMs: null });
    t.is(await kv.ttl('a'), null);
    t.deepEqual(await kv.update('missing', () => undefined), { changed: false, version: 0n });
    t.deepEqual(await kv.update('a', (value) => (String(value) === 'beta' ? undefined : 'x')), {
      changed: false,
      version: last.version,
    });
    t.like(await kv.compareAndSwap('a', 0n, 'again'), { swapped: false });
    t.like(await kv.compareAndSwap('fresh', 0n, 'made'), { swapped: true });
    t.deepEqual(await kv.compareAndSwap('absent', 99n, 'x'), { swapped: false, version: 0n });
    t.like(await kv.compareAndDelete('a', entry?.version ?? 0n), { swapped: false });
    t.like(await kv.compareAndDelete('a', last.version), { swapped: true });
    t.is(await kv.get('a'), undefined);
    t.true(await kv.delete('fresh'));
    t.false(await kv.delete('fresh'));

    const sums = await Promise.all(Array.from({ length: 50 }, () => kv.increment('sum', 2n)));
    t.is(new Set(sums).size, 50);
    t.true(sums.includes(100n));
    t.is(await kv.append('sum', '0'), 4);
    t.is(await kv.increment('sum', -1000), 0n);
    t.is((await kv.getEntry('sum'))?.expiresAtMs, undefined);
    t.true(await kv.touch('sum', { ttlMs: 3_600_000 }));
    const ends = (await kv.getEntry('sum'))?.expiresAtMs ?? 0;
    t.true(ends > Date.now());
    t.is(await kv.increment('sum', 5), 5n);
    t.is((await kv.getEntry('sum'))?.expiresAtMs, ends);
    t.true(await kv.touch('sum', { ttlMs: 1 }));
    while ((await kv.get('sum')) !== undefined);
    await kv.delete('sum'); // the owner may think it there for a moment longer than its readers do
    t.false(await kv.touch('sum'));

    const keys: string[] = [];
    for await (const { key } of kv.scan()) keys.push(String(key));
    t.is(keys.length, 3001);
    t.is(new Set(keys).size, 3001);
    const few: string[] = [];
    for await (const { key } of kv.scan({ prefix: 'm29', batch: 20 })) few.push(String(key));
    t.deepEqual(new Set(few), new Set(keys.filter((key) => key.startsWith('m29'))));
    const whole = await kv.scanPage({ prefix: Buffer.from('m2999'), values: true });
    t.deepEqual(
      whole.entries.map(({ key, value }) => `${String(key)} ${String(value)}`),
      ['m2999 value 2999'],
    );
    t.deepEqual((await kv.scanPage({ prefix: 'none such' })).entries, []);
    t.deepEqual(
      [await kv.count(), await kv.count({ prefix: 'm29' }), await kv.count({ prefix: 'x y' })],
      [3001, few.length, 0],
    );
    await t.throwsAsync(kv.scanPage({ prefix: 'x'.repeat(1025) }), { code: 'ERR_ARGUMENT' });
    const page = await kv.scanPage({ values: true, batch: 50 });
    t.true(page.entries.length >= 50);
    for (const { key, value, flags, version, expiresAtMs } of page.entries) {
      if (!String(key).startsWith('m')) continue;
      t.is(String(value), `value ${flags}`);
      t.true(version > 0n);
      t.is(expiresAtMs, undefined);
    }
    const rest = await kv.scanPage({ cursor: page.cursor ?? '', batch: 4000 });
    t.is(page.entries.length + rest.entries.length, 3001);
    t.is(rest.cursor, undefined);

    const other = kv.namespace(60_000 + ownNamespace());
    await other.put('m1', 'elsewhere');
    t.is(String(await kv.get('m1')), 'value 1');
    t.is(String(await other.get('m1')), 'elsewhere');

    const { gets, reads, changes, transports } = kv.stats();
    t.true(gets > 3000 && reads >= gets && changes > 3000);
    t.is(transports.length, kv.transports().length);
  });

  test(`${transport}: 200 updates of one key all count, and soon come one after the other`, async (t) => {
    const namespace = ownNamespace();
    const made = await Promise.all(Array.from({ length: 4 }, () => client(t, { transport, namespace })));
    await made[0]!.put('sum', '0', { ttlMs: 3_600_000, flags: 7 });
    const before = await made[0]!.getEntry('sum');
    let tries = 0;
    const add = (value: Buffer | undefined): string => {
      tries++;
      return String(Number(value) + 1);
    };
    const all = await Promise.all(Array.from({ length: 200 }, (_, i) => made[i % 4]!.update('sum', add)));
    t.is(new Set(all.map(({ version }) => version)).size, 200);
    t.true(all.every(({ changed }) => changed));
    const after = await made[1]!.getEntry('sum');
    t.deepEqual(
      [String(after?.value), after?.flags, after?.expiresAtMs],
      ['200', 7, before?.expiresAtMs],
      'flags and expiry stay',
    );
    t.log(`${tries} tries`);
    t.true(tries < 6000, `${tries} tries`);
    const list = made[2]!.withCodec<string[]>('msgpack');
    await Promise.all(['a', 'b', 'c'].map((one) => list.update('list', (before = []) => [...before, one])));
    t.deepEqual((await list.get('list'))?.sort(), ['a', 'b', 'c']);
  });

  test(`${transport}: values of all sizes, to 1 MiB`, async (t) => {
    const kv = await client(t, { transport, strict: true });
    for (const bytes of [0, 1, 4095, 16_384, 16_385, 65_536, 65_537, 1 << 20]) await storesWhole(t, kv, bytes);
  });

  test(`${transport}: keys of all sizes, and bad ones`, async (t) => {
    const kv = await client(t, { transport });
    for (const key of ['k', 'ü'.repeat(512), 'k'.repeat(1024), new Uint8Array(1024).fill(255), '\0', '日本']) {
      await kv.put(key, 'x');
      t.is(String(await kv.get(key)), 'x');
      t.true(await kv.delete(key));
    }
    for (const key of [
      '',
      'k'.repeat(1025),
      'ü'.repeat(513),
      new Uint8Array(0),
      new Uint8Array(1025),
      5,
      null,
      undefined,
      {},
      ['a'],
      1n,
    ]) {
      const bad = key as string;
      for (const { name, plain, synchronous } of CALLS)
        if (plain !== undefined && (transport === 'shm' || synchronous !== true))
          await t.throwsAsync(async () => await plain(kv, bad), { code: 'ERR_KEY_INVALID' }, name);
      t.throws(() => kv.getInto(bad, Buffer.alloc(1)), { code: 'ERR_KEY_INVALID' });
    }
  });

  test(`${transport}: an entry with a time to live goes`, async (t) => {
    const kv = await client(t, { transport });
    await kv.put('stays', 'x', { ttlMs: 3_600_000 });
    const before = Date.now();
    await kv.put('goes', 'x', { ttlMs: 150 });
    while ((await kv.get('goes')) !== undefined);
    t.true(Date.now() - before >= 100);
    t.is(String(await kv.get('stays')), 'x');
    // A reader may find it gone a little before its owner does.
    while (!(await kv.compareAndSwap('goes', 0n, 'back')).swapped);
    t.is(String(await kv.get('goes')), 'back');
    for await (const { key, expiresAtMs } of kv.scan()) {
      if (String(key) === 'stays') t.true(Math.abs((expiresAtMs ?? 0) - before - 3_600_000) < 60_000);
    }
  });

  test(`${transport}: a scan while others write finds every key that was there throughout`, async (t) => {
    const kv = await client(t, { transport });
    const stable = Array.from({ length: 4000 }, (_, i) => `stable-${i}`);
    await kv.putMany(stable.map((key) => ({ key, value: key })));
    const state = { writing: true };
    const writer = (async () => {
      for (let i = 0; state.writing; i++) {
        await kv.putMany(Array.from({ length: 200 }, (_, j) => ({ key: `new-${i}-${j}`, value: 'x'.repeat(100) })));
        if (i > 2) await Promise.all(Array.from({ length: 100 }, (_, j) => kv.delete(`new-${i - 2}-${j}`)));
        await kv.put(stable[i % stable.length] ?? '', 'written again');
      }
    })();
    try {
      for (const values of [false, true, false]) {
        const seen = new Set<string>();
        for await (const { key } of values ? kv.scan({ values: true, batch: 64 }) : kv.scan({ batch: 64 }))
          seen.add(String(key));
        t.deepEqual(
          stable.filter((key) => !seen.has(key)),
          [],
        );
      }
    } finally {
      state.writing = false;
      await writer;
    }
  });
}

test('msgpack values, and a client with another codec', async (t) => {
  interface User {
    readonly name: string;
    readonly born: Date;
    readonly tags: readonly string[];
  }
  const users = await connect<User>({ servers: shared().addresses, codec: 'msgpack', namespace: ownNamespace() });
  t.teardown(() => users.close());
  const ada = { name: 'Ada', born: new Date('1815-12-10'), tags: ['countess', 'programmer'] };
  await users.put('ada', ada);
  t.deepEqual(await users.get('ada'), ada);
  t.deepEqual((await users.getEntry('ada'))?.value, ada);
  t.deepEqual(await users.getMany(['ada', 'bob']), [ada, undefined]);
  for await (const { value } of users.scan({ values: true })) t.deepEqual(value, ada);
  const bytes = users.withCodec('buffer');
  t.true(Buffer.isBuffer(await bytes.get('ada')));
  await bytes.put('raw', 'not msgpack');
  await t.throwsAsync(users.get('raw'), { code: 'ERR_CODEC', message: /"buffer"/ });
});
