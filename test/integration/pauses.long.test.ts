/**
 * Servers that are stopped together, the metadata leader among them, with real processes: no value is lost by that,
 * also when it lasts so long that connections break and must be made anew. A leader that stalls again and again still
 * replaces a dead owner.
 */
import test from 'ava';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from '../support/cluster.js';
import { keysOf } from '../support/owners.js';
import { losesNothing, written } from '../support/pauses.js';
import { leaderOf, statusWhen } from '../support/status.js';

test.serial(
  'shm: the leader and one more are stopped for longer than the leases: every value is there when they go on, under the same epochs',
  (t) => losesNothing(t, { transport: 'shm', stopped: 2 }),
);

test.serial(
  'tcp: all servers are stopped for longer than the leases: every value is there when they go on, under the same epochs',
  (t) => losesNothing(t, { transport: 'tcp', stopped: 3 }),
);

for (const stopped of [2, 3] as const) {
  test.serial(`nothing is lost when ${stopped} of three servers, the leader among them, are stopped for 20 s`, (t) =>
    losesNothing(t, { transport: 'tcp', stopped, stopMs: 20_000 }),
  );
}

test.serial('a leader that stalls for 200 ms in every second gives the shards of a dead owner to others', async (t) => {
  const cluster = await Cluster.start(t, {
    servers: 3,
    level: 'cache',
    shards: 6,
    args: ['--lease-ms', '300', '--owner-lease-ms', '1000', '--election-ms', '1500'],
  });
  const { kv } = await written(t, cluster, 'tcp');
  const leader = await leaderOf(cluster);
  const dead = cluster.server((leader + 1) % 3);
  const [key = ''] = await keysOf(kv, cluster, (leader + 1) % 3, 1);

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
  await dead.kill();
  t.is(await kv.get(key), undefined);
  t.log(`a miss ${Math.round(performance.now() - at)} ms after the kill`);
  stalls.on = false;
  await stalling;
  await statusWhen(cluster.server(leader).address, (s) =>
    s.shards.every((one) => one.state === 'serving' && one.owner !== dead.id),
  );
});
