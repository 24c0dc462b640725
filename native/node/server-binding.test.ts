/** The class DataPlane: what it takes, what it answers, and that it ends well at every stage of its life. */
import test from 'ava';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { addon } from '../addon.js';
import type { DataPlane, DataPlaneOptions } from '../data-plane.js';
import type { ShardRoute } from '../native-client.js';
import { lifeInProcess, testLivesInThreads } from '../../test/support/lives.js';
import { Driver, Plane, SECRET, SEED, SHARDS } from '../../test/support/native-pair.js';
import { requestsOf } from '../../test/support/request-counts.js';

const PROGRAM = fileURLToPath(new URL('../../test/support/plane-stages.js', import.meta.url));

const good: DataPlaneOptions = {
  serverIncarnation: 9n,
  hashSeed: SEED,
  ticketSecret: SECRET,
  shards: SHARDS,
  leaseMs: 100,
  driftPpm: 100,
  listen: [
    { provider: 'tcp', address: '127.0.0.1:0', worker: 1 },
    { provider: 'tcp', address: '[::1]:0', worker: 0 },
  ],
  workers: 2,
  maxClients: 10,
  clientQuota: 10,
  polling: 'never',
  hugePages: 'off',
};

function started(): DataPlane {
  const plane = new addon.DataPlane(good);
  plane.start();
  return plane;
}

/** `named`: what the message has, where that is not the option but a field of an entry. */
const bad: readonly (readonly [field: string, value: unknown, named?: string])[] = [
  ['serverIncarnation', 9],
  ['hashSeed', Buffer.alloc(15)],
  ['ticketSecret', 'secret'],
  ['shards', 0],
  ['shards', 65_537],
  ['shards', 1.5],
  ['leaseMs', 0],
  ['driftPpm', -1],
  ['tenants', {}],
  ['tenants', [{ shards: SHARDS }], 'maxClients'],
  ['tenants', [{ shards: 0, maxClients: 0 }], 'shards'],
  ['tenants', Array.from({ length: 17 }, () => ({ shards: 1, maxClients: 0 }))],
  ['listen', {}],
  ['listen', [{ provider: 'tcp', address: '127.0.0.1:0', worker: 2 }], 'worker'],
  ['listen', [{ provider: 'pigeon', address: '127.0.0.1:0', worker: 0 }], 'pigeon'],
  ['listen', [{ provider: 'tcp', address: '', worker: 0 }], 'address'],
  ['listen', [{ provider: 'tcp', address: 'x'.repeat(300), worker: 0 }], 'address'],
  ['listen', [undefined], 'provider'],
  ['listen', [{ provider: 'tcp', address: '127.0.0.1:0', worker: 0, device: 4 }], 'device'],
  ['workers', 65],
  ['maxClients', Number.NaN],
  ['clientQuota', Number.POSITIVE_INFINITY],
  ['polling', 10],
  ['polling', 'often'],
  ['hugePages', 1],
  ['hugePages', 'sometimes'],
];

for (const [field, value, named = field] of bad) {
  test(`an option that is wrong is named: ${field} ${inspect(value, { breakLength: Infinity })}`, (t) => {
    const error = t.throws(() => new addon.DataPlane({ ...good, [field]: value }), { code: 'ERR_CONFIG' });
    t.true(error.message.includes(named), error.message);
  });
}

test('addresses are answered as bound, in the order given', async (t) => {
  const plane = new addon.DataPlane(good);
  const bound = plane.start();
  t.deepEqual(
    bound.map(({ provider, worker }) => [provider, worker]),
    [
      ['tcp', 1],
      ['tcp', 0],
    ],
  );
  t.regex(bound[0]?.address ?? '', /^127\.0\.0\.1:[1-9]\d*$/);
  t.regex(bound[1]?.address ?? '', /^\[::1\]:[1-9]\d*$/);
  await plane.close();
});

test('each device has regions of its own, which clients READ over its addresses', async (t) => {
  const at = { provider: 'tcp', address: '127.0.0.1:0', worker: 0 } as const;
  const plane = new addon.DataPlane({ ...good, workers: 1, listen: [at, { ...at, device: 1 }] });
  const bound = plane.start();
  t.deepEqual(
    bound.map(({ device }) => device),
    [undefined, 1],
  );
  const routes: ShardRoute[] = [];
  for (let shard = 0; shard < SHARDS; shard++) {
    const own = { shard, worker: 0, epoch: 1, incarnation: BigInt(shard + 1), memoryBytes: 32 << 20 };
    routes.push({ ...(await plane.openShard(own)), owner: 1 });
    await plane.serveShard(shard);
  }
  const of = (device?: number) => routes.flatMap((r) => r.regions.filter((one) => one.device === device));
  t.true(of(1).length >= 2 * SHARDS);
  t.is(of(1).length, of(undefined).length);
  t.deepEqual(
    of(undefined).filter(({ rkey }) => of(1).some((other) => other.rkey === rkey)),
    [],
  );
  for (const { provider, address, device } of bound) {
    const client = new Driver();
    const addresses = [{ provider, address, ...(device === undefined ? {} : { device }) }];
    client.native.setOwners([{ owner: 1, serverIncarnation: good.serverIncarnation, addresses }]);
    client.native.setRoutes(routes);
    t.is((await client.put('key', `over ${device ?? 0}`)).status, 'OK');
    const found = await client.get('key');
    t.is(found.value.toString(), `over ${device ?? 0}`);
    t.is(client.native.stats().twoSidedGets, 0);
    t.deepEqual(
      client.events.map(({ type }) => type),
      ['connected'],
    );
    client.close();
  }
  await plane.close();
});

test('an address that cannot be had is an error that names it', async (t) => {
  const plane = new addon.DataPlane(good);
  const [bound] = plane.start();
  const address = bound?.address ?? '';
  const second = new addon.DataPlane({ ...good, listen: [{ provider: 'tcp', address, worker: 0 }] });
  t.true(t.throws(() => second.start(), { code: 'ERR_ADDRESS_IN_USE' }).message.includes(address));
  const third = new addon.DataPlane({ ...good, listen: [{ provider: 'tcp', address: 'nowhere', worker: 0 }] });
  t.throws(() => third.start(), { code: 'ERR_ADDRESS_INVALID' });
  await plane.close();
  second.start();
  await second.close();
  await third.close();
});

test('a shard is opened, described, served and closed', async (t) => {
  const plane = started();
  const opened = await plane.openShard({
    shard: 2,
    worker: 1,
    epoch: 7,
    incarnation: 2n ** 64n - 1n,
    memoryBytes: 32 << 20,
  });
  t.like(opened, { shard: 2, epoch: 7, incarnation: 2n ** 64n - 1n });
  t.true(opened.buckets > 0 && opened.layoutEpoch > 0);
  t.deepEqual(new Set(opened.regions.map(({ kind }) => kind)), new Set(['index', 'heap']));
  for (const { provider, tag, bytes, rkey } of opened.regions)
    t.true(provider === 'tcp' && tag > 0 && bytes > 0 && rkey > 0n);
  t.deepEqual(await plane.layout(2), opened);
  await t.throwsAsync(plane.openShard({ shard: 2, worker: 0, epoch: 7, incarnation: 1n, memoryBytes: 32 << 20 }), {
    code: 'ERR_BUSY',
  });
  await t.throwsAsync(plane.serveShard(1), { code: 'ERR_NOT_OWNER' });
  t.throws(() => void plane.serveShard(SHARDS), { code: 'ERR_CONFIG' });
  t.throws(() => void plane.openShard({ shard: 1, worker: 0, epoch: 1, incarnation: 1n, memoryBytes: 1 }), {
    code: 'ERR_CONFIG',
  });
  await plane.serveShard(2);
  t.true((await plane.stats()).shards[0]?.serving);
  await plane.closeShard(2);
  t.deepEqual((await plane.stats()).shards, []);
  await plane.close();
});

test('a copy that is told to stop answers when nothing of it is under way, whoever asks and however often; then the shard can be copied anew', async (t) => {
  const [from, to] = await Promise.all([Plane.start(), Plane.start({ incarnation: 2n, closed: true })]);
  const { incarnation } = from.layouts[0]!;
  const copy = {
    shard: 0,
    epoch: 1,
    incarnation,
    serverIncarnation: from.incarnation,
    copy: to.layouts[0]!.incarnation,
    addresses: [{ provider: from.provider, address: from.address }],
  };
  await to.native.stopCopy(0);
  await to.native.copyShard(copy);
  await t.throwsAsync(to.native.copyShard(copy), { code: 'ERR_BUSY' });
  const stopped = [to.native.stopCopy(0), to.native.stopCopy(0)];
  await t.throwsAsync(to.native.followCopy(0), { code: 'ERR_ABORTED' });
  await Promise.all(stopped);
  // What was said of the first, twice, is not said of this one.
  await to.native.copyShard(copy);
  await t.throwsAsync(to.native.copyShard(copy), { code: 'ERR_BUSY' });
  const last = to.native.stopCopy(0);
  await Promise.all([to.close(), last]);
  await t.throwsAsync(to.native.stopCopy(0), { code: 'ERR_CLOSED' });
  await from.close();
});

test('counters are there for every worker and shard', async (t) => {
  const plane = await Plane.start();
  const client = Driver.to(plane);
  await client.put('a', 'v');
  await client.compareAndSwap('a', 5n, 'w');
  await client.increment('n', 1n);
  const { workers, shards } = await plane.native.stats();
  t.is(workers.length, 1);
  t.is(shards.length, SHARDS);
  t.is(workers[0]?.clients, 1);
  t.is(workers[0]?.requests.put, 1);
  t.is(workers[0]?.requests.cas, 1);
  const { lease, layout } = workers[0]!.latencyNs;
  const counts = Object.entries(workers[0]!.latencyNs).map(([kind, { count }]) => [kind, count] as const);
  const expected = requestsOf({ put: 1, cas: 1, increment: 1, lease: lease.count, layout: layout.count });
  t.deepEqual(Object.fromEntries(counts), expected);
  const { p50, p99, max } = workers[0]!.latencyNs.put;
  t.true(p50 > 0 && p50 <= p99 && p99 <= max);
  t.true((workers[0]?.threadId ?? 0) > 0);
  t.is(
    shards.reduce((sum, { entries }) => sum + entries, 0),
    2,
  );
  client.close();
  await plane.close();
});

test('onLayout says when segments have come', async (t) => {
  const plane = await Plane.start({ memoryBytes: 64 << 20 });
  const client = Driver.to(plane);
  let told: readonly [number, number] | undefined;
  plane.native.onLayout = (shard, layoutEpoch) => (told = [shard, layoutEpoch]);
  for (let i = 0; told === undefined; i++) await client.put(`k${i}`, Buffer.alloc(10_000));
  const [shard, layoutEpoch] = told;
  const now = await plane.native.layout(shard);
  t.true(now.layoutEpoch >= layoutEpoch && now.regions.length > (plane.layouts[shard]?.regions.length ?? 0));
  client.close();
  await plane.close();
});

test('what a table may have is set for all that are open', async (t) => {
  const plane = await Plane.start({});
  plane.native.setTableMemory(8 << 20);
  const { shards } = await plane.native.stats();
  t.true(shards.length > 0 && shards.every(({ memoryBytes }) => memoryBytes === 8 << 20));
  for (const wrong of [(4 << 20) - 1, (8 << 20) + 0.5, NaN, 2 ** 60, 'x', undefined])
    t.throws(() => plane.native.setTableMemory(wrong as number), { code: 'ERR_CONFIG' });
  await plane.close();
});

test('nothing is granted or answered beyond the end that was set', async (t) => {
  const plane = await Plane.start({ leaseMs: 50 });
  const client = Driver.to(plane);
  t.is((await client.put('a', 'v')).status, 'OK');
  plane.native.setGrantUntil(addon.bootTimeNs());
  // It is asked again and again until its time is over; that may be in the middle of a question.
  for (let status = ''; status !== 'ERR_SHARD_UNAVAILABLE';) {
    ({ status } = await client.put('a', 'w', 300));
    t.true(['ERR_SHARD_UNAVAILABLE', 'ERR_INDETERMINATE', 'ERR_TIMEOUT'].includes(status), status);
  }
  plane.native.setGrantUntil(2n ** 64n - 1n);
  t.is((await client.get('a')).value.toString(), 'v');
  t.throws(() => plane.native.setGrantUntil(5 as unknown as bigint), { code: 'ERR_CONFIG' });
  client.close();
  await plane.close();
});

test('calls before start and after close are refused', async (t) => {
  const plane = new addon.DataPlane(good);
  await t.throwsAsync(plane.stats(), { code: 'ERR_CLOSED' });
  plane.start();
  t.throws(() => plane.start(), { code: 'ERR_CLOSED' });
  const pending = plane.stats().then(
    () => 'answered',
    (e: unknown) => (e as { code: string }).code,
  );
  await Promise.all([plane.close(), plane.close()]);
  t.true(['answered', 'ERR_CLOSED'].includes(await pending));
  await plane.close();
  await t.throwsAsync(plane.layout(0), { code: 'ERR_CLOSED' });
  t.throws(() => plane.start(), { code: 'ERR_CLOSED' });
});

test('methods do not take another object for this', (t) => {
  const stats = Object.getOwnPropertyDescriptor(addon.DataPlane.prototype, 'stats')?.value as (
    this: unknown,
  ) => unknown;
  t.throws(() => stats.call({}), { instanceOf: TypeError });
  t.throws(() => (addon.DataPlane as unknown as (o: DataPlaneOptions) => unknown)(good), {
    code: 'ERR_CONSTRUCT_CALL_REQUIRED',
  });
});

// ---- how a process ends

/**
 * process.exit on the main thread runs no clean-up of addons, so a socket may stay; whoever comes next takes its
 * address.
 */
async function takeOver(address: string): Promise<void> {
  const plane = new addon.DataPlane({ ...good, listen: [{ provider: 'shm', address: `unix:${address}`, worker: 0 }] });
  plane.start();
  await plane.close();
}

const ends: readonly (readonly [stage: string, out: string, code: number])[] = [
  ['made', 'made', 0],
  ['made and collected', 'collected', 0],
  ['not started and closed', 'closed', 0],
  ['started', 'started', 0],
  ['started twice at one address', 'ERR_ADDRESS_IN_USE', 0],
  ['started and exit', 'exiting', 0],
  ['opening', 'opened', 0],
  ['opening and exit', 'exiting', 0],
  ['opening and closed', 'closed', 0],
  ['serving and exit', 'exiting', 0],
  ['closing and exit', 'exiting', 0],
  ['with clients at work and closed', 'closed', 0],
  ['with clients at work and exit', 'exiting', 0],
  ['an exception that nobody catches', 'throwing', 1],
  ['an exception in onLayout', 'from onLayout', 0],
  ['running and not collected', 'ERR_ADDRESS_IN_USE', 0],
  ['a whole life', 'lived', 0],
];

const mayLeave = ['started and exit', 'opening and exit', 'serving and exit', 'an exception that nobody catches'];

for (const [stage, out, code] of ends) {
  test(`a process ends well: ${stage}`, async (t) => {
    const end = await lifeInProcess(t, PROGRAM, stage);
    t.deepEqual(
      { exit: end.code, signal: end.signal, said: end.out },
      { exit: code, signal: null, said: out },
      end.err,
    );
    const socket = join(end.directory, `farkv-stage-${end.pid}-0.sock`);
    if (existsSync(socket)) t.true(mayLeave.includes(stage));
    await takeOver(socket);
    t.false(existsSync(socket));
  });
}

testLivesInThreads(
  PROGRAM,
  ['made', 'started', 'opening and closed', 'with clients at work and closed'],
  (threadId) => !existsSync(join(tmpdir(), `farkv-stage-${process.pid}-${threadId}.sock`)),
);
