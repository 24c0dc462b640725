/** A server that may have few descriptors: how much it can keep, and what it does and says when there are none left. */
import test, { type ExecutionContext } from 'ava';
import { connect, FarkvError, type BufferValue, type Client } from '../../client/index.js';
import { Cluster, farkv } from '../support/cluster.js';

const VALUE = Buffer.alloc(100, 'v');
const BATCH = 500;

/** One server that may have so many descriptors, of which it needs about 60 for itself. */
async function start(t: ExecutionContext, descriptors: number): Promise<Cluster> {
  const cluster = await Cluster.start(t, { shards: 4, memory: '256mb' });
  const server = cluster.server(0);
  await server.stop();
  server.launcher = ['prlimit', `--nofile=${descriptors}:${descriptors}`];
  await server.start();
  return cluster;
}

async function come(t: ExecutionContext, cluster: Cluster): Promise<Client<BufferValue, Buffer>> {
  const kv = await connect({ servers: cluster.addresses, timeoutMs: 60_000, connectTimeoutMs: 60_000 });
  t.teardown(() => kv.close());
  return kv;
}

/** Puts so many batches; why it ended earlier. */
async function fill(kv: Client<BufferValue, Buffer>, batches: number): Promise<FarkvError | undefined> {
  for (let batch = 0; batch < batches; batch++) {
    const items = Array.from({ length: BATCH }, (_, i) => ({ key: `key-${batch * BATCH + i}`, value: VALUE }));
    try {
      await kv.putMany(items);
    } catch (error) {
      if (!(error instanceof FarkvError)) throw error;
      return error;
    }
  }
  return undefined;
}

test.serial('two hundred descriptors are enough for the memory of 300,000 values', async (t) => {
  const cluster = await start(t, 200);
  const kv = await come(t, cluster);
  t.is(await fill(kv, 600), undefined);
  t.is((await farkv(['status', '--connect', cluster.server(0).address])).code, 0);
});

test.serial(
  'without descriptors changes fail, and clients and operators come in and are told what to raise',
  async (t) => {
    const cluster = await start(t, 100);
    const kv = await come(t, cluster);
    t.is((await fill(kv, 2000))?.code, 'ERR_NO_MEMORY');
    const other = await come(t, cluster);
    t.deepEqual(await other.get('key-0'), VALUE);
    const server = cluster.server(0);
    const { code, stdout } = await farkv(['status', '--connect', server.address]);
    t.is(code, 1);
    t.regex(stdout, /s1 ran out of file descriptors.*LimitNOFILE=/);
    await server.said('no file descriptors are left for memory of tables (EMFILE)');
  },
);
