/**
 * Shards go from one server to another while they are used, and while the servers die, with real processes and the
 * commands that an operator has.
 */
import test, { type ExecutionContext } from 'ava';
import { setImmediate } from 'node:timers/promises';
import { connect, type BufferValue, type Client, type ConnectOptions } from '../../client/index.js';
import { Cluster, succeeds } from '../support/cluster.js';
import { certainly, keysOf, LASTING } from '../support/owners.js';
import { leaderOf, operator, statusOf, statusWhen } from '../support/status.js';

async function connected(
  t: ExecutionContext,
  cluster: Cluster,
  more: Partial<ConnectOptions> = {},
): Promise<Client<BufferValue, Buffer>> {
  const kv = await connect({ servers: cluster.addresses, ...more });
  t.teardown(() => kv.close());
  return kv;
}

for (const transport of ['shm', 'tcp'] as const) {
  test.serial(
    `${transport}: a shard moves while it is read and written: no call fails, and nothing is lost`,
    async (t) => {
      const cluster = await Cluster.start(t, { servers: 2, shards: 2, args: ['--lease-ms', '1000'] });
      const kv = await connected(t, cluster, {
        transport,
        strict: true,
        timeoutMs: 60_000,
        unavailableAfterMs: 60_000,
      });
      const rest = Array.from({ length: 3000 }, (_, i) => [`rest-${i}`, `${i}`.repeat(1 + (i % 50))] as const);
      for (const [key, value] of rest) await kv.put(key, value);
      const going = { on: true };
      let rounds = 0;
      const worker = async (lane: number): Promise<void> => {
        for (let i = 0; going.on; i++) {
          const key = `${lane}-${i % 50}`;
          const value = `${lane}/${i}`;
          await kv.put(key, value);
          const read = await kv.get(key);
          if (String(read) !== value) throw new Error(`${key} is ${String(read)}, not ${value}`);
          rounds += 1;
          await setImmediate();
        }
      };
      const work = Promise.all([0, 1, 2, 3].map(worker));
      const failed = work.then(
        () => undefined,
        (error: unknown) => error,
      );
      for (let i = 0; i < 3; i++) {
        const { shards } = await statusOf(cluster.server(0).address);
        for (const s of shards)
          await succeeds(t, cluster, 'shard', 'move', String(s.shard), s.owner === 's1' ? 's2' : 's1');
        const from = rounds;
        while (rounds < from + 200 && (await Promise.race([failed, setImmediate(false)])) === false);
      }
      going.on = false;
      t.is(await failed, undefined);
      for (const [key, value] of rest) t.is(String(await kv.get(key)), value);
      t.deepEqual(
        (await statusOf(cluster.server(0).address)).shards.map((s) => s.epoch),
        [4, 4],
      );
    },
  );
}

for (const dies of ['new', 'old'] as const) {
  test.serial(`the ${dies} owner of a shard that moves dies before the copy is done`, async (t) => {
    const cluster = await Cluster.start(t, { servers: 3, level: 'cache', shards: 3, args: LASTING });
    const kv = await connected(t, cluster, { timeoutMs: 60_000, unavailableAfterMs: 60_000 });
    const lead = await leaderOf(cluster);
    const [from, to] = dies === 'new' ? [lead, (lead + 1) % 3] : [(lead + 1) % 3, (lead + 2) % 3];
    const [key = ''] = await keysOf(kv, cluster, from, 1);
    await kv.put(key, 'value');
    // It copies nothing before it is dead, or goes on.
    const target = cluster.server(to);
    process.kill(target.pid, 'SIGSTOP');
    await operator(cluster.server(lead).address, 'shard-move', { shard: kv.shardOf(key), to: target.id });
    await statusWhen(cluster.server(lead).address, (s) => s.moves.length > 0);
    if (dies === 'new') {
      await target.kill();
      await statusWhen(cluster.server(lead).address, (s) => s.moves.length === 0);
      t.is(String(await kv.get(key)), 'value');
    } else {
      await cluster.server(from).kill();
      process.kill(target.pid, 'SIGCONT');
      // As after any death of an owner: a miss.
      t.is(await kv.get(key), undefined);
    }
    await certainly(() => kv.put(key, 'next'));
    t.is(String(await kv.get(key)), 'next');
  });
}
