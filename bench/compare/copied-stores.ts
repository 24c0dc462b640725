/**
 * Stores that keep each record twice, and farkv with one copy beside them: two servers each, loaded with the same
 * records, and for as long as one row takes. Not for: stores that several rows share (stores.ts).
 */
import { Redis } from 'ioredis';
import { connect } from '../../client/index.js';
import { asked, copiesMade, COPIES_MS, wantCopies } from '../copies/status.js';
import { DemoCluster } from '../demo-cluster.js';
import type { Lab } from './lab.js';
import { startRedis } from './peers.js';
import { inParts, keyOf, loadRedis, memoryFor, openRedis, TCP_SPIN_US, valueOf, type FarkvClient } from './stores.js';

export const VALUE_BYTES = 100;
export const SERVERS = 2;

export interface CopiedFarkv {
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

/** farkv whose clients and links use this transport alone. */
export async function openCopied(
  lab: Lab,
  copies: 1 | 2,
  transport: 'tcp' | 'shm',
  undo: (f: () => Promise<unknown>) => void,
): Promise<CopiedFarkv> {
  lab.note(
    `starting farkv over ${transport}, ${copies === 1 ? 'one copy' : 'two copies'} (${lab.keys.toLocaleString('en')} records)`,
  );
  const memory = `${Math.ceil((2 * memoryFor(lab.keys, VALUE_BYTES)) / SERVERS)}b`;
  // shm alone is not offered: it reaches who has the token of a connection, which tcp brings.
  const offered = transport === 'tcp' ? ['--transport', 'tcp'] : [];
  const cluster = await DemoCluster.start(SERVERS, memory, lab.signal, offered);
  undo(() => cluster.stop());
  if (copies === 2) {
    await wantCopies(cluster.addresses);
    await copiesMade(cluster.addresses);
  }
  const client = await connect({
    servers: cluster.addresses,
    transport,
    strict: true,
    ...(transport === 'tcp' ? { getSpinUs: TCP_SPIN_US } : {}),
  });
  undo(() => client.close());
  const value = valueOf(VALUE_BYTES);
  await inParts(lab.keys, lab.signal, (part) => client.putMany(part.map((i) => ({ key: keyOf(i), value }))));
  if (copies === 2) await copiesMade(cluster.addresses);
  return { cluster, client };
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
  const replica = await startRedis(undefined, peer.port);
  undo(() => replica.stop());
  const value = valueOf(VALUE_BYTES);
  await inParts(lab.keys, lab.signal, (part) => loadRedis(client, part, value));
  // A replica that is being made counts only when it has everything.
  if ((await client.wait(1, COPIES_MS)) < 1) throw new Error('the replica of redis-server does not follow it');
  return client;
}
