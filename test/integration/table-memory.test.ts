/** How much memory one shard may have, with real processes: what all servers have, by the number of shards. */
import test from 'ava';
import { connect } from '../../client/index.js';
import { attention } from '../../server/attention.js';
import { Cluster } from '../support/cluster.js';
import { statusWhen } from '../support/status.js';

const MIB = 1 << 20;
const VALUE = Buffer.alloc(100_000, 'v');

test('a shard that is full takes changes again when a server joins, before anything moves', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, shards: 2, memory: '16mb' });
  const { address } = cluster.server(0);
  const client = await connect({ servers: [address] });
  t.teardown(() => client.close());
  let next = 0;
  const key = (): string => {
    for (;;) if (client.shardOf(`key ${++next}`) === 0) return `key ${next}`;
  };
  const stored: string[] = [];
  const fill = async (count: number): Promise<void> => {
    for (let name = key(); count-- > 0; name = key()) {
      await client.put(name, VALUE);
      stored.push(name);
    }
  };
  await t.throwsAsync(fill(1000), { code: 'ERR_TABLE_FULL' });
  t.true(stored.length > 60 && stored.length * VALUE.length < 8 * MIB, `${stored.length} were taken`);
  await statusWhen(address, (s) => attention(s).some((line) => line.startsWith('shard 0 at s1: more than 90 %')));

  await (await cluster.joiner('s2')).start();
  // The joiner has 64 MiB.
  await statusWhen(address, (s) => s.shards.every(({ memoryLimitBytes }) => memoryLimitBytes === 40 * MIB));
  await fill(20);
  for (const name of stored) t.is((await client.get(name))?.length, VALUE.length);
});
