/**
 * What the SDK's integration tests run in other threads and processes: `node sdk-child.js TASK SERVERS TRANSPORT
 * ARGUMENT`, or a worker with the same as workerData. Prints (or posts) one line of JSON.
 *
 *   increment N   adds 1 to the key "counter" N times by compare-and-swap; tells how often it lost
 *   own N         writes and reads N keys of its own; tells how many were right
 *   large         puts values of 48 MiB under one key until it is killed; prints a line when the first one is
 *                 acknowledged
 *   idle          connects, does one put, and returns without closing: the process must end by itself
 */
import { parentPort, threadId, workerData } from 'node:worker_threads';
import { connect, type TransportChoice } from '../../client/index.js';

export interface ChildTask {
  readonly task: 'increment' | 'own' | 'idle' | 'large';
  readonly servers: string;
  readonly transport: TransportChoice;
  readonly argument: number;
}

async function run({ task, servers, transport, argument }: ChildTask): Promise<unknown> {
  const client = await connect({ servers, transport, codec: 'msgpack', timeoutMs: 120_000, connectTimeoutMs: 120_000 });
  const own = `${process.pid}-${threadId}`;
  if (task === 'large') {
    const bytes = client.withCodec('buffer');
    for (let round = 0; ; round = (round + 1) % 256) {
      await bytes.put('large', Buffer.alloc(48 << 20, round));
      if (round === 0) process.stdout.write('first\n');
    }
  }
  if (task === 'idle') {
    await client.put(`idle-${own}`, 1);
    return { done: true };
  }
  let lost = 0;
  let right = 0;
  if (task === 'increment') {
    for (let i = 0; i < argument;) {
      const entry = await client.getEntry('counter');
      const swap = await client.compareAndSwap('counter', entry?.version ?? 0n, Number(entry?.value ?? 0) + 1);
      if (swap.swapped) i++;
      else lost++;
    }
  } else {
    const keys = Array.from({ length: argument }, (_, i) => `${own}-${i}`);
    await client.putMany(keys.map((key) => ({ key, value: { key } })));
    const values = await client.getMany(keys);
    right = values.filter((value, i) => (value as { readonly key: string } | undefined)?.key === keys[i]).length;
  }
  await client.close();
  return { lost, right };
}

if (parentPort === null) {
  const [, , task, servers, transport, argument] = process.argv;
  process.stdout.write(
    `${JSON.stringify(await run({ task, servers, transport, argument: Number(argument) } as ChildTask))}\n`,
  );
} else {
  parentPort.postMessage(await run(workerData as ChildTask));
}
