/** Servers come and go, and shards go from one to another, with real processes and the commands that an operator has. */
import test, { type ExecutionContext } from 'ava';
import { rm } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';
import { connect, type BufferValue, type Client, type ConnectOptions } from '../../client/index.js';
import { Cluster, farkv } from '../support/cluster.js';
import { certainly, keysOf, LASTING, QUICK, raised } from '../support/owners.js';
import { leaderOf, operator, served, statusOf, statusWhen, whole } from '../support/status.js';
import type { ClusterStatus } from '../../server/status.js';

const ARGS = ['--lease-ms', '300'];

const roles = (status: ClusterStatus): Record<string, string> => Object.fromEntries(status.members.map((m) => [m.id, m.role]));

async function run(t: ExecutionContext, cluster: Cluster, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await farkv([...args, '--timeout', '2m', '--connect', cluster.addresses.join(',')]);
  t.is(code, 0, `${args.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}

async function connected(t: ExecutionContext, cluster: Cluster, more: Partial<ConnectOptions> = {}): Promise<Client<BufferValue, Buffer>> {
  const kv = await connect({ servers: cluster.addresses, ...more });
  t.teardown(() => kv.close());
  return kv;
}

test.serial('one server becomes three voters and a follower, and the first can go', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, shards: 4, args: ARGS });
  await raised(cluster);
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

  const plan = JSON.parse(await run(t, cluster, 'shard', 'rebalance', '--dry-run', '--json')) as { readonly from: string; readonly to: string }[];
  t.deepEqual(plan.map((m) => m.from), ['s1', 's1', 's1']);
  t.deepEqual(plan.map((m) => m.to).sort(), ['s2', 's3', 's4']);
  await run(t, cluster, 'shard', 'rebalance');
  t.regex(await run(t, cluster, 'shard', 'rebalance', '--dry-run'), /balanced: nothing to move/);

  // The leader itself is drained and removed: another one takes over, and the follower its vote.
  t.regex((await farkv(['member', 'remove', 's1', '--connect', s2.address])).stderr, /farkv drain s1/);
  t.regex(await run(t, cluster, 'drain', 's1'), /owns no shards/);
  await run(t, cluster, 'member', 'remove', 's1');
  t.deepEqual(await cluster.server(0).exit, { code: 2, signal: null });
  t.regex(cluster.server(0).stderr, /s1 was removed from the cluster/);
  const after = await statusWhen(s2.address, (s) => s.leader !== undefined && served(s) && s.members.every((m) => m.role === 'voter'));
  t.deepEqual(after.members.map((m) => m.id), ['s2', 's3', 's4']);

  // Those that came later start again as any other.
  await s3.kill();
  await s3.start();
  await statusWhen(s3.address, whole);
  t.regex(await run(t, cluster, 'member', 'list'), /s4 +voter/);
});

test.serial('a server that lost its data directory is told the command, and comes back by it under its old name', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 3, args: QUICK });
  await raised(cluster);
  const lost = cluster.server(2);
  await lost.kill();
  await rm(lost.dataDir, { recursive: true });
  lost.launch();
  await lost.exit;
  t.regex(lost.stderr, /farkv member remove s3/);
  // Its shards are taken first, so that the command finds it without any.
  await statusWhen(cluster.server(0).address, (s) => s.shards.every((one) => one.owner !== 's3'));
  await run(t, cluster, 'member', 'remove', 's3');
  const again = await cluster.joiner('s3', QUICK);
  await again.start();
  await statusWhen(again.address, (s) => whole(s) && s.members.length === 3 && s.members.every((m) => m.role === 'voter'));
  await cluster.server(0).stop();
  // Its vote counts: without it two of three would not be there.
  await statusWhen(again.address, (s) => s.leader !== undefined && s.leader !== 's1' && s.shards.every((one) => one.owner !== 's1' && one.state === 'serving'));
});

test.serial('an announced server is shown until it comes; what cannot be joined is refused by name', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, shards: 1, args: ARGS });
  await raised(cluster);
  t.regex(await run(t, cluster, 'member', 'add', 's2', '127.0.0.1:1'), /--join/);
  t.deepEqual(roles(await statusOf(cluster.server(0).address)), { s1: 'voter', s2: 'announced' });
  await (await cluster.joiner('s2', ARGS)).start();
  t.deepEqual(roles(await statusOf(cluster.server(0).address)), { s1: 'voter', s2: 'learner' });
  const namesake = await cluster.joiner('s2', ARGS);
  namesake.launch();
  t.is((await namesake.exit).code, 1);
  t.regex(namesake.stderr, /another data directory.*farkv member remove s2/);
  t.regex((await farkv(['member', 'remove', 's9', '--connect', cluster.server(0).address])).stderr, /s9 is not one of the servers/);
  t.regex((await farkv(['shard', 'move', '0', 's9', '--connect', cluster.server(0).address])).stderr, /s9 has not joined/);
  t.regex((await farkv(['shard', 'move', '7', 's1', '--connect', cluster.server(0).address])).stderr, /there is no shard 7/);
  t.regex((await farkv(['member', 'add', 's1', '--connect', cluster.server(0).address])).stderr, /s1 is one of the servers already/);
  await run(t, cluster, 'drain', 's2');
  const last = await farkv(['drain', 's1', '--connect', cluster.server(0).address]);
  t.is(last.code, 1);
  t.regex(last.stderr, /no other server could own the shards of s1\n$/);
  t.is((await farkv(['shard', 'move', 'x', 's1', '--connect', cluster.server(0).address])).code, 2);
});

for (const transport of ['shm', 'tcp'] as const) {
  test.serial(`${transport}: a shard moves while it is read and written: no call fails, and nothing is lost`, async (t) => {
    const cluster = await Cluster.start(t, { servers: 2, shards: 2, args: ['--lease-ms', '1000'] });
    await raised(cluster);
    const kv = await connected(t, cluster, { transport, strict: true, timeoutMs: 60_000, unavailableAfterMs: 60_000 });
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
    const failed = work.then(() => undefined, (error: unknown) => error);
    for (let i = 0; i < 3; i++) {
      const { shards } = await statusOf(cluster.server(0).address);
      for (const s of shards) await run(t, cluster, 'shard', 'move', String(s.shard), s.owner === 's1' ? 's2' : 's1');
      const from = rounds;
      while (rounds < from + 200 && (await Promise.race([failed, setImmediate(false)])) === false);
    }
    going.on = false;
    t.is(await failed, undefined);
    for (const [key, value] of rest) t.is(String(await kv.get(key)), value);
    t.deepEqual((await statusOf(cluster.server(0).address)).shards.map((s) => s.epoch), [4, 4]);
  });
}

for (const dies of ['new', 'old'] as const) {
  test.serial(`the ${dies} owner of a shard that moves dies before the copy is done`, async (t) => {
    const cluster = await Cluster.start(t, { servers: 3, shards: 3, args: LASTING });
    await raised(cluster);
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
