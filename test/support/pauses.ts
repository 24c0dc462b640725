/**
 * Servers that are stopped together, the metadata leader among them, and go on: every value must be there, under the
 * same epochs.
 */
import type { ExecutionContext } from 'ava';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type BufferValue, type Client } from '../../client/index.js';
import { Cluster } from './cluster.js';
import { leaderOf, statusOf, statusWhen, whole } from './status.js';

/** Longer than a busy machine lets a server wait that is not stopped. */
const LEASE_MS = 3000;
const ARGS = ['--lease-ms', '300', '--owner-lease-ms', String(LEASE_MS), '--election-ms', '1500'];
const KEYS = 120;
const valueOf = (key: string): string => `value of ${key}`;

/** A client, and the keys that it has put: some in each shard. */
export async function written(
  t: ExecutionContext,
  cluster: Cluster,
  transport: 'shm' | 'tcp',
): Promise<{ readonly kv: Client<BufferValue, Buffer>; readonly keys: readonly string[] }> {
  const kv = await connect({
    servers: cluster.addresses,
    transport,
    strict: true,
    unavailableAfterMs: Infinity,
    timeoutMs: 120_000,
  });
  t.teardown(() => kv.close());
  const keys = Array.from({ length: KEYS }, (_, i) => `key-${i}`);
  await kv.putMany(keys.map((key) => ({ key, value: valueOf(key) })));
  return { kv, keys };
}

/** Owner and epoch of each shard. */
async function placesOf(address: string): Promise<string[]> {
  const { shards } = await statusOf(address);
  return shards.map((s) => `${s.shard} ${s.owner ?? ''} ${s.epoch}`);
}

export interface Pause {
  readonly transport: 'shm' | 'tcp';
  /** Of three servers, beginning with the leader. */
  readonly stopped: 2 | 3;
  /** How long; default: until the leases are over. */
  readonly stopMs?: number;
}

export async function losesNothing(t: ExecutionContext, { transport, stopped, stopMs }: Pause): Promise<void> {
  const cluster = await Cluster.start(t, { servers: 3, level: 'cache', shards: 6, args: ARGS });
  const { kv, keys } = await written(t, cluster, transport);
  const leader = await leaderOf(cluster);
  const last = cluster.server((leader + 2) % 3);
  const { term } = await statusWhen(last.address, whole);
  const before = await placesOf(last.address);
  const together = [0, 1, 2].slice(0, stopped).map((n) => cluster.server((leader + n) % 3));

  for (const server of together) server.signal('SIGSTOP');
  // The fault is a length of time. Where a server runs on, it says when its lease is over.
  if (stopMs !== undefined || stopped === 3) await sleep(stopMs ?? 1.3 * LEASE_MS);
  else await last.said('has no lease from the metadata group');
  for (const server of together) server.signal('SIGCONT');

  t.deepEqual((await kv.getMany(keys)).map(String), keys.map(valueOf));
  const after = await statusWhen(last.address, whole);
  t.deepEqual(await placesOf(last.address), before);
  // With another term the leader has changed, and its grace has kept the values.
  t.log(`term ${term}, then ${after.term}`);
  // Owners take changes again.
  await kv.putMany(keys.map((key) => ({ key, value: 'new' })));
  t.deepEqual(
    (await kv.getMany(keys)).map(String),
    keys.map(() => 'new'),
  );
}
