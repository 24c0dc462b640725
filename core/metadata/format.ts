/**
 * Formats of what the metadata group writes: its log entries and its snapshots:
 *
 *   1  the first
 *
 * A cluster is at one format (MetadataState.formatVersion) and its servers write nothing of a later one. So servers of
 * two neighbouring versions of
 * farkv work together while an operator replaces one after the other. When every server has reported that it knows the
 * next format, the leader proposes `raise-format`; there is no way back. A server that meets an entry or a snapshot of
 * a later format stops and says so: if it skipped the entry, its metadata would differ from the others'.
 *
 * To add a format: raise FORMAT_NEWEST, describe the format above, and let formatOf() name it for each command that it
 * adds.
 */
import { FarkvError } from '../errors.js';
import type { Command } from './commands.js';

/** Of a cluster that is made now. */
export const FORMAT_FIRST = 1;
/** The latest format that this version reads. Clusters are raised to it. */
export const FORMAT_NEWEST = 1;

/** The format that a reader of this command must know. */
export function formatOf(command: Command): number {
  // A server that does not know the next format must stop at the entry that raises it, not at the first entry that
  // needs it.
  return command.t === 'raise-format' ? command.format : FORMAT_FIRST;
}

/**
 * Why a command must not be written yet, if so: servers of an earlier version would stop at it. A refusal by reduce.ts
 * would come too late, since the entry is in the log by then. The command that raises the format is written when all
 * servers know the next one (leader-policy.ts).
 */
export function tooEarly(command: Command, formatVersion: number): FarkvError | undefined {
  const format = formatOf(command);
  // A cluster that is made now has no servers of earlier versions that it would have to wait for.
  if (command.t === 'bootstrap') return undefined;
  if (format <= formatVersion || (command.t === 'raise-format' && format === formatVersion + 1)) return undefined;
  return new FarkvError(
    'ERR_UNSUPPORTED',
    `the metadata is at format ${formatVersion} until every server of the cluster runs a version of farkv that knows ${format}`,
  );
}

/** Of `what` ("an entry"), met by a server that knows formats up to `known`. */
export function laterVersion(what: string, format: number, known: number, kind = ''): FarkvError {
  return new FarkvError(
    'ERR_PROTOCOL_VERSION',
    `the metadata has ${what} of a later version of farkv (format ${format}${kind === '' ? '' : `, ${kind}`}); this version knows format ${known}: upgrade this server`,
  );
}
