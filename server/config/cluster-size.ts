/** What an operator gave a server, against the size that the cluster was made with, which no later start changes. */
import { FarkvError } from '../../core/errors.js';
import { keepersExpected } from '../../core/metadata/placement.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { formatSize } from '../../core/size.js';
import type { Log } from '../log.js';
import type { ServerSettings } from './settings.js';

/**
 * Says in the log that --shards and --tenants were not followed. Throws ERR_CONFIG where --memory does not hold this
 * server's part of the shards, each of which takes `memoryMin` bytes at least.
 */
export function checkSize(
  { shards, tenants, memoryBytes }: Pick<ServerSettings, 'shards' | 'tenants' | 'memoryBytes'>,
  state: MetadataState,
  memoryMin: number,
  log: Pick<Log, 'info'>,
): void {
  const count = state.shards.length;
  if (count !== tenants.reduce((sum, tenant) => sum + tenant.shards, shards))
    log.info(`the cluster has ${count} shards, as it was made`, { event: 'shard-count-kept', shards: count });
  const least = Math.ceil(count / Math.max(1, keepersExpected(state))) * memoryMin;
  if (memoryBytes >= least) return;
  throw new FarkvError(
    'ERR_CONFIG',
    `--memory: ${formatSize(memoryBytes)} is too little for this server's part of ${count} shards; at least ${formatSize(least)}`,
  );
}
