/**
 * Values that survive their server, with real processes: the owner of half of the shards is killed while it is written
 * to, and every value that was acknowledged is there; it comes back, and has copies again.
 */
import test from 'ava';
import { FarkvError } from '../../client/index.js';
import type { ClusterStatus } from '../../server/status.js';
import { Cluster, farkv } from '../support/cluster.js';
import { patient } from '../support/sdk-clients.js';
import { copied, statusWhen } from '../support/status.js';

const SMALL = { servers: 3, shards: 6, memory: '64mb', args: ['--lease-ms', '400'] } as const;
/** Where an owner without copies is to be taken for dead. */
const QUICK = ['--lease-ms', '400', '--owner-lease-ms', '3000'] as const;

const kept = (status: ClusterStatus): boolean =>
  status.shards.every((s) => s.state === 'serving' && s.copies?.inSync === 2 && s.copies.copies.length === 2);

test.serial('every acknowledged value is there after its owner was killed, and copies are made again', async (t) => {
  const cluster = await Cluster.start(t, SMALL);
  const [address, other] = [cluster.server(0).address, cluster.server(1).address];
  await statusWhen(address, kept);
  t.regex(
    (await farkv(['status', '--connect', address])).stdout,
    /^level replicated: each value is kept by 2 servers/m,
  );

  const client = await patient(t, cluster.addresses);
  const acknowledged = new Map<string, string>();
  let stopped = false;
  const writer = async (n: number): Promise<void> => {
    for (let i = 0; !stopped; i++) {
      const [key, value] = [`key-${n}-${i % 200}`, `value-${n}-${i}`];
      try {
        await client.put(key, Buffer.from(value));
        acknowledged.set(key, value);
      } catch (error) {
        if (!(error instanceof FarkvError)) throw error;
        // What became of it is not known: it says nothing any more.
        acknowledged.delete(key);
      }
    }
  };
  const writers = [0, 1, 2, 3].map(writer);
  while (acknowledged.size < 400) await new Promise((resolve) => setImmediate(resolve));
  // A copy that a busy machine held up may have been left behind meanwhile.
  await statusWhen(address, kept);
  await cluster.server(2).kill();
  const dead = cluster.server(2).id;
  await statusWhen(other, (s) => s.shards.every((one) => one.owner !== dead && one.state === 'serving'));
  stopped = true;
  await Promise.all(writers);
  t.log(`${acknowledged.size} keys`);
  const missing: string[] = [];
  for (const [key, value] of acknowledged) {
    const found = await client.get(key);
    if (found?.toString() !== value) missing.push(key);
  }
  t.deepEqual(missing, []);

  await cluster.server(2).start();
  await statusWhen(other, kept);
});

test.serial('a copy of a shard with many values is made, and made anew', async (t) => {
  const cluster = await Cluster.start(t, { ...SMALL, shards: 1, level: 'cache' });
  const [address, other] = [cluster.server(0).address, cluster.server(1).address];
  const client = await patient(t, cluster.addresses);
  // So many that the table of a copy has to grow in the order in which the owner's is listed.
  const keys = Array.from({ length: 100_000 }, (_, i) => `key-${i}`);
  for (let i = 0; i < keys.length; i += 1000)
    await client.putMany(keys.slice(i, i + 1000).map((key) => ({ key, value: Buffer.from(key) })));
  const set = await farkv(['replication', 'set', '--level', 'replicated', '--connect', address]);
  t.is(set.code, 0, set.stderr);
  const status = await statusWhen(address, kept);
  const owner = cluster.servers.find(({ id }) => id === status.shards[0]?.owner)!;
  await owner.kill();
  await owner.start();
  await statusWhen(owner === cluster.server(0) ? other : address, kept);
  for (let i = 0; i < keys.length; i += 1000) {
    const values = await client.getMany(keys.slice(i, i + 1000));
    t.deepEqual(
      values.map((value) => value?.toString()),
      keys.slice(i, i + 1000),
    );
  }
});

test.serial('a server that is killed before its shards were served leaves nothing that waits for it', async (t) => {
  const cluster = await Cluster.start(t, { ...SMALL, args: QUICK, ready: false });
  const [address, doomed] = [cluster.server(0).address, cluster.server(2)];
  await cluster.server(0).said(/control on /);
  await statusWhen(address, (s) => s.shards.some(({ owner }) => owner === doomed.id));
  await doomed.kill();
  await statusWhen(address, (s) => s.shards.every(({ owner, state }) => owner !== doomed.id && state === 'serving'));
  const client = await patient(t, address);
  for (let i = 0; i < 40; i++) await client.put(`key-${i}`, Buffer.from('v'));
  t.is((await client.getMany(['key-0', 'key-39'])).filter((value) => value?.toString() === 'v').length, 2);
});

test.serial('a new cluster of three may be a cache', async (t) => {
  const cluster = await Cluster.start(t, { ...SMALL, level: 'cache' });
  const { replication } = await statusWhen(cluster.server(0).address, (s) => s.replication.length > 0);
  t.deepEqual(
    replication.map(({ level }) => level),
    ['cache'],
  );
  await cluster.server(0).said(/level cache: each value is kept by one server, and lost with it/);
});

test.serial('a new cluster of which a server does not come keeps each value twice all the same', async (t) => {
  const cluster = await Cluster.start(t, { ...SMALL, servers: 3, absent: [2], ready: false, level: 'replicated' });
  const [first, second] = [0, 1].map((i) =>
    cluster.server(i).said(/s3 did not come within 10000 ms: the shards go to s1, s2/),
  );
  await Promise.race([first, second]);
  const { shards } = await statusWhen(cluster.server(0).address, copied);
  for (const { copies } of shards) t.is(copies?.inSync, 2);
});
