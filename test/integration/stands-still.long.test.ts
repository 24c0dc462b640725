/**
 * A server stands still that owns shards, and tells the client where they are: the client goes on with who takes the
 * shards over, for a call that nothing else wakes, while the server still stands.
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
    const kv = await connect({ servers: [still.address], transport: 'tcp', strict: true, timeoutMs: 12_000 });
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
