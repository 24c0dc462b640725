/** Memory beyond keys and values, an entry, in a server of its own, beside Redis's used_memory of the same data. */
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from '../../client/index.js';
import { ControlClient } from '../../server/control/client-connection.js';
import type { ClusterStatus } from '../../server/status.js';
import { DemoCluster } from '../demo-cluster.js';
import type { Lab } from './lab.js';
import { atMost, part, type Part } from './row.js';
import { inParts, keyOf, loadRedis, memoryFor, openRedis, valueOf, type RedisStore } from './stores.js';

const KEY_BYTES = 16;
/** How long freed memory may be kept for readers that are still at it. */
const REST_MS = 6000;
const STATUS_TIMEOUT_MS = 10_000;

interface Sample {
  readonly entries: number;
  readonly farkvBytes: number;
  readonly redisBytes: number;
}

/** Registered bytes of all shards, index and heap, free space included. */
async function registeredBytes(address: string): Promise<number> {
  const client = await ControlClient.open({ address, trust: undefined, timeoutMs: STATUS_TIMEOUT_MS, hello: { role: 'admin' } });
  try {
    const { shards } = (await client.call('status', {}, STATUS_TIMEOUT_MS)) as ClusterStatus;
    return shards.reduce((sum, { memoryBytes }) => sum + (memoryBytes ?? 0), 0);
  } finally {
    client.close();
  }
}

const usedMemory = async (redis: RedisStore): Promise<number> => Number(/used_memory:(\d+)/.exec(await redis.client.info('memory'))?.[1]);

/** Samples while the second half is loaded, and one after a rest, the last. */
async function fill(lab: Lab, valueBytes: number): Promise<Sample[]> {
  const cluster = await DemoCluster.start(1, `${memoryFor(lab.keys, valueBytes)}b`, lab.signal);
  const redis = await openRedis();
  try {
    const address = cluster.addresses[0] ?? '';
    const client = await connect({ servers: cluster.addresses });
    const value = valueOf(valueBytes);
    const empty = await usedMemory(redis);
    const samples: Sample[] = [];
    let entries = 0;
    const sample = async (): Promise<void> => {
      samples.push({ entries, farkvBytes: await registeredBytes(address), redisBytes: (await usedMemory(redis)) - empty });
    };
    await inParts(lab.keys, lab.signal, async (numbers) => {
      await client.putMany(numbers.map((i) => ({ key: keyOf(i), value })));
      await loadRedis(redis.client, numbers, value);
      entries += numbers.length;
      if (entries >= lab.keys / 2) await sample();
    });
    await delay(REST_MS);
    await sample();
    await client.close();
    return samples;
  } finally {
    redis.client.disconnect();
    await redis.peer.stop();
    await cluster.stop();
  }
}

/** For each size of value: after a rest and, with `growth`, at the worst moment of the second half of the load. */
export async function memoryPerEntry(lab: Lab, goal: number, growth: boolean): Promise<Part[]> {
  const parts: Part[] = [];
  for (const valueBytes of [100, 1000]) {
    lab.note(`filling a farkv server and redis-server (${lab.keys.toLocaleString('en')} records of ${valueBytes} B)`);
    const beyond = (bytes: number, { entries }: Sample): number => bytes / entries - KEY_BYTES - valueBytes;
    const samples = await fill(lab, valueBytes);
    const rest = samples.at(-1);
    if (rest === undefined) continue;
    const worst = samples.reduce((a, b) => (beyond(b.farkvBytes, b) > beyond(a.farkvBytes, a) ? b : a));
    for (const [when, sample] of growth ? ([['', rest], [' just after growth', worst]] as const) : ([['', rest]] as const)) {
      const ours = beyond(sample.farkvBytes, sample);
      const theirs = beyond(sample.redisBytes, sample);
      const of = `${sample.entries.toLocaleString('en')} entries`;
      parts.push(part(`memory an entry, ${valueBytes} B values${when}`, atMost(goal, 'B'), [ours], `${sample.farkvBytes.toLocaleString('en')} B registered for ${of}`));
      parts.push(part(
        `memory an entry, ${valueBytes} B values${when}, against Redis used_memory`, { kind: 'below', value: 1, unit: "times Redis's" }, [ours / theirs],
        `farkv ${ours.toFixed(1)} B, Redis ${theirs.toFixed(1)} B at ${of}`,
      ));
    }
  }
  return parts;
}
