/**
 * A program that ends at one stage of a data plane's life: run as a child process or as a worker thread by
 * native/node/server-binding.test.ts, with the stage's name as its argument. It prints what it has to say and must not
 * crash.
 */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isMainThread, parentPort, threadId, workerData } from 'node:worker_threads';
import { addon } from '../../native/addon.js';
import type { DataPlane } from '../../native/data-plane.js';
import { Driver, Plane, SECRET, SEED, SHARDS } from './native-pair.js';

const say = (text: string): void => {
  if (isMainThread) process.stdout.write(`${text}\n`);
  else parentPort?.postMessage(text);
};

async function collect(): Promise<void> {
  for (let i = 0; i < 5; i++) {
    (globalThis as { gc?: () => void }).gc?.();
    await new Promise(setImmediate);
  }
}

function made(address = `unix:${join(tmpdir(), `farkv-stage-${process.pid}-${threadId}.sock`)}`): DataPlane {
  return new addon.DataPlane({
    serverIncarnation: 1n,
    hashSeed: SEED,
    ticketSecret: SECRET,
    shards: SHARDS,
    leaseMs: 100,
    driftPpm: 100,
    listen: [{ provider: 'shm', address, worker: 0 }],
    workers: 2,
    maxClients: 10,
    clientQuota: 10,
    polling: 'auto',
    hugePages: 'off',
  });
}
const shard = { shard: 0, worker: 0, epoch: 1, incarnation: 1n, memoryBytes: 64 << 20 };

export const stages: Readonly<Record<string, () => Promise<void>>> = {
  made: () => {
    made();
    say('made');
    return Promise.resolve();
  },
  'made and collected': async () => {
    for (let i = 0; i < 20; i++) made();
    await collect();
    say('collected');
  },
  'not started and closed': async () => {
    await made().close();
    say('closed');
  },
  /** Running threads do not keep a process. */
  started: () => {
    made().start();
    say('started');
    return Promise.resolve();
  },
  'started twice at one address': async () => {
    const [first, second] = [made(), made()];
    first.start();
    try {
      second.start();
    } catch (e) {
      say((e as { code: string }).code);
    }
    await first.close();
    second.start();
    await second.close();
  },
  'started and exit': () => {
    made().start();
    say('exiting');
    process.exit(0);
  },
  /** What is pending keeps a process until it is settled. */
  opening: () => {
    const plane = made();
    plane.start();
    void plane.openShard(shard).then(({ layoutEpoch }) => say(layoutEpoch > 0 ? 'opened' : 'wrong'));
    return Promise.resolve();
  },
  'opening and exit': () => {
    const plane = made();
    plane.start();
    for (let i = 0; i < SHARDS; i++) void plane.openShard({ ...shard, shard: i, worker: i % 2 });
    say('exiting');
    process.exit(0);
  },
  'opening and closed': async () => {
    const plane = made();
    plane.start();
    const opened = plane.openShard(shard).then(
      () => 'opened',
      (e: unknown) => (e as { code: string }).code,
    );
    await plane.close();
    say(['opened', 'ERR_CLOSED'].includes(await opened) ? 'closed' : 'wrong');
  },
  'serving and exit': async () => {
    const plane = made();
    plane.start();
    await plane.openShard(shard);
    await plane.serveShard(0);
    void plane.stats();
    say('exiting');
    process.exit(0);
  },
  'closing and exit': async () => {
    const plane = await Plane.start();
    const client = Driver.to(plane);
    await client.put('a', 'v');
    await client.get('a');
    for (let i = 0; i < SHARDS; i++) void plane.native.closeShard(i);
    void plane.close();
    say('exiting');
    process.exit(0);
  },
  'with clients at work and closed': async () => {
    const plane = await Plane.start();
    const client = Driver.to(plane);
    await client.put('a', 'v');
    for (let i = 0; i < 50; i++) void client.put(`k${i}`, Buffer.alloc(i * 2000));
    await Promise.all([plane.close(), plane.close()]);
    client.close();
    await plane.close();
    say('closed');
  },
  'with clients at work and exit': async () => {
    const plane = await Plane.start();
    const client = Driver.to(plane);
    await client.put('a', 'v');
    for (let i = 0; i < 50; i++) void client.put(`k${i}`, Buffer.alloc(i * 2000));
    say('exiting');
    process.exit(0);
  },
  'an exception that nobody catches': () => {
    made().start();
    say('throwing');
    throw new Error('on purpose');
  },
  'an exception in onLayout': async () => {
    process.on('uncaughtException', (e) => {
      say(e.message);
      process.exit(0);
    });
    const plane = await Plane.start({ memoryBytes: 64 << 20 });
    plane.native.onLayout = () => {
      throw new Error('from onLayout');
    };
    const client = Driver.to(plane);
    for (let i = 0; ; i++) await client.put(`k${i}`, Buffer.alloc(10_000));
  },
  'running and not collected': async () => {
    const address = made().start()[0]?.address; // nothing holds the object but its own threads
    await collect();
    try {
      made(address).start();
    } catch (e) {
      say((e as { code: string }).code);
    }
  },
  'works until it is ended': async () => {
    const plane = made();
    plane.start();
    say('working');
    for (;;) {
      await plane.openShard(shard);
      await plane.serveShard(0);
      await plane.closeShard(0);
    }
  },
  'a whole life': async () => {
    const plane = made();
    plane.start();
    await plane.openShard(shard);
    await plane.serveShard(0);
    await plane.closeShard(0);
    await plane.close();
    say('lived');
  },
};

const stage = isMainThread ? process.argv[2] : (workerData as string);
await stages[stage ?? '']?.();
