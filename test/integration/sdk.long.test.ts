/** What the SDK's methods do with much: large values, many items, several processes and threads. sdk.test.ts has the rest. */
import test from 'ava';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Cluster } from '../support/cluster.js';
import { CHILD, clientOf, inProcess, sharedCluster, storesWhole } from '../support/sdk-clients.js';
import type { ChildTask } from '../support/sdk-child.js';

const MIB = 1 << 20;
const shared = sharedCluster(test);

async function inThread(task: ChildTask): Promise<unknown> {
  const worker = new Worker(CHILD, { workerData: task });
  // Both are awaited from the beginning: a thread may post and end within one turn of this one's event loop.
  const [[answer]] = (await Promise.all([once(worker, 'message'), once(worker, 'exit')])) as [[unknown], unknown];
  return answer;
}

for (const transport of ['shm', 'tcp'] as const) {
  test(`${transport}: values to 64 MiB, and no larger`, async (t) => {
    const kv = await clientOf(t, shared(), { transport, strict: true, timeoutMs: 60_000 });
    for (const bytes of [16 * MIB, 64 * MIB]) await storesWhole(t, kv, bytes);
    await t.throwsAsync(kv.put('v', Buffer.alloc(64 * MIB + 1)), { code: 'ERR_VALUE_TOO_LARGE' });
    for await (const { value } of kv.scan({ values: true })) t.is(value.length, 64 * MIB);
  });

  test(`${transport}: compare-and-swap from several processes loses no increment`, async (t) => {
    const kv = (await clientOf(t, shared(), { namespace: 0 })).withCodec<number>('msgpack');
    await kv.put('counter', 0);
    const task: ChildTask = { task: 'increment', servers: shared().addresses.join(','), transport, argument: 200 };
    const answers = await Promise.all(Array.from({ length: 4 }, () => inProcess(task)));
    t.is(await kv.get('counter'), 800);
    t.true(answers.every((answer) => (answer as { readonly code: number }).code === 0));
  });

  test(`${transport}: worker threads, each with a client of its own`, async (t) => {
    const task: ChildTask = { task: 'own', servers: shared().addresses.join(','), transport, argument: 2000 };
    const answers = await Promise.all(Array.from({ length: 4 }, () => inThread(task)));
    t.deepEqual(answers, new Array(4).fill({ lost: 0, right: 2000 }));
  });
}

test('one call may be of far more items than are worked on at once', async (t) => {
  // Servers of its own: how many READs a GET takes in a table that grows is not what other tests want to see.
  const cluster = await Cluster.start(t, { servers: 1, memory: '256mb', shards: 4 });
  const kv = await clientOf(t, cluster, { timeoutMs: 600_000 });
  const keys = Array.from({ length: 150_000 }, (_, i) => `many ${i}`);
  await kv.putMany(keys.map((key, i) => ({ key, value: String(i) })));
  const values = await kv.getMany(keys);
  t.is(values.length, keys.length);
  t.true(values.every((value, i) => String(value) === String(i)));
});
