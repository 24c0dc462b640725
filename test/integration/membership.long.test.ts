/** Servers come and go, with real processes and the commands that an operator has. */
import test from 'ava';
import { rm } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { Cluster, farkv, succeeds } from '../support/cluster.js';
import { QUICK } from '../support/owners.js';
import { served, statusOf, statusWhen, whole } from '../support/status.js';
import type { ClusterStatus } from '../../server/status.js';

const ARGS = ['--lease-ms', '300'];

const roles = (status: ClusterStatus): Record<string, string> =>
  Object.fromEntries(status.members.map((m) => [m.id, m.role]));

test.serial('one server becomes three voters and a follower, and the first can go', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, shards: 4, args: ARGS });
  const s2 = await cluster.joiner('s2', ARGS);
  await s2.start();
  t.deepEqual(s2.readyLine?.shards, []);
  t.deepEqual(roles(await statusOf(s2.address)), { s1: 'voter', s2: 'learner' });

  const s3 = await cluster.joiner('s3', ARGS);
  await s3.start();
  // Two learners make it three voters; with one more it stays at that.
  await statusWhen(s3.address, (s) => s.members.every((m) => m.role === 'voter'));
  const s4 = await cluster.joiner('s4', ARGS);
  await s4.start();
  t.deepEqual(roles(await statusOf(s4.address)), { s1: 'voter', s2: 'voter', s3: 'voter', s4: 'learner' });

  const plan = JSON.parse(await succeeds(t, cluster, 'shard', 'rebalance', '--dry-run', '--json')) as {
    readonly from: string;
    readonly to: string;
  }[];
  t.deepEqual(
    plan.map((m) => m.from),
    ['s1', 's1', 's1'],
  );
  t.deepEqual(plan.map((m) => m.to).sort(), ['s2', 's3', 's4']);
  await succeeds(t, cluster, 'shard', 'rebalance');
  t.regex(await succeeds(t, cluster, 'shard', 'rebalance', '--dry-run'), /balanced: nothing to move/);

  // The leader itself is drained and removed: another one takes over, and the follower its vote.
  t.regex((await farkv(['member', 'remove', 's1', '--connect', s2.address])).stderr, /farkv drain s1/);
  t.regex(await succeeds(t, cluster, 'drain', 's1'), /owns no shards/);
  await succeeds(t, cluster, 'member', 'remove', 's1');
  t.deepEqual(await cluster.server(0).exit, { code: 4, signal: null });
  t.regex(cluster.server(0).stderr, /s1 was removed from the cluster/);
  // Told so by the others, each start ends alike: systemd makes none (RestartPreventExitStatus=).
  cluster.server(0).launch();
  t.deepEqual(await cluster.server(0).exit, { code: 4, signal: null });
  t.regex(cluster.server(0).stderr, /s1 is not one of the servers of this cluster.*--join and an empty data directory/);
  const after = await statusWhen(
    s2.address,
    (s) => s.leader !== undefined && served(s) && s.members.every((m) => m.role === 'voter'),
  );
  t.deepEqual(
    after.members.map((m) => m.id),
    ['s2', 's3', 's4'],
  );

  // Those that came later start again as any other.
  await s3.kill();
  await s3.start();
  await statusWhen(s3.address, whole);
  t.regex(await succeeds(t, cluster, 'member', 'list'), /s4 +voter/);
});

test.serial('servers that join and cannot be reached get no vote and stop nobody, and others vote', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, shards: 1, args: ARGS });
  const s1 = cluster.server(0);
  // Nobody listens at that address.
  const wrong = ['--advertise', '127.0.0.250'];
  const lost = [await cluster.joiner('s2', [...ARGS, ...wrong]), await cluster.joiner('s3', [...ARGS, ...wrong])];
  for (const server of lost) server.launch();
  const learners = { s1: 'voter', s2: 'learner', s3: 'learner' };
  await statusWhen(s1.address, (s) => isDeepStrictEqual(roles(s), learners));
  // A change that needs the leader, and one that needs it after a start.
  const at = ['--connect', s1.address] as const;
  const added = await farkv(['member', 'add', 's4', ...at]);
  t.is(added.code, 0, added.stderr);
  await s1.kill();
  await s1.start();
  t.deepEqual(roles(await statusOf(s1.address)), { ...learners, s4: 'announced' });
  for (const server of lost) {
    await server.kill();
    const removed = await farkv(['member', 'remove', server.id, ...at]);
    t.is(removed.code, 0, removed.stderr);
  }
  const others = [await cluster.joiner('s5', ARGS), await cluster.joiner('s6', ARGS)];
  for (const server of others) server.args = server.args.with(server.args.indexOf('--join') + 1, s1.peer);
  await Promise.all(others.map((server) => server.start()));
  const voters = { s1: 'voter', s4: 'announced', s5: 'voter', s6: 'voter' };
  await statusWhen(s1.address, (s) => isDeepStrictEqual(roles(s), voters));
});

test.serial(
  'a server that lost its data directory is told the command, and comes back by it under its old name',
  async (t) => {
    const cluster = await Cluster.start(t, { servers: 3, level: 'cache', shards: 3, args: QUICK });
    const lost = cluster.server(2);
    await lost.kill();
    await rm(lost.dataDir, { recursive: true });
    lost.launch();
    await lost.exit;
    t.regex(lost.stderr, /farkv member remove s3/);
    // Its shards are taken first, so that the command finds it without any.
    await statusWhen(cluster.server(0).address, (s) => s.shards.every((one) => one.owner !== 's3'));
    await succeeds(t, cluster, 'member', 'remove', 's3');
    const again = await cluster.joiner('s3', QUICK);
    await again.start();
    await statusWhen(
      again.address,
      (s) => whole(s) && s.members.length === 3 && s.members.every((m) => m.role === 'voter'),
    );
    await cluster.server(0).stop();
    // Its vote counts: without it two of three would not be there.
    await statusWhen(
      again.address,
      (s) =>
        s.leader !== undefined &&
        s.leader !== 's1' &&
        s.shards.every((one) => one.owner !== 's1' && one.state === 'serving'),
    );
  },
);

test.serial('an announced server is shown until it comes; what cannot be joined is refused by name', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, shards: 1, args: ARGS });
  t.regex(await succeeds(t, cluster, 'member', 'add', 's2', '127.0.0.1:1'), /--join/);
  t.deepEqual(roles(await statusOf(cluster.server(0).address)), { s1: 'voter', s2: 'announced' });
  await (await cluster.joiner('s2', ARGS)).start();
  t.deepEqual(roles(await statusOf(cluster.server(0).address)), { s1: 'voter', s2: 'learner' });
  const namesake = await cluster.joiner('s2', ARGS);
  namesake.launch();
  t.is((await namesake.exit).code, 1);
  t.regex(namesake.stderr, /another data directory.*farkv member remove s2/);
  t.regex(
    (await farkv(['member', 'remove', 's9', '--connect', cluster.server(0).address])).stderr,
    /s9 is not one of the servers/,
  );
  t.regex(
    (await farkv(['shard', 'move', '0', 's9', '--connect', cluster.server(0).address])).stderr,
    /s9 has not joined/,
  );
  t.regex(
    (await farkv(['shard', 'move', '7', 's1', '--connect', cluster.server(0).address])).stderr,
    /there is no shard 7/,
  );
  t.regex(
    (await farkv(['member', 'add', 's1', '--connect', cluster.server(0).address])).stderr,
    /s1 is one of the servers already/,
  );
  await succeeds(t, cluster, 'drain', 's2');
  const last = await farkv(['drain', 's1', '--connect', cluster.server(0).address]);
  t.is(last.code, 1);
  t.regex(last.stderr, /no other server could own the shards of s1\n$/);
  t.is((await farkv(['shard', 'move', 'x', 's1', '--connect', cluster.server(0).address])).code, 2);
});

test.serial('a drain that was waited for in vain ends with 1: servers answer, and it goes on', async (t) => {
  const cluster = await Cluster.start(t, { servers: 2, level: 'cache', shards: 8, args: QUICK });
  // Four of its shards move at a time, so one look at the status cannot find them all gone.
  for (const shard of Array(8).keys()) await succeeds(t, cluster, 'shard', 'move', String(shard), 's1');
  const vain = await farkv(['drain', 's1', '--wait', '0', '--connect', cluster.server(0).address]);
  t.is(vain.code, 1, vain.stderr);
  t.regex(vain.stderr, /^farkv drain: draining s1 did not happen within 0 ms; it goes on/m);
  t.notRegex(vain.stderr, /is a server running there/);
  t.regex(await succeeds(t, cluster, 'drain', 's1'), /owns no shards/);
});

test.serial('a voter that stays dead loses its vote to a learner, and is a learner when it comes back', async (t) => {
  const args = [...QUICK, '--replace-voter-after', '20s'];
  const cluster = await Cluster.start(t, { servers: 3, level: 'cache', shards: 3, args });
  const s4 = await cluster.joiner('s4', args);
  await s4.start();
  t.deepEqual(roles(await statusOf(s4.address)), { s1: 'voter', s2: 'voter', s3: 'voter', s4: 'learner' });
  await cluster.server(2).kill();
  // Whoever has seen the change tells of it, and that may come behind the metadata itself.
  const replacedBy = (s: ClusterStatus): string | undefined => s.members.find((m) => m.id === 's3')?.replacedBy;
  const after = await statusWhen(s4.address, (s) => replacedBy(s) !== undefined);
  t.is(replacedBy(after), 's4');
  t.deepEqual(roles(after), { s1: 'voter', s2: 'voter', s3: 'learner', s4: 'voter' });
  t.regex((await farkv(['member', 'list', '--connect', s4.address])).stdout, /s3 +learner, silent: s4 votes for it/);
  await cluster.server(2).start();
  t.is(roles(await statusWhen(s4.address, whole)).s3, 'learner');
});

test.serial('servers that come back with addresses that were others of them make the same cluster', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, level: 'cache', memory: '32mb', args: ['--lease-ms', '200'] });
  const { servers } = cluster;
  const { clusterId } = servers[0]!.readyLine!;
  await Promise.all(servers.map((server) => server.kill()));
  const next = servers.map((_, i) => servers[(i + 1) % servers.length]!.peer);
  const peers = servers.map(({ id }, i) => `${id}=${next[i]!}`).join(',');
  for (const server of servers) server.args = server.args.with(server.args.indexOf('--peers') + 1, peers);
  const ready = await Promise.all(servers.map((server) => server.start()));
  t.deepEqual(
    ready.map((line) => [line.clusterId, line.peer[0]]),
    next.map((address) => [clusterId, address]),
  );
});
