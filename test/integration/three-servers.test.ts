import test, { type ExecutionContext } from 'ava';
import { loadSettings } from '../../server/config/load.js';
import { startWith } from '../../server/start.js';
import { Cluster, farkv, freePorts } from '../support/cluster.js';
import { ask, samples } from '../support/http.js';
import { copied, leaderOf, served, statusOf, statusWhen, whole } from '../support/status.js';
import type { ClusterStatus } from '../../server/status.js';

const SMALL = { servers: 3, level: 'cache', shards: 6, memory: '32mb', args: ['--lease-ms', '200'] } as const;

/** The cluster of the test before: a test that passed leaves it whole, with three servers that serve, as it found it. */
let kept: Cluster | undefined;
const removals: (() => unknown)[] = [];
test.after.always(() => Promise.all(removals.map((remove) => remove())));

/** After a test that failed the next one gets a new cluster. */
async function wholeCluster(t: ExecutionContext): Promise<Cluster> {
  const cluster = kept ?? (await Cluster.start({ teardown: (f) => void removals.push(f) }, SMALL));
  kept = undefined;
  t.teardown(() => {
    if (t.passed) kept = cluster;
  });
  return cluster;
}

test.serial('three servers make one cluster, share its shards, and show it alike', async (t) => {
  const cluster = await wholeCluster(t);
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
    const cluster = await wholeCluster(t);
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
  const alone = await Cluster.start(t, { ...SMALL, absent: [1, 2], ready: false });
  await alone.server(0).said(/waiting for the metadata group: connected to nobody, not to s2, s3/);
  const status = await statusOf(alone.server(0).address);
  t.is(status.clusterId, '');
  t.deepEqual(await alone.server(0).stop(), { code: 0, signal: null });
});

test.serial('a server that most voters have left is not said to serve once its lease is over', async (t) => {
  const args = ['--owner-lease-ms', '1000', '--http-listen', '127.0.0.1:0'];
  const cluster = await Cluster.start(t, { ...SMALL, level: 'replicated', args });
  const [left, ...others] = cluster.servers;
  await statusWhen(left!.address, (s) => whole(s) && copied(s));
  await Promise.all(others.map((server) => server.kill()));
  const own = ({ shards }: ClusterStatus) => shards.filter(({ owner }) => owner === left!.id);
  const { members } = await statusWhen(
    left!.address,
    (s) => s.leader === undefined && own(s).every(({ state }) => state === 'open'),
  );
  t.is(members.find(({ id }) => id === left!.id)?.node?.leaseHeld, false);
  const { code, stdout } = await farkv(['status', '--connect', left!.address]);
  t.is(code, 1);
  t.regex(stdout, /^ +\d +s1 +open +1\/2 s1 s[23] \(away\)/m);
  t.regex(stdout, /^needs attention: s1 has no lease, .* \d, \d are not served until one of s2, s3 .* --data-dir/m);
  const top = await farkv(['top', '--connect', left!.address]);
  t.regex(top.stdout, /0 of 6 shards served {2}copies \d\/12 in sync/);
  const at = left!.readyLine!.http[0]!;
  t.is(samples((await ask(at, '/metrics')).text).get('farkv_shards{tenant="",state="serving"}'), 0);
  t.is((await ask(at, '/readyz')).status, 503);
  // One more is a majority.
  await others[0]!.start();
  await statusWhen(left!.address, (s) => own(s).every(({ state }) => state === 'serving'));
});

test.serial('a server that stays away does not hold a new cluster up for ever', async (t) => {
  const addresses = (await freePorts(3)).map((port) => `127.0.0.1:${port}`);
  const peers = addresses.map((address, i) => `s${i + 1}=${address}`);
  const start = async (i: number): Promise<readonly number[]> => {
    const given = { id: `s${i + 1}`, listen: '127.0.0.1:0', peers, shards: SMALL.shards, memory: SMALL.memory };
    const settings = { ...loadSettings(given, { env: {}, dashes: false }), assignAfterMs: 300 };
    const server = await startWith({ settings }, {});
    t.teardown(() => server.close());
    return server.shards;
  };
  t.deepEqual((await Promise.all([start(0), start(1)])).flat().sort(), [0, 1, 2, 3, 4, 5]);
  t.deepEqual(await start(2), []);
});

test.serial('a paused leader is replaced and, when it goes on, follows', async (t) => {
  const cluster = await wholeCluster(t);
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
