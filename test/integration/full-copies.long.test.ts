/** A server with less memory than its copy of a shard needs, as a real process: what operators are told. */
import test from 'ava';
import { connect } from '../../client/index.js';
import { Cluster, farkv, succeeds } from '../support/cluster.js';
import { statusWhen } from '../support/status.js';

const MIB = 1 << 20;
/** The joiner has 64 MiB. */
const VALUES = 80;

test('a copy that does not fit its server is named by farkv status, which exits with 1', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, shards: 1, memory: '512mb' });
  const { address } = cluster.server(0);
  const client = await connect({ servers: [address] });
  t.teardown(() => client.close());
  for (let i = 0; i < VALUES; i++) await client.put(`key ${i}`, Buffer.alloc(MIB, i));
  const joiner = await cluster.joiner('s2');
  await joiner.start();
  await succeeds(t, cluster, 'replication', 'set', '--level', 'replicated');
  await joiner.said(/no copy could be made here of what s1 has, for want of memory/);
  await statusWhen(address, (s) => s.members.some((m) => m.node?.fullCopies.includes(0) === true));
  const { code, stdout } = await farkv(['status', '--connect', address]);
  t.is(code, 1);
  t.regex(stdout, /1\/2 s1 s2 \(full\) DEGRADED/);
  t.regex(stdout, /needs attention: the copy of shard 0 at s2 has no room .* more --memory/);
  const value = Buffer.from('the shard goes on');
  await client.put('key 0', value);
  t.deepEqual(await client.get('key 0'), value);
});
