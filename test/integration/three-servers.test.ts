import test from 'ava';
import { rm } from 'node:fs/promises';
import { loadSettings } from '../../server/config/load.js';
import { startWith } from '../../server/start.js';
import { Cluster, farkv, freePorts, ServerProcess } from '../support/cluster.js';
import { leaderOf, served, statusOf, statusWhen, whole } from '../support/status.js';
import type { ClusterStatus } from '../../server/status.js';

const SMALL = { servers: 3, shards: 6, memory: '32mb', args: ['--lease-ms', '200'] } as const;

test.serial('three servers make one cluster, share its shards, and show it alike', async (t) => {
  const cluster = await Cluster.start(t, SMALL);
  const ready = cluster.servers.map((s) => s.readyLine!);
  t.is(new Set(ready.map((r) => r.clusterId)).size, 1);
  t.deepEqual(ready.flatMap((r) => r.shards).sort(), [0, 1, 2, 3, 4, 5]);
  t.true(ready.every((r) => r.shards.length === 2));
  const [a, b] = [
    await statusWhen(cluster.server(0).address, whole),
    await statusWhen(cluster.server(2).address, whole),
  ];
  t.deepEqual(
    a.shards.map((s) => [s.owner, s.epoch, s.state]),
    b.shards.map((s) => [s.owner, s.epoch, s.state]),
  );
  t.true(a.members.every((m) => m.node !== undefined));
  t.is(a.members.filter((m) => m.leader).length, 1);
});

test.serial(
  'after the leader was killed another one leads, metadata changes go on, and the killed one comes back',
  async (t) => {
    const cluster = await Cluster.start(t, SMALL);
    const leader = await leaderOf(cluster);
    const [other, third] = [0, 1, 2].filter((i) => i !== leader);
    const { id } = cluster.server(leader);
    const { term } = await statusOf(cluster.server(leader).address);
    await cluster.server(leader).kill();
    await statusWhen(cluster.server(other!).address, (s) =>
      s.shards.every((one) => one.state === (one.owner === id ? 'unreachable' : 'serving')),
    );
    t.is((await farkv(['status', '--connect', cluster.server(other!).address])).code, 1);

    // A restart is a change of the metadata: its join must be committed by the two that are left.
    await cluster.server(third!).kill();
    await cluster.server(third!).start();
    const after = await statusWhen(
      cluster.server(other!).address,
      (s) =>
        s.leader !== undefined &&
        s.leader !== id &&
        s.shards.every((one) => one.owner === id || one.state === 'serving'),
    );
    t.true(after.term > term);
    const epochs = (of: number): number[] =>
      after.shards.filter((s) => s.owner === cluster.server(of).id).map((s) => s.epoch);
    t.deepEqual(
      [epochs(third!), epochs(other!)],
      [
        [2, 2],
        [1, 1],
      ],
    );

    await cluster.server(leader).start();
    await statusWhen(cluster.server(leader).address, served);
  },
);

test.serial('without a majority a server waits, says for whom, and can be stopped', async (t) => {
  const cluster = await Cluster.start(t, { ...SMALL, absent: [1, 2], ready: false });
  await cluster.server(0).said(/waiting for the metadata group: connected to nobody, not to s2, s3/);
  const status = await statusOf(cluster.server(0).address);
  t.is(status.clusterId, '');
  t.deepEqual(await cluster.server(0).stop(), { code: 0, signal: null });
});

test.serial('a server that stays away does not hold a new cluster up for ever', async (t) => {
  const addresses = (await freePorts(3)).map((port) => `127.0.0.1:${port}`);
  const peers = addresses.map((address, i) => `s${i + 1}=${address}`);
  const start = async (i: number): Promise<readonly number[]> => {
    const given = { id: `s${i + 1}`, listen: addresses[i]!, peers, shards: SMALL.shards, memory: SMALL.memory };
    const settings = { ...loadSettings(given, { env: {}, dashes: false }), assignAfterMs: 300 };
    const server = await startWith({ settings }, {});
    t.teardown(() => server.close());
    return server.shards;
  };
  t.deepEqual((await Promise.all([start(0), start(1)])).flat().sort(), [0, 1, 2, 3, 4, 5]);
  t.deepEqual(await start(2), []);
});

test.serial('a server with the data directory of another cluster is refused, and the cluster goes on', async (t) => {
  const a = await Cluster.start(t, SMALL);
  for (const s of a.servers) await s.stop();
  const b = await Cluster.start(t, SMALL);
  await b.server(2).stop();
  const stranger = new ServerProcess(
    's3',
    b.server(2).address,
    a.server(2).dataDir,
    b.server(2).args.map((arg) => (arg === b.server(2).dataDir ? a.server(2).dataDir : arg)),
    {},
  );
  t.teardown(() => stranger.kill());
  stranger.launch();
  t.deepEqual(await stranger.exit, { code: 1, signal: null });
  t.regex(stranger.stderr, /belongs to cluster [0-9a-f]{32}/);
  await b.server(2).start();
  t.is((await statusWhen(b.server(0).address, whole)).members.length, 3);
});

test.serial('a server that lost its data directory cannot come back under its old name', async (t) => {
  const cluster = await Cluster.start(t, SMALL);
  const lost = cluster.server(2);
  await lost.kill();
  await rm(lost.dataDir, { recursive: true });
  lost.launch();
  t.deepEqual(await lost.exit, { code: 1, signal: null });
  t.regex(lost.stderr, /s3 has been in this cluster with another data directory/);
  await statusWhen(
    cluster.server(0).address,
    (s) => s.leader !== undefined && s.members.find((m) => m.id === 's3')?.state === 'unreachable',
  );
});

test.serial('servers that were given different lists refuse each other', async (t) => {
  const [p1, p2] = await freePorts(2);
  const server = (id: string, port: number, peers: string): ServerProcess => {
    const one = new ServerProcess(
      id,
      `127.0.0.1:${port}`,
      '',
      ['--id', id, '--listen', `127.0.0.1:${port}`, '--peers', peers, '--memory', '32mb'],
      {},
    );
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
  const another = (s: ClusterStatus): boolean => s.leader !== undefined && s.leader !== paused.id;
  await statusWhen(others[1]!.address, another);
  paused.signal('SIGCONT');
  await statusWhen(paused.address, (s) => another(s) && served(s));
  t.true(paused.running);
});
