/**
 * Durable values of several servers that answer before their disks (--sync 50ms), with real processes: a server that is
 * killed loses nothing, and all of them at once only the end of what was acknowledged (docs/early-answers.md).
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import test from 'ava';
import { FarkvError } from '../../client/index.js';
import type { ClusterStatus } from '../../server/status.js';
import { Cluster, farkv, type ServerProcess } from '../support/cluster.js';
import { open, Writing } from '../support/durable-writes.js';
import { statusWhen } from '../support/status.js';

const THREE = {
  servers: 3,
  memory: '64mb',
  level: 'durable',
  args: ['--lease-ms', '400', '--owner-lease-ms', '1000', '--sync', '50ms'],
} as const;
const WRITERS = 4;
/** What is answered is on its way to the disk after 50 ms; the rest is the sync, and a machine with other work. */
const LOST_MS = 1000;

const kept = (status: ClusterStatus): boolean =>
  status.shards.every((s) => s.state === 'serving' && s.copies?.inSync === 2 && s.copies.copies.length === 2);
const mark = ({ dataDir }: ServerProcess): string => join(dataDir, 'values', 'early');

test.serial('nothing that was acknowledged is lost with one server, whichever is killed under load', async (t) => {
  const cluster = await Cluster.start(t, { ...THREE, shards: 6 });
  const client = await open(t, cluster);
  for (const server of cluster.servers) {
    const [other] = cluster.servers.filter((one) => one !== server);
    await statusWhen(other!.address, kept);
    const writing = new Writing(client);
    await writing.have(700);
    await server.kill();
    await writing.have(1000);
    await writing.stop();
    t.log(`${writing.keys} keys`);
    t.deepEqual(await writing.missing(client), []);
    t.true(existsSync(mark(server)));
    await server.start();
    await statusWhen(other!.address, kept);
    t.deepEqual(await writing.missing(client), []);
  }
});

test.serial('two servers killed one after the other lose nothing: what one alone answers is on its disk', async (t) => {
  const cluster = await Cluster.start(t, { ...THREE, shards: 1 });
  const client = await open(t, cluster);
  const status = await statusWhen(cluster.server(0).address, kept);
  const [first, second] = status.shards[0]!.copies!.copies.map(({ member }) => member);
  const at = (id: string): ServerProcess => cluster.servers.find((s) => s.id === id)!;
  const writing = new Writing(client);
  await writing.have(500);
  await at(first!).kill();
  const before = writing.keys;
  await writing.have(before + 200);
  await at(second!).kill();
  await Promise.all([at(first!).start(), at(second!).start()]);
  await writing.stop();
  t.deepEqual(await writing.missing(client), []);
});

/**
 * Each changes keys of its own in a row, until it is told to stop, so slowly that no buffer of a log is full before its
 * time is over. `acknowledged`: by writer, when each was.
 */
function rows(
  client: Awaited<ReturnType<typeof open>>,
  round: number,
): { acknowledged: number[][]; stop: () => Promise<void> } {
  const acknowledged = Array.from({ length: WRITERS }, (): number[] => []);
  let stopped = false;
  const all = acknowledged.map(async (_, n) => {
    for (let i = 0; !stopped; i++) {
      try {
        await client.put(`row-${round}-${n}-${i}`, String(i));
      } catch (error) {
        if (!(error instanceof FarkvError)) throw error;
        // From here on the row is not known to be without a gap.
        return;
      }
      acknowledged[n]?.push(performance.now());
      await pause(1);
    }
  });
  return { acknowledged, stop: async () => ((stopped = true), await Promise.all(all).then(() => undefined)) };
}

test.serial(
  'all servers killed at once lose the end of what was acknowledged, and nothing that was synced',
  async (t) => {
    // Of one shard, so that there is one order.
    const cluster = await Cluster.start(t, { ...THREE, shards: 1 });
    const [address] = cluster.addresses;
    for (let round = 0; round < 3; round++) {
      await statusWhen(address!, kept);
      const client = await open(t, cluster);
      const synced = Array.from({ length: 500 }, (_, i) => `synced-${round}-${i}`);
      const recordsOf = (s: ClusterStatus): number =>
        s.members
          .flatMap(({ node }) => node?.dataPlane?.workers ?? [])
          .reduce((n, { log }) => n + (log?.records ?? 0), 0);
      const before = recordsOf(await statusWhen(address!, kept));
      await Promise.all(synced.map((key) => client.put(key, key)));
      // Each is a record of both copies, and records are counted when they are synced.
      await statusWhen(address!, (s) => recordsOf(s) >= before + 2 * synced.length);
      const { acknowledged, stop } = rows(client, round);
      const began = performance.now();
      while (performance.now() - began < 3 * LOST_MS || acknowledged.some((times) => times.length < 200))
        await new Promise((resolve) => setImmediate(resolve));
      const killedMs = performance.now();
      const killed = cluster.servers.map((s) => s.kill());
      const stopping = stop();
      await Promise.all(killed);
      const known = acknowledged.map((times) => [...times]);
      await Promise.all(cluster.servers.map((s) => s.start()));
      await stopping;
      for (const key of synced) t.is((await client.get(key))?.toString(), key);
      for (const [n, times] of known.entries()) {
        const count = times.length;
        const there = await client.getMany(Array.from({ length: count }, (_, i) => `row-${round}-${n}-${i}`));
        const lost = there.filter((value) => value === undefined).length;
        const sinceMs = lost === 0 ? 0 : killedMs - (times[count - lost] ?? 0);
        t.log(
          `round ${round}: of ${count} changes the last ${lost} are lost, the first ${sinceMs.toFixed(0)} ms before the end`,
        );
        t.true(sinceMs < LOST_MS, 'what was answered long before the end was synced');
        t.true(
          there.slice(0, count - lost).every((value) => value !== undefined),
          'no change is lost before one that is there',
        );
      }
      await client.close();
    }
  },
);

test.serial('a server that ends in order comes back with its copies, and status says what is promised', async (t) => {
  const cluster = await Cluster.start(t, { ...THREE, shards: 3 });
  const [first, other] = cluster.servers;
  await statusWhen(first!.address, kept);
  t.regex(
    (await farkv(['status', '--connect', first!.address])).stdout,
    /^s2 answers changes before its disk has them \(--sync 50ms\): if all copies/m,
  );
  const client = await open(t, cluster);
  await client.put('key', 'value');
  t.true(existsSync(mark(other!)));
  t.is((await other!.stop()).code, 0);
  t.false(existsSync(mark(other!)));
  await other!.start();
  await statusWhen(first!.address, kept);
  t.regex(other!.stderr, /the copy on this disk goes on/);
  t.is((await client.get('key'))?.toString(), 'value');
});

test.serial('owners take away the copies of a server that is drained, and those that are one too many', async (t) => {
  const cluster = await Cluster.start(t, { ...THREE, shards: 6 });
  const [first, other] = cluster.servers;
  const { address } = first!;
  await statusWhen(address, kept);
  const client = await open(t, cluster);
  const writing = new Writing(client);
  await writing.have(500);
  const has = ({ copies }: ClusterStatus['shards'][number], id: string): boolean =>
    copies?.copies.some(({ member }) => member === id) === true;
  t.is((await farkv(['drain', other!.id, '--connect', address])).code, 0);
  await statusWhen(address, (s) => kept(s) && s.shards.every((shard) => !has(shard, other!.id)));
  t.is((await farkv(['replication', 'set', '--replicas', '1', '--connect', address])).code, 0);
  await statusWhen(address, (s) => s.shards.every(({ copies }) => copies?.copies.length === 1));
  await writing.stop();
  t.deepEqual(await writing.missing(client), []);
});
