/**
 * Stores for as long as one row takes, loaded with the same records: farkv as a row wants it, and stores that keep each
 * record twice, on two servers each. Not for: stores that several rows share (stores.ts).
 */
import { Redis } from 'ioredis';
import { connect } from '../../client/index.js';
import { asked, copiesMade, COPIES_MS, wantCopies } from '../copies/status.js';
import { DemoCluster, ONE_COPY } from '../demo-cluster.js';
import type { Lab } from './lab.js';
import { startRedis } from './peers.js';
import { inParts, keyOf, loadRedis, memoryFor, openRedis, valueOf, type FarkvClient } from './stores.js';

export const VALUE_BYTES = 100;
export const SERVERS = 2;

export interface OpenFarkv {
  readonly cluster: DemoCluster;
  readonly client: FarkvClient;
}

/** `undo` is called for all that was opened, the last first, whatever came of `use`. */
export async function withStores<T>(use: (undo: (f: () => Promise<unknown>) => void) => Promise<T>): Promise<T> {
  const stops: (() => Promise<unknown>)[] = [];
  try {
    return await use((f) => void stops.push(f));
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

/** Registered bytes of all tables of all servers, copies among them. */
export function registeredBytes(cluster: DemoCluster): Promise<number> {
  return asked(cluster.addresses, async (c) => {
    const { members } = await c.status();
    return members
      .flatMap(({ node }) => node?.dataPlane?.shards ?? [])
      .reduce((sum, { indexBytes, heapBytes }) => sum + indexBytes + heapBytes, 0);
  });
}

export interface FarkvOptions {
  readonly servers: number;
  /** Of each value. */
  readonly valueBytes: number;
  /** More options of each server. */
  readonly options: readonly string[];
  /** Where there are to be two copies of each record. */
  readonly copied?: (addresses: readonly string[]) => Promise<unknown>;
}

/** farkv whose clients and links use this transport alone. */
export async function openFarkv(
  lab: Lab,
  transport: 'tcp' | 'shm',
  { servers, valueBytes, options, copied }: FarkvOptions,
  undo: (f: () => Promise<unknown>) => void,
): Promise<OpenFarkv> {
  lab.note(
    `starting farkv over ${transport}, ${options.join(' ')} (${lab.keys.toLocaleString('en')} records of ${valueBytes} B)`,
  );
  const copies = copied === undefined ? 1 : 2;
  const memory = `${Math.ceil((copies * memoryFor(lab.keys, valueBytes)) / Math.min(servers, copies))}b`;
  // shm alone is not offered: it reaches who has the token of a connection, which tcp brings.
  const offered = transport === 'tcp' ? ['--transport', 'tcp'] : [];
  const cluster = await DemoCluster.start(servers, memory, lab.signal, [...offered, ...options]);
  undo(() => cluster.stop());
  await copied?.(cluster.addresses);
  const client = await connect({ servers: cluster.addresses, transport, strict: true });
  undo(() => client.close());
  const value = valueOf(valueBytes);
  await inParts(lab.keys, lab.signal, (part) => client.putMany(part.map((i) => ({ key: keyOf(i), value }))));
  if (copies === 2) await copiesMade(cluster.addresses);
  return { cluster, client };
}

/** Two servers with one or two copies of each record. */
export function openCopied(
  lab: Lab,
  copies: 1 | 2,
  transport: 'tcp' | 'shm',
  undo: (f: () => Promise<unknown>) => void,
): Promise<OpenFarkv> {
  const twice = async (addresses: readonly string[]): Promise<void> => {
    await wantCopies(addresses);
    await copiesMade(addresses);
  };
  return openFarkv(
    lab,
    transport,
    { servers: SERVERS, valueBytes: VALUE_BYTES, options: ONE_COPY, ...(copies === 2 ? { copied: twice } : {}) },
    undo,
  );
}

/** Redis and one replica of it, which follows. */
export async function openCopiedRedis(lab: Lab, undo: (f: () => Promise<unknown>) => void): Promise<Redis> {
  lab.note(`starting redis-server and a replica (${lab.keys.toLocaleString('en')} records)`);
  const { peer, client } = await openRedis();
  undo(() => peer.stop());
  undo(() => {
    client.disconnect();
    return Promise.resolve();
  });
  const replica = await startRedis({ replicaOf: peer.port });
  undo(() => replica.stop());
  const value = valueOf(VALUE_BYTES);
  await inParts(lab.keys, lab.signal, (part) => loadRedis(client, part, value));
  // A replica that is being made counts only when it has everything.
  if ((await client.wait(1, COPIES_MS)) < 1) throw new Error('the replica of redis-server does not follow it');
  return client;
}
