/**
 * Memory beyond keys and values, an entry, in a server of its own, beside what Redis or memcached say that they use for
 * the same data.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { StatsCommandResponse } from 'memcache-client';
import { connect } from '../../client/index.js';
import { ControlClient } from '../../net/control-client.js';
import type { ClusterStatus } from '../../server/status.js';
import { DemoCluster } from '../demo-cluster.js';
import type { Lab } from './lab.js';
import { atMost, part, type Part } from './row.js';
import { inParts, keyOf, loadMemcached, loadRedis, memoryFor, openMemcached, openRedis, valueOf } from './stores.js';

const KEY_BYTES = 16;
/** How long freed memory may be kept for readers that are still at it. */
const REST_MS = 6000;
const STATUS_TIMEOUT_MS = 10_000;

interface Sample {
  readonly entries: number;
  readonly farkvBytes: number;
  /** Beyond what the peer used when it was empty. */
  readonly peerBytes: number;
}

/** Another store that is filled with the same records. */
interface Filled {
  load(numbers: readonly number[], value: Buffer): Promise<void>;
  usedBytes(): Promise<number>;
  stop(): Promise<void>;
}

interface MemoryPeer {
  readonly name: string;
  readonly measure: string;
  open(keys: number, valueBytes: number): Promise<Filled>;
}

const REDIS: MemoryPeer = {
  name: 'Redis',
  measure: 'used_memory',
  async open() {
    const { peer, client } = await openRedis();
    return {
      load: (numbers, value) => loadRedis(client, numbers, value),
      usedBytes: async () => Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]),
      stop: () => {
        client.disconnect();
        return peer.stop();
      },
    };
  },
};

/** Its slab pages, free chunks included, and its hash table: what it has taken for entries. */
const MEMCACHED: MemoryPeer = {
  name: 'memcached',
  measure: 'total_malloced + hash_bytes',
  async open(keys, valueBytes) {
    const { peer, client } = await openMemcached(keys, valueBytes);
    const stat = async (command: string, name: string): Promise<number> => {
      const { STAT } = await client.cmd<StatsCommandResponse>(command);
      return Number(STAT.find(([key]) => key === name)?.[1]);
    };
    return {
      load: (numbers, value) => loadMemcached(client, numbers, value),
      usedBytes: async () => (await stat('stats slabs', 'total_malloced')) + (await stat('stats', 'hash_bytes')),
      stop: () => {
        client.shutdown();
        return peer.stop();
      },
    };
  },
};

/** Registered bytes of all shards, index and heap, free space included. */
async function registeredBytes(address: string): Promise<number> {
  const client = await ControlClient.open({
    address,
    trust: undefined,
    timeoutMs: STATUS_TIMEOUT_MS,
    hello: { role: 'admin' },
  });
  try {
    const { shards } = (await client.call('status', {}, STATUS_TIMEOUT_MS)) as ClusterStatus;
    return shards.reduce((sum, { memoryBytes }) => sum + (memoryBytes ?? 0), 0);
  } finally {
    client.close();
  }
}

/** Samples while the second half is loaded, and one after a rest, the last. */
async function fill(lab: Lab, valueBytes: number, peer: MemoryPeer): Promise<Sample[]> {
  const cluster = await DemoCluster.start(1, `${memoryFor(lab.keys, valueBytes)}b`, lab.signal);
  let beside: Filled | undefined;
  try {
    const other = (beside = await peer.open(lab.keys, valueBytes));
    const address = cluster.addresses[0] ?? '';
    const client = await connect({ servers: cluster.addresses });
    const value = valueOf(valueBytes);
    const empty = await other.usedBytes();
    const samples: Sample[] = [];
    let entries = 0;
    const sample = async (): Promise<void> => {
      samples.push({
        entries,
        farkvBytes: await registeredBytes(address),
        peerBytes: (await other.usedBytes()) - empty,
      });
    };
    await inParts(lab.keys, lab.signal, async (numbers) => {
      await client.putMany(numbers.map((i) => ({ key: keyOf(i), value })));
      await other.load(numbers, value);
      entries += numbers.length;
      if (entries >= lab.keys / 2) await sample();
    });
    await delay(REST_MS);
    await sample();
    await client.close();
    return samples;
  } finally {
    await beside?.stop();
    await cluster.stop();
  }
}

type Judge = (valueBytes: number, when: string, sample: Sample) => Part[];

const beyond = (bytes: number, { entries }: Sample, valueBytes: number): number =>
  bytes / entries - KEY_BYTES - valueBytes;

function against(peer: MemoryPeer, valueBytes: number, when: string, sample: Sample): Part {
  const [ours, theirs] = [beyond(sample.farkvBytes, sample, valueBytes), beyond(sample.peerBytes, sample, valueBytes)];
  return part(
    `memory an entry, ${valueBytes} B values${when}, against ${peer.name} ${peer.measure}`,
    { kind: 'below', value: 1, unit: `times ${peer.name}'s` },
    [ours / theirs],
    `farkv ${ours.toFixed(1)} B, ${peer.name} ${theirs.toFixed(1)} B at ${sample.entries.toLocaleString('en')} entries`,
  );
}

/** For each size of value: after a rest and, with `growth`, at the worst moment of the second half of the load. */
async function measureMemory(lab: Lab, peer: MemoryPeer, growth: boolean, judge: Judge): Promise<Part[]> {
  const parts: Part[] = [];
  for (const valueBytes of [100, 1000]) {
    lab.note(`filling a farkv server and ${peer.name} (${lab.keys.toLocaleString('en')} records of ${valueBytes} B)`);
    const samples = await fill(lab, valueBytes, peer);
    const rest = samples.at(-1);
    if (rest === undefined) continue;
    parts.push(...judge(valueBytes, '', rest));
    const worst = samples.reduce((a, b) =>
      beyond(b.farkvBytes, b, valueBytes) > beyond(a.farkvBytes, a, valueBytes) ? b : a,
    );
    if (growth) parts.push(...judge(valueBytes, ' just after growth', worst));
  }
  return parts;
}

export function memoryPerEntry(lab: Lab, goal: number, growth: boolean): Promise<Part[]> {
  return measureMemory(lab, REDIS, growth, (valueBytes, when, sample) => [
    part(
      `memory an entry, ${valueBytes} B values${when}`,
      atMost(goal, 'B'),
      [beyond(sample.farkvBytes, sample, valueBytes)],
      `${sample.farkvBytes.toLocaleString('en')} B registered for ${sample.entries.toLocaleString('en')} entries`,
    ),
    against(REDIS, valueBytes, when, sample),
  ]);
}

export function memoryAgainstMemcached(lab: Lab): Promise<Part[]> {
  return measureMemory(lab, MEMCACHED, false, (valueBytes, when, sample) => [
    against(MEMCACHED, valueBytes, when, sample),
  ]);
}
