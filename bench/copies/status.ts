/** Clusters whose records have two copies, as an operator makes and watches them. */
import { withCluster, type ClusterConnection } from '../../server/cli/cluster.js';
import type { ClusterStatus } from '../../server/status.js';
import { copied } from '../../test/support/status.js';

const STATUS_MS = 10_000;
/** A busy machine makes copies slowly. */
export const COPIES_MS = 120_000;

export const asked = <T>(addresses: readonly string[], use: (cluster: ClusterConnection) => Promise<T>): Promise<T> =>
  withCluster({ addresses: [...addresses], timeoutMs: STATUS_MS }, use);

/** Two copies of every shard from now on. */
export async function wantCopies(addresses: readonly string[]): Promise<void> {
  await asked(addresses, (c) =>
    c.call('replication-set', { level: 'replicated', replicas: 2, minInSync: 1, onLoss: 'wait' }),
  );
}

/** A cache that is not moved has no copies. */
function whole({ shards, ...status }: ClusterStatus): boolean {
  const isCache = status.replication.every(({ level }) => level === 'cache');
  if (isCache) return shards.every(({ state, copies }) => state === 'serving' && copies === undefined);
  return copied({ shards, ...status });
}

/** Resolves when every server answers and every copy is in sync, those of caches too. */
export function copiesMade(addresses: readonly string[], waitMs = COPIES_MS): Promise<ClusterStatus> {
  const isWhole = (status: ClusterStatus): boolean =>
    status.leader !== undefined && status.members.every(({ state }) => state === 'up') && whole(status);
  return asked(addresses, (c) => c.until(isWhole, waitMs, 'that all copies are in sync', () => []));
}
