/**
 * What a demonstration shows of copies: one of its servers is killed with kill -9, its shards go on at the others, and
 * every record is read back. Not for: figures of failovers (copies/failover.ts).
 */
import { connect } from '../client/index.js';
import { FarkvError } from '../core/errors.js';
import type { TransportChoice } from '../core/providers.js';
import type { ClusterStatus } from '../server/status.js';
import type { DemoCluster } from './demo-cluster.js';
import { KeyNames } from './ycsb/key-name.js';

export interface AfterKill {
  /** The server that was killed. */
  readonly id: string;
  readonly shards: number;
  /** From the kill until the first of its shards took a change, and until all had. */
  readonly firstMs: number;
  readonly allMs: number;
  /** Records that were read back, and those among them that were not there. */
  readonly records: number;
  readonly missing: number;
}

/** Every record is on as many servers as its tenant's policy wants. */
export function allCopied({ shards }: ClusterStatus): boolean {
  return shards.every(
    ({ state, copies }) => state === 'serving' && (copies === undefined || copies.inSync >= copies.wanted),
  );
}

export interface KillOptions {
  readonly transport: TransportChoice;
  /** How long an operation may wait for the next owner. */
  readonly patienceMs: number;
  readonly signal: AbortSignal;
}

/** Records that are read at a time. */
const PART = 1000;

/** Kills the last server. The records are those that YCSB has loaded. */
export async function killOne(
  cluster: DemoCluster,
  { transport, patienceMs, signal }: KillOptions,
  records: number,
): Promise<AfterKill> {
  const unlessAborted = (): void => {
    if (signal.aborted) throw new FarkvError('ERR_ABORTED', 'interrupted');
  };
  const { id } = cluster.last;
  const names = new KeyNames(false, 1, records);
  await using client = await connect({
    servers: cluster.addresses,
    transport,
    timeoutMs: patienceMs,
    unavailableAfterMs: patienceMs,
    connectTimeoutMs: patienceMs,
    signal,
  });
  const keys = Array.from({ length: records }, (_, i) => names.of(i));
  // Last before the kill: a copy that is late for a while must not be missed then.
  const { shards } = await cluster.until(allCopied);
  const probes = shards.flatMap(({ shard, owner }) =>
    owner === id ? [keys.find((k) => client.shardOf(k) === shard)] : [],
  );
  const values = await Promise.all(
    probes.map(async (key) => ({ key, value: key && (await client.get(key, { signal })) })),
  );
  unlessAborted();
  const beganMs = performance.now();
  await cluster.killLast();
  const tookMs = await Promise.all(
    values.map(async ({ key, value }) => {
      // The same value once more: a change needs the next owner, which a GET under a lease does not.
      if (key && value) await client.put(key, value, { signal });
      return performance.now() - beganMs;
    }),
  );
  let missing = 0;
  for (let at = 0; at < records; at += PART) {
    unlessAborted();
    missing += (await client.getMany(keys.slice(at, at + PART), { signal })).filter(
      (value) => value === undefined,
    ).length;
  }
  return { id, shards: probes.length, firstMs: Math.min(...tookMs), allMs: Math.max(...tookMs), records, missing };
}

export function killText({ id, shards, firstMs, allMs, records, missing }: AfterKill): string {
  const count = (n: number): string => n.toLocaleString('en-US');
  return (
    `kill -9 of ${id}, which owned ${shards} shards: the first of them took a change again after ${firstMs.toFixed(0)} ms, ` +
    `all after ${allMs.toFixed(0)} ms. ${count(records)} records read back, ${count(missing)} missing.\n`
  );
}
