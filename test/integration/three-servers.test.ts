import test from 'ava';
import { rm } from 'node:fs/promises';
import { Cluster, farkv, freePorts, ServerProcess } from '../support/cluster.js';
import { leaderOf, statusOf } from '../support/status.js';

const SMALL = { servers: 3, shards: 6, memory: '32mb', args: ['--lease-ms', '200'] } as const;

test.serial('three servers make one cluster, share its shards, and show it alike', async (t) => {
  const cluster = await Cluster.start(t, SMALL);
  const ready = cluster.servers.map((s) => s.readyLine!);
  t.is(new Set(ready.map((r) => r.clusterId)).size, 1);
  t.deepEqual(ready.flatMap((r) => r.shards).sort(), [0, 1, 2, 3, 4, 5]);
  t.true(ready.every((r) => r.shards.length === 2));
  const [a, b] = [await statusOf(cluster.server(0).address), await statusOf(cluster.server(2).address)];
  t.deepEqual(a.shards.map((s) => [s.owner, s.epoch, s.state]), b.shards.map((s) => [s.owner, s.epoch, s.state]));
  t.true(a.members.every((m) => m.state === 'up' && m.node !== undefined));
  t.is(a.members.filter((m) => m.leader).length, 1);
});

test.serial('after the leader was killed another one leads, metadata changes go on, and the killed one comes back', async (t) => {
  const cluster = await Cluster.start(t, SMALL);
  const leader = await leaderOf(cluster);
  const [other, third] = [0, 1, 2].filter((i) => i !== leader);
  await cluster.server(leader).kill();
  const down = await statusOf(cluster.server(other!).address);
  for (const s of down.shards) t.is(s.state, s.owner === cluster.server(leader).id ? 'unreachable' : 'serving');
  t.is((await farkv(['status', '--connect', cluster.server(other!).address])).code, 1);

  // A restart is a change of the metadata: its join must be committed by the two that are left.
  await cluster.server(third!).kill();
  await cluster.server(third!).start();
  const after = await statusOf(cluster.server(other!).address);
  t.not(after.leader, cluster.server(leader).id);
  t.true(after.term > down.term);
  t.true(after.shards.filter((s) => s.owner === cluster.server(third!).id).every((s) => s.epoch === 2 && s.state === 'serving'));
  t.true(after.shards.filter((s) => s.owner === cluster.server(other!).id).every((s) => s.epoch === 1 && s.state === 'serving'));

  await cluster.server(leader).start();
  const back = await statusOf(cluster.server(leader).address);
  t.true(back.shards.every((s) => s.state === 'serving'));
});

test.serial('without a majority a server waits, says for whom, and can be stopped', async (t) => {
  const cluster = await Cluster.start(t, { ...SMALL, ready: false });
  await Promise.all([1, 2].map((i) => cluster.server(i).kill()));
  await cluster.server(0).said(/waiting for the metadata group: connected to nobody, not to s2, s3/);
  const status = await statusOf(cluster.server(0).address);
  t.is(status.clusterId, '');
  t.deepEqual(await cluster.server(0).stop(), { code: 0, signal: null });
});

test.serial('a server that stays away does not hold a new cluster up for ever', async (t) => {
  const cluster = await Cluster.start(t, { ...SMALL, args: ['--assign-after-ms', '300'], ready: false });
  await cluster.server(2).kill();
  const ready = await Promise.all([0, 1].map((i) => cluster.server(i).ready()));
  t.deepEqual(ready.flatMap((r) => r.shards).sort(), [0, 1, 2, 3, 4, 5]);
  await cluster.server(2).start();
  t.deepEqual(cluster.server(2).readyLine?.shards, []);
});

test.serial('a server with the data directory of another cluster is refused, and the cluster goes on', async (t) => {
  const a = await Cluster.start(t, SMALL);
  for (const s of a.servers) await s.stop();
  const b = await Cluster.start(t, SMALL);
  await b.server(2).stop();
  const stranger = new ServerProcess('s3', b.server(2).address, a.server(2).dataDir, b.server(2).args.map((arg) => (arg === b.server(2).dataDir ? a.server(2).dataDir : arg)), {});
  t.teardown(() => stranger.kill());
  stranger.launch();
  t.deepEqual(await stranger.exit, { code: 1, signal: null });
  t.regex(stranger.stderr, /belongs to cluster [0-9a-f]{32}/);
  await b.server(2).start();
  t.true((await statusOf(b.server(0).address)).shards.every((s) => s.state === 'serving'));
});

test.serial('a server that lost its data directory cannot come back under its old name', async (t) => {
  const cluster = await Cluster.start(t, SMALL);
  const lost = cluster.server(2);
  await lost.kill();
  await rm(lost.dataDir, { recursive: true });
  lost.launch();
  t.deepEqual(await lost.exit, { code: 1, signal: null });
  t.regex(lost.stderr, /s3 has been in this cluster with another data directory/);
  const status = await statusOf(cluster.server(0).address);
  t.is(status.members.find((m) => m.id === 's3')?.state, 'unreachable');
  t.not(status.leader, undefined);
});

test.serial('servers that were given different lists refuse each other', async (t) => {
  const [p1, p2] = await freePorts(2);
  const server = (id: string, port: number, peers: string): ServerProcess => {
    const one = new ServerProcess(id, `127.0.0.1:${port}`, '', ['--id', id, '--listen', `127.0.0.1:${port}`, '--peers', peers, '--memory', '32mb'], {});
    t.teardown(() => one.kill());
    return one;
  };
  const a = server('a', p1!, `a=127.0.0.1:${p1!},b=127.0.0.1:${p2!}`);
  const b = server('b', p2!, `a=127.0.0.1:${p1!},b=127.0.0.1:${p2!},c=127.0.0.1:1`);
  a.launch();
  b.launch();
  t.is((await a.exit).code, 2);
  t.regex(a.stderr, /the list must be the same for every server/);
  t.true(b.running || (await b.exit).code === 2);
});

test.serial('a paused leader is replaced and, when it goes on, follows', async (t) => {
  const cluster = await Cluster.start(t, SMALL);
  const leader = await leaderOf(cluster);
  const paused = cluster.server(leader);
  const others = cluster.servers.filter((_, i) => i !== leader);
  paused.signal('SIGSTOP');
  await others[0]!.kill();
  // Two of three are needed: the restarted one and the one that was left must elect and commit without the paused one.
  await others[0]!.start();
  const during = await statusOf(others[1]!.address);
  t.not(during.leader, paused.id);
  paused.signal('SIGCONT');
  for (;;) {
    const after = await statusOf(paused.address);
    if (after.leader !== undefined && after.leader !== paused.id && after.shards.every((s) => s.state === 'serving')) break;
  }
  t.true(paused.running);
});
