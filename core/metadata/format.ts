/**
 * Versions of what the metadata group writes: its log entries and its snapshots.
 *
 *   1  the servers are fixed when the cluster is made; an owner keeps its shards for good
 *   2  servers come and go, owners hold leases, shards are taken from dead owners and moved
 *
 * A cluster is at one format (MetadataState.formatVersion) and its servers write nothing later, so that servers of two neighbouring
 * versions of farkv work together while an operator replaces one after the other. When all servers say that they know a later one,
 * the leader proposes `raise-format`; there is no way back. Whoever meets what it does not know stops and says so: an entry
 * that is passed over would make this server's metadata another's.
 */
import { FarkvError } from '../errors.js';
import type { Command } from './commands.js';

export const FORMAT_OLDEST = 1;
export const FORMAT_NEWEST = 2;

const FIRST: ReadonlySet<Command['t']> = new Set(['bootstrap', 'member-join', 'member-leave', 'assign-shards', 'shard-opened', 'shard-layout', 'no-op']);

/** The format that a reader of this kind of command must know. */
export function formatOf(kind: Command['t']): number {
  return FIRST.has(kind) ? 1 : 2;
}

/**
 * Why a command must not be written yet, if so: an earlier version would stop at it, so that reduce.ts refuses it is not enough. What
 * raises the format is written when all know it (leader-policy.ts).
 */
export function tooEarly(command: Command, formatVersion: number): FarkvError | undefined {
  const format = formatOf(command.t);
  if (format <= formatVersion || (command.t === 'raise-format' && command.format === formatVersion + 1)) return undefined;
  return new FarkvError('ERR_UNSUPPORTED', `the metadata is at format ${formatVersion} until every server of the cluster runs a version of farkv that knows ${format}`);
}

/** Of `what` ("an entry"), met by a server that knows formats up to `known`. */
export function laterVersion(what: string, format: number, known: number, kind = ''): FarkvError {
  return new FarkvError(
    'ERR_PROTOCOL_VERSION',
    `the metadata has ${what} of a later version of farkv (format ${format}${kind === '' ? '' : `, ${kind}`}); this version knows format ${known}: upgrade this server`,
  );
}
