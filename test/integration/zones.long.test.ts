/** Servers with a zone each, as real processes: where the copies of shards come to lie. */
import test from 'ava';
import type { ClusterStatus } from '../../server/status.js';
import { Cluster, farkv } from '../support/cluster.js';
import { statusWhen } from '../support/status.js';

test('with two zones every shard has a copy in each', async (t) => {
  const cluster = await Cluster.start(t, { servers: 4, shards: 12, ready: false, absent: [0, 1, 2, 3] });
  for (const [i, server] of cluster.servers.entries()) {
    server.args = [...server.args, '--zone', i < 2 ? 'east' : 'west'];
    server.launch();
  }
  const { address } = cluster.server(0);
  await Promise.all(cluster.servers.map((s) => s.ready()));
  // A cluster begins with a format that has no zones: they are told when it has.
  const { members } = await statusWhen(address, (s) => s.members.every((m) => m.zone !== undefined));
  t.deepEqual(
    members.map((m) => m.zone),
    ['east', 'east', 'west', 'west'],
  );
  const { code, stderr } = await farkv(['replication', 'set', '--level', 'replicated', '--connect', address]);
  t.is(code, 0, stderr);
  const zoneOf = new Map(members.map((m) => [m.id, m.zone]));
  const { shards } = await statusWhen(address, (s) => s.shards.every((one) => one.copies?.inSync === 2));
  for (const { shard, copies } of shards)
    t.is(new Set(copies?.copies.map((c) => zoneOf.get(c.member))).size, 2, `shard ${shard}`);
  const shown = await farkv(['status', '--connect', address]);
  t.regex(shown.stdout, /MEMBER +STATE +ZONE/);
  t.regex(shown.stdout, /s4 +up\S* .*west/);
  const stop = await farkv(['status', '--safe-to-stop', 's2', '--connect', address]);
  t.is(stop.code, 0, stop.stdout + stop.stderr);
  t.is(stop.stdout, 's2 may be stopped\n');
  const json = await farkv(['status', '--safe-to-stop', 's2', '--json', '--connect', address]);
  t.deepEqual(JSON.parse(json.stdout), { server: 's2', safeToStop: true });
  // Copies bear the same name at both ends.
  const all = JSON.parse((await farkv(['status', '--json', '--connect', address])).stdout) as ClusterStatus;
  const tables = all.members.flatMap(({ node }) => node?.dataPlane?.shards ?? []);
  const owners = tables.filter(({ copy }) => copy?.role === 'owner');
  t.is(owners.length, 12);
  for (const { shard, copy } of owners)
    t.deepEqual(
      copy?.peers.map(({ id }) => id),
      tables.flatMap((one) => (one.shard === shard && one.copy?.role === 'backup' ? [one.copy.id] : [])),
    );
});
