/** Two servers that keep values and a witness, as real processes: any one of the three may die. */
import test from 'ava';
import { Cluster, farkv, succeeds, type ServerProcess } from '../support/cluster.js';
import { patient } from '../support/sdk-clients.js';
import { copied, statusWhen } from '../support/status.js';

/** The third server of the cluster votes and keeps no values. */
async function withWitness(t: Parameters<typeof Cluster.start>[0]): Promise<Cluster> {
  const cluster = await Cluster.start(t, { servers: 3, shards: 4, absent: [0, 1, 2], ready: false });
  const { args } = cluster.server(2);
  const memory = args.indexOf('--memory');
  cluster.server(2).args = [...args.slice(0, memory), ...args.slice(memory + 2), '--witness'];
  for (const server of cluster.servers) server.launch();
  await Promise.all(cluster.servers.map((s) => s.ready()));
  return cluster;
}

const others = (cluster: Cluster, one: ServerProcess): ServerProcess[] => cluster.servers.filter((s) => s !== one);

test.serial('each value is kept twice, and any one of the three servers may die', async (t) => {
  const cluster = await withWitness(t);
  const [first, second, witness] = [cluster.server(0), cluster.server(1), cluster.server(2)];
  t.deepEqual(witness.readyLine?.fabric, []);
  t.deepEqual(witness.readyLine?.shards, []);
  const before = await statusWhen(witness.address, copied);
  t.true(before.shards.every(({ owner, copies }) => owner !== 's3' && copies?.copies.every((c) => c.member !== 's3')));
  t.regex((await farkv(['status', '--connect', first.address])).stdout, /^s3 +up, witness(, leader)? .* - +- +- /m);

  // A client that knows the witness alone finds the others.
  const client = await patient(t, [witness.address]);
  const keys = Array.from({ length: 40 }, (_, i) => `key-${i}`);
  const whole = async (round: string): Promise<boolean> =>
    (await client.getMany(keys)).every((value) => value?.toString() === round);
  await Promise.all(keys.map((key) => client.put(key, Buffer.from('1'))));

  await witness.kill();
  t.true(await whole('1'));
  await Promise.all(keys.map((key) => client.put(key, Buffer.from('2'))));
  await witness.start();
  await statusWhen(first.address, (s) => s.members.every((m) => m.state === 'up'));

  for (const doomed of [first, second]) {
    const safe = await farkv(['status', '--safe-to-stop', doomed.id, '--connect', witness.address]);
    t.is(safe.code, 0, safe.stdout + safe.stderr);
    await doomed.kill();
    const [left] = others(cluster, doomed).filter((s) => s !== witness);
    await statusWhen(witness.address, (s) =>
      s.shards.every((one) => one.owner === left!.id && one.state === 'serving'),
    );
    t.true(await whole('2'), `without ${doomed.id}`);
    await doomed.start();
    await statusWhen(witness.address, copied);
  }
});

test.serial('what would bring values to a witness is refused, and says why', async (t) => {
  const cluster = await withWitness(t);
  const { address } = cluster.server(0);
  const moved = await farkv(['shard', 'move', '0', 's3', '--connect', address]);
  t.is(moved.code, 2);
  t.regex(moved.stderr, /s3 is a witness: it votes, and keeps no values/);
  const set = await farkv(['replication', 'set', '--level', 'replicated', '--replicas', '3', '--connect', address]);
  t.is(set.code, 0, set.stderr);
  t.regex(set.stderr, /2 servers keep values now, and each value is to have 3 copies/);
  const { shards } = await statusWhen(address, (s) => s.shards.every((one) => one.copies?.trouble === 'degraded'));
  t.true(shards.every(({ copies }) => copies?.copies.every((c) => c.member !== 's3')));
});

test.serial('one of the two is removed once the values may be at the other alone', async (t) => {
  const cluster = await withWitness(t);
  const { address } = cluster.server(0);
  await statusWhen(address, copied);
  const drained = await farkv(['drain', 's2', '--connect', address]);
  t.is(drained.code, 1, drained.stdout);
  t.regex(
    drained.stderr,
    /2 copies of each value are wanted, and one other server keeps values; s2 may be stopped: .* \(farkv replication set --replicas 1\), then farkv drain s2 again\n/,
  );
  await succeeds(t, cluster, 'replication', 'set', '--replicas', '1');
  await succeeds(t, cluster, 'drain', 's2');
  await succeeds(t, cluster, 'member', 'remove', 's2');
});
