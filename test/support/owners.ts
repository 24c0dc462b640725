/** For tests in which shards change hands: which keys a server owns, when shards may be taken from it, and changes that such a move may leave open. */
import { FORMAT_RAISED } from '../../core/metadata/format.js';
import { FarkvError, type BufferValue, type Client } from '../../client/index.js';
import type { Cluster } from './cluster.js';
import { statusOf } from './status.js';

/** Servers whose leases, and so their shards' moves, take a second and not several. */
export const QUICK: readonly string[] = ['--lease-ms', '300', '--owner-lease-ms', '1000', '--election-ms', '400'];

/** Keys that this server owns now. */
export async function keysOf(kv: Client<BufferValue, Buffer>, cluster: Cluster, server: number, count: number): Promise<string[]> {
  const { shards } = await statusOf(cluster.server(0).address);
  const keys: string[] = [];
  for (let i = 0; keys.length < count; i++) if (shards[kv.shardOf(`key-${i}`)]?.owner === cluster.server(server).id) keys.push(`key-${i}`);
  return keys;
}

/** Waits until the cluster has raised its format: before that nothing is taken from anybody, and what moves comes up empty. */
export async function raised(cluster: Cluster): Promise<void> {
  while ((await statusOf(cluster.server(0).address)).formatVersion < FORMAT_RAISED);
}

/** A change that was sent to an owner that is gone, or is paused and has lost the shard, is indeterminate; it is made again as a new one. */
export async function certainly(change: () => Promise<void>): Promise<void> {
  for (let done = false; !done;) {
    done = await change().then(() => true, (error: unknown) => {
      if (error instanceof FarkvError && error.code === 'ERR_INDETERMINATE') return false;
      throw error;
    });
  }
}
