/**
 * For tests in which shards change hands: which keys a server owns, when shards may be taken from it, and changes that
 * such a move may leave open.
 */
import { FarkvError, type BufferValue, type Client } from '../../client/index.js';
import type { Cluster } from './cluster.js';
import { statusOf } from './status.js';

/**
 * Servers from which shards are taken when they are dead. A living one that its machine lets wait for a whole lease is
 * dead to the others too, and a leader that is late for an election starts the wait for leases anew: with leases of a
 * second and elections of 400 ms, machines that compile beside the tests took shards from servers that nobody had
 * touched.
 */
export const QUICK: readonly string[] = ['--lease-ms', '300', '--owner-lease-ms', '5000', '--election-ms', '1500'];
/**
 * The same, and time to do something with a server that is paused before it is taken for dead: to start a command, and
 * to see what has come of it.
 */
export const LASTING: readonly string[] = ['--lease-ms', '300', '--owner-lease-ms', '15000', '--election-ms', '1500'];

/** Keys that this server owns now. Throws when it owns nothing. */
export async function keysOf(
  kv: Client<BufferValue, Buffer>,
  cluster: Cluster,
  server: number,
  count: number,
): Promise<string[]> {
  const { shards } = await statusOf(cluster.server(0).address);
  const { id } = cluster.server(server);
  if (!shards.some((s) => s.owner === id)) throw new Error(`${id} owns no shard`);
  const keys: string[] = [];
  for (let i = 0; keys.length < count; i++) if (shards[kv.shardOf(`key-${i}`)]?.owner === id) keys.push(`key-${i}`);
  return keys;
}

/**
 * A change that was sent to an owner that is gone, or is paused and has lost the shard, is indeterminate; it is made
 * again as a new one.
 */
export async function certainly(change: () => Promise<void>): Promise<void> {
  for (let done = false; !done;) {
    done = await change().then(
      () => true,
      (error: unknown) => {
        if (error instanceof FarkvError && error.code === 'ERR_INDETERMINATE') return false;
        throw error;
      },
    );
  }
}
