/**
 * Servers that are stopped together, the metadata leader among them, with real processes: no value is lost by that. A leader that
 * stalls again and again still replaces a dead owner.
 */
import test, { type ExecutionContext } from 'ava';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type BufferValue, type Client } from '../../client/index.js';
import { Cluster } from '../support/cluster.js';
import { keysOf, raised } from '../support/owners.js';
import { leaderOf, statusOf, statusWhen, whole } from '../support/status.js';

const LEASE_MS = 2000;
const ARGS = ['--lease-ms', '300', '--owner-lease-ms', String(LEASE_MS), '--election-ms', '1500'];
const KEYS = 120;

async function written(t: ExecutionContext, cluster: Cluster, transport: 'shm' | 'tcp'): Promise<{ readonly kv: Client<BufferValue, Buffer>; readonly keys: readonly string[] }> {
  const kv = await connect({ servers: cluster.addresses, transport, strict: true, unavailableAfterMs: Infinity, timeoutMs: 120_000 });
  t.teardown(() => kv.close());
  const keys = Array.from({ length: KEYS }, (_, i) => `key-${i}`);
  await kv.putMany(keys.map((key) => ({ key, value: `value of ${key}` })));
  return { kv, keys };
}

/** Owner and epoch of each shard. */
async function placesOf(address: string): Promise<string[]> {
  const { shards } = await statusOf(address);
  return shards.map((s) => `${s.shard} ${s.owner ?? ''} ${s.epoch}`);
}

for (const [what, transport, stopped] of [['the leader and one more are', 'shm', 2], ['all servers are', 'tcp', 3]] as const) {
  test.serial(`${transport}: ${what} stopped for longer than the leases: every value is there when they go on, under the same epochs`, async (t) => {
    const cluster = await Cluster.start(t, { servers: 3, shards: 6, args: ARGS });
    await raised(cluster);
    const { kv, keys } = await written(t, cluster, transport);
    const leader = await leaderOf(cluster);
    const left = cluster.server((leader + 2) % 3);
    for (let times = 0; times < 3; times++) {
      const { term } = await statusWhen(left.address, whole);
      const before = await placesOf(left.address);
      const together = [0, 1, 2].slice(0, stopped).map((n) => cluster.server((leader + n) % 3));
      const said = left.stderr.length;
      for (const server of together) server.signal('SIGSTOP');
      // The fault is a time: leases end by the clock, and nobody can say so when all are stopped.
      if (stopped === 3) await sleep(1.3 * LEASE_MS);
      else await left.waitUntil(() => left.stderr.includes('has no lease from the metadata group', said), 'the end of its lease');
      for (const server of together) server.signal('SIGCONT');

      t.deepEqual((await kv.getMany(keys)).map(String), keys.map((key) => `value of ${key}`));
      const after = await statusWhen(left.address, whole);
      t.deepEqual(await placesOf(left.address), before);
      t.log(`term ${term}, then ${after.term}`);
      // Each owner takes changes again.
      await kv.putMany(keys.map((key) => ({ key, value: `value of ${key}` })));
    }
  });
}

test.serial('a leader that stalls for 200 ms in every second gives the shards of a dead owner to others', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 6, args: ['--lease-ms', '300', '--owner-lease-ms', '1000', '--election-ms', '1500'] });
  await raised(cluster);
  const { kv } = await written(t, cluster, 'tcp');
  const leader = await leaderOf(cluster);
  const dead = (leader + 1) % 3;
  const [key = ''] = await keysOf(kv, cluster, dead, 1);
  await kv.put(key, 'before');
  const { term } = await statusOf(cluster.server(leader).address);

  const stalls = { on: true };
  const stalling = (async () => {
    while (stalls.on) {
      cluster.server(leader).signal('SIGSTOP');
      await sleep(200);
      cluster.server(leader).signal('SIGCONT');
      await sleep(800);
    }
  })();
  const at = performance.now();
  await cluster.server(dead).kill();
  t.is(await kv.get(key), undefined);
  t.log(`a miss ${Math.round(performance.now() - at)} ms after the kill`);
  stalls.on = false;
  await stalling;
  const after = await statusWhen(cluster.server(leader).address, (s) => s.shards.every((one) => one.state === 'serving' && one.owner !== cluster.server(dead).id));
  t.log(`term ${term}, then ${after.term}`);
});
