/** What an operator gave a server, against what the cluster is made with, which no later start changes. */
import { FarkvError } from '../../core/errors.js';
import { keepersExpected } from '../../core/metadata/placement.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { formatSize } from '../../core/size.js';
import type { Log } from '../log.js';
import type { ServerSettings } from './settings.js';

/**
 * For one of the first servers, before there is a cluster, which keeps its level and shards: throws ERR_CONFIG where what
 * it would make cannot do with the other options. Later starts are checked against the cluster.
 */
export function checkFirstStart(
  { shards, tenants, memoryBytes, peers, level, syncMs }: FirstSettings,
  memoryMin: number,
): void {
  if (syncMs > 0 && level !== 'durable')
    throw new FarkvError(
      'ERR_CONFIG',
      `--sync: it is for values on disks, and this start would make a cluster of level ${level}: give --level durable, too, or leave it out`,
    );
  checkMemory(memoryBytes, sum(shards, tenants), peers.length, memoryMin);
}
type FirstSettings = Pick<ServerSettings, 'shards' | 'tenants' | 'memoryBytes' | 'peers' | 'level' | 'syncMs'>;

const sum = (shards: number, tenants: ServerSettings['tenants']): number =>
  tenants.reduce((all, tenant) => all + tenant.shards, shards);

/** That it holds a server's part of the shards, each of which takes `memoryMin` bytes at least. */
function checkMemory(memoryBytes: number, count: number, servers: number, memoryMin: number): void {
  const least = Math.ceil(count / Math.max(1, servers)) * memoryMin;
  if (memoryBytes >= least) return;
  throw new FarkvError(
    'ERR_CONFIG',
    `--memory: ${formatSize(memoryBytes)} is too little for this server's part of ${count} shards; at least ${formatSize(least)}`,
  );
}

/**
 * Says in the log that --shards and --tenants were not followed. Throws ERR_CONFIG where --memory is too little.
 */
export function checkSize(
  { shards, tenants, memoryBytes }: Pick<ServerSettings, 'shards' | 'tenants' | 'memoryBytes'>,
  state: MetadataState,
  memoryMin: number,
  log: Pick<Log, 'info'>,
): void {
  const count = state.shards.length;
  if (count !== sum(shards, tenants))
    log.info(`the cluster has ${count} shards, as it was made`, { event: 'shard-count-kept', shards: count });
  checkMemory(memoryBytes, count, keepersExpected(state), memoryMin);
}
