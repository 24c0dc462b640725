/**
 * A server that stands still until nobody waits for its copies any more, as a real process: they have what was written
 * meanwhile. Not for: that only differing values are sent (native/test/dataplane/dataplane_away_test.c).
 */
import test from 'ava';
import { Cluster } from '../support/cluster.js';
import { patient } from '../support/sdk-clients.js';
import { copied, statusWhen } from '../support/status.js';

test('copies of a server that stood still have what was written meanwhile', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 6, args: ['--owner-lease-ms', '1000'] });
  const [first, paused] = [cluster.server(0), cluster.server(2)];
  const before = await statusWhen(first.address, copied);
  const backups = before.shards.filter(
    ({ owner, copies }) => owner !== paused.id && copies?.copies.some((c) => c.member === paused.id) === true,
  );
  t.true(backups.length > 0);
  const client = await patient(t, [first.address, cluster.server(1).address]);
  const keys = Array.from({ length: 300 }, (_, i) => `key-${i}`);
  const write = async (round: string): Promise<void> => {
    await Promise.all(keys.map((key) => client.put(key, Buffer.from(round))));
  };
  await write('before');

  paused.signal('SIGSTOP');
  await statusWhen(first.address, ({ shards }) => shards.every((s) => s.owner !== paused.id && s.state === 'serving'));
  await write('meanwhile');
  await write('meanwhile, again');
  // Nobody waits for its copies any more. Back, it may hear of that and of its return at once, and say nothing of either.
  await statusWhen(first.address, ({ shards }) =>
    backups.every(
      ({ shard }) =>
        shards[shard]?.copies?.copies.some((c) => c.member === paused.id && c.state === 'joining') === true,
    ),
  );
  paused.signal('SIGCONT');

  await statusWhen(first.address, copied);

  // They have what was written meanwhile: whoever else has a copy of them is killed.
  await cluster.server(1).kill();
  await statusWhen(first.address, ({ shards }) => shards.every((s) => s.owner !== 's2' && s.state === 'serving'));
  const values = await client.getMany(keys);
  t.true(values.every((value) => value?.toString() === 'meanwhile, again'));
});
