/**
 * A server stands still that owns shards, and tells the client where they are: the client goes on with who takes the
 * shards over, for a call that nothing else wakes, while the server still stands. When it goes on, its tables do as copies,
 * or as what they were, where those who asked for its shards have ended.
 */
import test from 'ava';
import { connect } from '../../client/index.js';
import type { ClusterStatus } from '../../server/status.js';
import { Cluster } from '../support/cluster.js';
import { statusWhen } from '../support/status.js';

const kept = (status: ClusterStatus): boolean =>
  status.shards.every((s) => s.state === 'serving' && s.copies?.inSync === 2 && s.copies.copies.length === 2);

for (const call of ['get', 'put'] as const) {
  test(`a lone ${call} of a shard whose owner stands still is answered by the next one`, async (t) => {
    const cluster = await Cluster.start(t, {
      servers: 3,
      shards: 6,
      level: 'replicated',
      args: ['--transport', 'tcp'],
    });
    const status = await statusWhen(cluster.server(0).address, kept);
    const still = cluster.servers.find(({ id }) => id !== status.leader && status.shards.some((s) => s.owner === id));
    if (still === undefined) throw new Error('the leader owns all shards');
    const kv = await connect({ servers: [still.address], transport: 'tcp', strict: true, timeoutMs: 120_000 });
    t.teardown(() => kv.close());
    const owned = new Set(status.shards.flatMap(({ shard, owner }) => (owner === still.id ? [shard] : [])));
    const key = Array.from({ length: 1000 }, (_, i) => `key-${i}`).find((name) => owned.has(kv.shardOf(name))) ?? '';
    await kv.put(key, 'before');
    t.is((await kv.get(key))?.toString(), 'before');
    still.signal('SIGSTOP');
    try {
      if (call === 'put') await kv.put(key, 'after');
      t.is((await kv.get(key))?.toString(), call === 'put' ? 'after' : 'before');
    } finally {
      still.signal('SIGCONT');
    }
    t.is((await kv.get(key))?.toString(), call === 'put' ? 'after' : 'before');
  });
}

test('an owner that stood still goes on with what it has, as a copy', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 6, level: 'replicated', args: ['--transport', 'tcp'] });
  const status = await statusWhen(cluster.server(0).address, kept);
  const still = cluster.servers.find(({ id }) => id !== status.leader && status.shards.some((s) => s.owner === id));
  const leader = cluster.servers.find(({ id }) => id === status.leader);
  if (still === undefined || leader === undefined) throw new Error('the leader owns all shards');
  const owned = status.shards.flatMap(({ shard, owner }) => (owner === still.id ? [shard] : []));
  const kv = await connect({ servers: [leader.address], transport: 'tcp', timeoutMs: 30_000 });
  t.teardown(() => kv.close());
  const keys = Array.from({ length: 200 }, (_, i) => `key-${i}`);
  await kv.putMany(keys.map((key) => ({ key, value: 'before' })));
  still.signal('SIGSTOP');
  try {
    await kv.putMany(keys.map((key) => ({ key, value: 'after' })));
  } finally {
    still.signal('SIGCONT');
  }
  for (const shard of owned)
    await still.said(new RegExp(`shard ${shard} of epoch \\d+ is another server's, .* goes on as a copy`));
  await statusWhen(leader.address, kept);
  for (const shard of owned)
    t.is([...still.stderr.matchAll(new RegExp(`shard ${shard}: a copy is made here`, 'g'))].length, 0);
  for (const value of await kv.getMany(keys)) t.is(value?.toString(), 'after');
});

test('a server that asked for the shards of a leader that stands still, and ends, is not given them', async (t) => {
  const cluster = await Cluster.start(t, {
    servers: 3,
    shards: 6,
    level: 'replicated',
    // Nobody else leads meanwhile.
    args: ['--transport', 'tcp', '--election-ms', '10000'],
  });
  const before = await statusWhen(cluster.server(0).address, kept);
  const leader = cluster.servers.find(({ id }) => id === before.leader)!;
  const owned = before.shards.filter((s) => s.owner === leader.id);
  const backupOf = (shard: (typeof owned)[number]): string | undefined =>
    shard.copies?.copies.find(({ member }) => member !== leader.id)?.member;
  const backup = cluster.servers.find(({ id }) => owned.some((s) => backupOf(s) === id));
  if (backup === undefined) throw new Error('the leader owns nothing');
  const asks = owned.filter((s) => backupOf(s) === backup.id).map(({ shard }) => shard);
  const kv = await connect({
    servers: [leader.address],
    transport: 'tcp',
    timeoutMs: 60_000,
    unavailableAfterMs: 60_000,
  });
  t.teardown(() => kv.close());
  const keys = Array.from({ length: 200 }, (_, i) => `key-${i}`);
  await kv.putMany(keys.map((key) => ({ key, value: 'kept' })));
  leader.signal('SIGSTOP');
  try {
    for (const shard of asks) await backup.said(new RegExp(`shard ${shard}: .* the copy here asks to take its place`));
    await backup.kill();
  } finally {
    leader.signal('SIGCONT');
  }
  for (const value of await kv.getMany(keys)) t.is(value?.toString(), 'kept');
  await backup.start();
  await statusWhen(leader.address, kept);
});
