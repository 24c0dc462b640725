/**
 * Versions of what the metadata group writes: its log entries and its snapshots.
 *
 *   1  the servers are fixed when the cluster is made; an owner keeps its shards for good
 *   2  servers come and go, owners hold leases, shards are taken from dead owners and moved
 *   3  the cluster has trust domains
 *   4  a shard that moves is copied first
 *
 * A cluster is at one format (MetadataState.formatVersion) and its servers write nothing later, so that servers of two neighbouring
 * versions of farkv work together while an operator replaces one after the other. When all servers say that they know a later one,
 * the leader proposes `raise-format`; there is no way back. Whoever meets what it does not know stops and says so: an entry
 * that is passed over would make this server's metadata another's.
 *
 * Nothing is raised to format 3: a cluster is made with trust domains or has none for good. One that has them says so in its first entry and
 * in all of its snapshots, which no earlier version reads; all others go from format 2 to 4.
 */
import { FarkvError } from '../errors.js';
import type { Command } from './commands.js';
import type { MetadataState } from './state.js';

export const FORMAT_OLDEST = 1;
/** That this version reads. */
export const FORMAT_NEWEST = 4;
/** That a cluster is raised to. */
export const FORMAT_RAISED = 4;
export const FORMAT_TRUST = 3;
/** From which on a shard that moves takes its values along. */
export const FORMAT_COPIES = 4;

const FIRST: ReadonlySet<Command['t']> = new Set(['bootstrap', 'member-join', 'member-leave', 'assign-shards', 'shard-opened', 'shard-layout', 'no-op']);
const FOURTH: ReadonlySet<Command['t']> = new Set(['shard-copy']);

/** What a cluster at this format is raised to next. */
export function formatAfter(formatVersion: number): number {
  return formatVersion < 2 ? formatVersion + 1 : Math.max(FORMAT_COPIES, formatVersion + 1);
}

/** The format that a reader of this command must know. */
export function formatOf(command: Command): number {
  if (command.t === 'bootstrap' && command.trustDomains !== undefined) return FORMAT_TRUST;
  if ((command.t === 'shard-released' && command.copy !== undefined) || (command.t === 'shard-move' && command.lost !== undefined)) return FORMAT_COPIES;
  // One that does not know the format must stop here, not at the first entry that needs it.
  if (command.t === 'raise-format') return command.format;
  return FIRST.has(command.t) ? 1 : FOURTH.has(command.t) ? FORMAT_COPIES : 2;
}

/** The format that a reader of a snapshot of this state must know. */
export function formatOfState({ formatVersion, trustDomains }: Pick<MetadataState, 'formatVersion' | 'trustDomains'>): number {
  return trustDomains.length > 0 ? Math.max(formatVersion, FORMAT_TRUST) : formatVersion;
}

/**
 * Why a command must not be written yet, if so: an earlier version would stop at it, so that reduce.ts refuses it is not enough. What
 * raises the format is written when all know it (leader-policy.ts).
 */
export function tooEarly(command: Command, formatVersion: number): FarkvError | undefined {
  const format = formatOf(command);
  // What makes the cluster is the first that any server reads: one that does not know it does not belong to the cluster.
  if (format <= formatVersion || command.t === 'bootstrap' || (command.t === 'raise-format' && command.format === formatAfter(formatVersion))) return undefined;
  return new FarkvError('ERR_UNSUPPORTED', `the metadata is at format ${formatVersion} until every server of the cluster runs a version of farkv that knows ${format}`);
}

/** Of `what` ("an entry"), met by a server that knows formats up to `known`. */
export function laterVersion(what: string, format: number, known: number, kind = ''): FarkvError {
  return new FarkvError(
    'ERR_PROTOCOL_VERSION',
    `the metadata has ${what} of a later version of farkv (format ${format}${kind === '' ? '' : `, ${kind}`}); this version knows format ${known}: upgrade this server`,
  );
}
