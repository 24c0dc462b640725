/** How much memory one shard may have, with real processes: what all servers have, by the number of shards. */
import test, { type ExecutionContext } from 'ava';
import { connect, type BufferValue, type Client } from '../../client/index.js';
import { advice } from '../../server/advice.js';
import { attention } from '../../server/attention.js';
import { Cluster, farkv } from '../support/cluster.js';
import { statusOf, statusWhen } from '../support/status.js';

const MIB = 1 << 20;
const VALUE = Buffer.alloc(100_000, 'v');

/** Values of shard 0 alone. */
class Filling {
  readonly client: Client<BufferValue, Buffer>;
  readonly stored: string[] = [];
  #next = 0;

  private constructor(client: Client<BufferValue, Buffer>) {
    this.client = client;
  }

  static async begin(t: ExecutionContext, address: string): Promise<Filling> {
    const client = await connect({ servers: [address] });
    t.teardown(() => client.close());
    return new Filling(client);
  }

  async put(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const key = this.#key();
      await this.client.put(key, VALUE);
      this.stored.push(key);
    }
  }

  async missing(client = this.client): Promise<string[]> {
    const missing: string[] = [];
    for (const key of this.stored) if ((await client.get(key))?.length !== VALUE.length) missing.push(key);
    return missing;
  }

  #key(): string {
    for (;;) {
      const key = `key ${++this.#next}`;
      if (this.client.shardOf(key) === 0) return key;
    }
  }
}

test('a shard that is full takes changes again when a server joins, before anything moves', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, shards: 2, memory: '16mb' });
  const { address } = cluster.server(0);
  const filling = await Filling.begin(t, address);
  await t.throwsAsync(filling.put(1000), { code: 'ERR_TABLE_FULL' });
  const count = filling.stored.length;
  t.true(count > 60 && count * VALUE.length < 8 * MIB, `${count} were taken`);
  await statusWhen(address, (s) => attention(s).some((line) => line.startsWith('shard 0 at s1: more than 90 %')));

  await (await cluster.joiner('s2')).start();
  // The joiner has 64 MiB: no table may have more than its own server.
  await statusWhen(address, (s) => s.shards.every(({ memoryLimitBytes }) => memoryLimitBytes === 16 * MIB));
  await filling.put(20);
  t.deepEqual(await filling.missing(), []);
});

test('a value that is too large for a shard is refused, and the status says how much a shard may have', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, shards: 4, memory: '64mb' });
  const { address } = cluster.server(0);
  const client = await connect({ servers: [address] });
  t.teardown(() => client.close());
  t.deepEqual(advice(await statusOf(address)), []);
  await client.put('key', Buffer.alloc(9 * MIB));
  await client.delete('key');
  const error = await t.throwsAsync(client.put('key', Buffer.alloc(15 * MIB)), { code: 'ERR_TABLE_FULL' });
  t.regex(error.message, /too small for the value/);
  const { code, stdout } = await farkv(['status', '--connect', address]);
  t.is(code, 0);
  t.regex(stdout, /^advice: s1 refused changes in the last five minutes.* A shard has at most 16\.0 MiB,/m);
  const put = await farkv(['put', 'key', '--connect', address], { input: 'v'.repeat(15 * MIB) });
  t.is(put.code, 1);
  t.regex(put.stderr, /a value must fit into what is free of its shard/);
});

test('values on the disk come back to a server on which their shard may have less than it had', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, shards: 2, memory: '32mb', level: 'durable' });
  const server = cluster.server(0);
  const filling = await Filling.begin(t, server.address);
  await filling.put(140);
  t.is((await server.stop()).code, 0);
  server.args = server.args.map((arg) => (arg === '32mb' ? '24mb' : arg));
  await server.start();
  const client = await connect({ servers: [server.address] });
  t.teardown(() => client.close());
  t.deepEqual(await filling.missing(client), []);
  await t.throwsAsync(client.put(filling.stored[0] ?? '', Buffer.alloc(300_000)), { code: 'ERR_TABLE_FULL' });
  for (const key of filling.stored.splice(0, 60)) await client.delete(key);
  await client.put(filling.stored[0] ?? '', VALUE);
  t.deepEqual(await filling.missing(client), []);
});
