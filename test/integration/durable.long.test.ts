/**
 * Values that survive the end of every server, with real processes: they are killed while they are written to, and every
 * value that was acknowledged is there when they are back.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { ClusterStatus } from '../../server/status.js';
import { Cluster, farkv } from '../support/cluster.js';
import { MIB, open, Writing } from '../support/durable-writes.js';
import { statusOf, statusWhen } from '../support/status.js';

const ONE = { servers: 1, shards: 2, memory: '64mb', level: 'durable', args: ['--lease-ms', '400'] } as const;
const THREE = {
  servers: 3,
  shards: 6,
  memory: '64mb',
  level: 'durable',
  args: ['--lease-ms', '400', '--owner-lease-ms', '1000'],
} as const;
/** An owner knows a copy that is away for so long (native/replication/copies.c). */
const KEPT_MS = 10_000;

const kept = (status: ClusterStatus): boolean =>
  status.shards.every((s) => s.state === 'serving' && s.copies?.inSync === 2 && s.copies.copies.length === 2);

test.serial('every acknowledged value is there after the only server was killed, again and again', async (t) => {
  const cluster = await Cluster.start(t, ONE);
  for (let round = 0; round < 3; round++) {
    const client = await open(t, cluster);
    const writing = new Writing(client);
    await writing.have(1000);
    await cluster.server(0).kill();
    const stopped = writing.stop();
    await cluster.server(0).start();
    await stopped;
    t.log(`${writing.keys} keys`);
    t.deepEqual(await writing.missing(client), []);
    await client.close();
  }
});

test.serial('every acknowledged value is there after an orderly end', async (t) => {
  const cluster = await Cluster.start(t, ONE);
  const client = await open(t, cluster);
  const writing = new Writing(client);
  await writing.have(500);
  await writing.stop();
  t.is((await cluster.server(0).stop()).code, 0);
  await cluster.server(0).start();
  t.deepEqual(await writing.missing(client), []);
});

test.serial('with --sync a server that ends in order loses nothing', async (t) => {
  const cluster = await Cluster.start(t, { ...ONE, args: [...ONE.args, '--sync', '10s'] });
  const client = await open(t, cluster);
  const writing = new Writing(client);
  await writing.have(500);
  await writing.stop();
  t.is((await statusOf(cluster.addresses[0]!)).members[0]?.node?.values?.syncMs, 10_000);
  t.is((await cluster.server(0).stop()).code, 0);
  await cluster.server(0).start();
  t.deepEqual(await writing.missing(client), []);
});

test.serial('with --sync a server that is killed has what its disk had', async (t) => {
  const cluster = await Cluster.start(t, { ...ONE, args: [...ONE.args, '--sync', '50ms'] });
  const [address] = cluster.addresses;
  const client = await open(t, cluster);
  const keys = Array.from({ length: 1000 }, (_, i) => `key-${i}`);
  await Promise.all(keys.map((key) => client.put(key, Buffer.from(key))));
  // Each is one record, and records are counted when they are synced.
  await statusWhen(address!, ({ members }) => {
    const workers = members[0]?.node?.dataPlane?.workers ?? [];
    return workers.reduce((n, { log }) => n + (log?.records ?? 0), 0) >= keys.length;
  });
  await cluster.server(0).kill();
  await cluster.server(0).start();
  for (const key of keys) t.is((await client.get(key))?.toString(), key);
});

test.serial('every acknowledged value is there after all servers were killed at once', async (t) => {
  const cluster = await Cluster.start(t, THREE);
  const [address] = cluster.addresses;
  await statusWhen(address!, kept);
  const client = await open(t, cluster);
  for (let round = 0; round < 3; round++) {
    const writing = new Writing(client);
    await writing.have(1000);
    await Promise.all(cluster.servers.map((s) => s.kill()));
    const stopped = writing.stop();
    await Promise.all(cluster.servers.map((s) => s.start()));
    await stopped;
    t.log(`${writing.keys} keys`);
    t.deepEqual(await writing.missing(client), []);
    await statusWhen(address!, kept);
  }
});

test.serial('a server that was killed and is back soon has copies again, and nothing is lost', async (t) => {
  const cluster = await Cluster.start(t, THREE);
  const [address, other] = [cluster.server(0).address, cluster.server(1)];
  await statusWhen(address, kept);
  const client = await open(t, cluster);
  const writing = new Writing(client);
  await writing.have(500);
  await other.kill();
  await other.start();
  await statusWhen(address, kept);
  await writing.stop();
  t.deepEqual(await writing.missing(client), []);
});

test.serial(
  'a server that was killed goes on with what is on its disk, also of the shards that it owned',
  async (t) => {
    const cluster = await Cluster.start(t, THREE);
    const [address, other] = [cluster.server(0).address, cluster.server(1)];
    const client = await open(t, cluster);
    const keys = Array.from({ length: 200 }, (_, i) => `key-${i}`);
    await statusWhen(address, kept);
    for (let round = 0; ; round++) {
      await client.putMany(keys.map((key) => ({ key, value: `before ${round}` })));
      const began = performance.now();
      await other.kill();
      await client.putMany(keys.map((key) => ({ key, value: `after ${round}` })));
      await other.start();
      await statusWhen(address, kept);
      for (const value of await client.getMany(keys)) t.is(value?.toString(), `after ${round}`);
      const tookMs = performance.now() - began;
      t.log(`${Math.round(tookMs)} ms`);
      // Who is away for longer may get its copies anew.
      if (tookMs < KEPT_MS) break;
    }
    t.regex(other.stderr, /the copy on this disk goes on/);
    t.notRegex(other.stderr, /a copy is made here/);
  },
);

test.serial('a server alone leaves its disk as it is, since its metadata may be old', async (t) => {
  const cluster = await Cluster.start(t, THREE);
  await statusWhen(cluster.server(0).address, kept);
  await Promise.all(cluster.servers.map((s) => s.kill()));
  const [one, ...others] = cluster.servers;
  const values = join(one!.dataDir, 'values');
  const before = readdirSync(values).sort();
  one!.launch();
  await one!.said(/waiting for the metadata, before values are recovered|recovered \d+ of \d+ copies/);
  t.notRegex(one!.stderr, /recovered \d+ of/);
  t.deepEqual(readdirSync(values).sort(), before);
  await Promise.all([one!.ready(), ...others.map((s) => s.start())]);
  t.regex(one!.stderr, /recovered (\d+) of \1 copies/);
});

test.serial('status shows what each disk has, also while a server recovers', async (t) => {
  const cluster = await Cluster.start(t, ONE);
  const server = cluster.server(0);
  const client = await open(t, cluster);
  for (let i = 0; i < 40; i++) await client.put(`key-${i}`, Buffer.alloc(1 << 20, i));
  const { node } = (await statusOf(server.address)).members[0]!;
  const [log] = node!.dataPlane!.workers.map((w) => w.log!);
  t.true(log!.bytes > 40 << 20 && log!.records >= 40 && log!.syncNs.count > 0 && !log!.diskFull, JSON.stringify(log));
  t.is(node!.values!.snapshots, ONE.shards);
  t.is(node!.values!.recovering, undefined);
  t.regex(
    (await farkv(['status', '--connect', server.address])).stdout,
    /^DISK +LOG +FREE FILES .*\ns1 +[\d.]+ MiB +\d .*s +\d+\.\d +2 +\S+ \S+$/m,
  );
  await server.kill();
  server.launch();
  await server.said(/control on /);
  // It may be done before it is asked.
  const seen = await statusWhen(server.address, (s) => {
    const { recovering } = s.members[0]?.node?.values ?? {};
    return recovering !== undefined || s.members[0]?.node?.dataPlane !== undefined;
  });
  t.log(JSON.stringify(seen.members[0]?.node?.values));
  await server.ready();
  t.is((await statusOf(server.address)).members[0]?.node?.values?.recovering, undefined);
});

test.serial('a server that is told to end while it recovers ends, and loses nothing', async (t) => {
  const cluster = await Cluster.start(t, ONE);
  const server = cluster.server(0);
  const client = await open(t, cluster);
  for (let i = 0; i < 40; i++) await client.put(`key-${i}`, Buffer.alloc(1 << 20, i));
  await server.kill();
  for (let i = 0; i < 3; i++) {
    server.launch();
    await server.said(/control on /);
    t.is((await server.stop()).code, 0, server.stderr);
  }
  await server.start();
  for (let i = 0; i < 40; i++) {
    const value = (await client.get(`key-${i}`)) as Buffer | undefined;
    t.true(value?.equals(Buffer.alloc(1 << 20, i)), `key ${i}`);
  }
});

/** A log is cut at 256 MiB, beside what comes meanwhile; files lie ahead of it, and some wait to be used again. */
const LOG_MAX = 2 * 256 * MIB + 2 * 64 * MIB;

test.serial('the disk has at most two snapshots of what lives, and the log, however much is written', async (t) => {
  const args = [...ONE.args, '--data-plane-threads', '1'];
  const cluster = await Cluster.start(t, { ...ONE, args, memory: '128mb' });
  const client = await open(t, cluster);
  const { address, dataDir } = cluster.server(0);
  const values = join(dataDir, 'values');
  const taken = (): number =>
    readdirSync(values)
      .map((name) => statSync(join(values, name), { throwIfNoEntry: false })?.size ?? 0)
      .reduce((a, b) => a + b, 0);
  const [keys, bytes, rounds] = [10_000, 1000, 120];
  let most = 0;
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < keys; i += 1000)
      await client.putMany(
        Array.from({ length: 1000 }, (_, n) => ({ key: `key-${i + n}`, value: Buffer.alloc(bytes, round) })),
      );
    most = Math.max(most, taken());
  }
  const written = keys * bytes * rounds;
  t.log(`${written / MIB} MiB of values written, at most ${most / MIB} MiB on the disk`);
  t.true(most <= 2 * keys * (bytes + 100) + LOG_MAX);
  t.true(written > 1.5 * LOG_MAX, 'the log was cut meanwhile');
  t.true(((await statusOf(address)).members[0]?.node?.values?.snapshots ?? 0) > 0);
});

test.serial('what durable values need is said', async (t) => {
  const without = await farkv(['server', '--level', 'durable', '--listen', '127.0.0.1:0']);
  t.is(without.code, 2);
  t.regex(without.stderr, /--level: durable values are on a disk.*name a directory on a disk/);
  const cluster = await Cluster.start(t, ONE);
  const { address, dataDir } = cluster.server(0);
  const twice = await farkv(['server', '--data-dir', dataDir, '--listen', '127.0.0.1:0', '--level', 'durable']);
  t.is(twice.code, 1);
  t.regex(twice.stderr, /is in use by another farkv server/);
  const set = await farkv(['replication', 'set', '--level', 'cache', '--connect', address]);
  t.is(set.code, 1);
  t.regex(set.stderr, /what is durable stays so.*farkv backup and farkv restore/);
  t.regex((await farkv(['status', '--connect', address])).stdout, /^level durable: /m);
});
