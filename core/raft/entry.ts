/**
 * What the log is made of, and the three numbers that must survive a crash with it.
 *
 * Terms, indexes and member numbers are safe integers; the first entry has index 1, and term 0 is before any election.
 */

/** The values are written to disk and sent to peers: never renumber them. */
export const EntryType = {
  /**
   * `data` is for the state machine. A leader's first entry in its term is Normal with no data and means nothing to it.
   */
  Normal: 0,
  /** `data` is an encoded Configuration (configuration.ts), which takes effect when the entry is appended. */
  Config: 1,
} as const;
export type EntryType = (typeof EntryType)[keyof typeof EntryType];

export interface Entry {
  readonly index: number;
  readonly term: number;
  readonly type: EntryType;
  /** Never changed once it is in an entry. */
  readonly data: Uint8Array;
}

/** Invariant on disk: term never falls, and vote changes only from 0 within a term. */
export interface HardState {
  readonly term: number;
  /** Whom this member voted for in `term`; 0: nobody yet. */
  readonly vote: number;
  /** A lower bound: a restarted member may know less than it did, never more than it had. */
  readonly commit: number;
}

export const NO_BYTES = new Uint8Array(0);

/** What an entry costs in memory beyond its data; counted so that many empty entries are bounded too. */
const ENTRY_OVERHEAD = 64;

export function entryBytes(entry: Entry): number {
  return entry.data.length + ENTRY_OVERHEAD;
}

export function entriesBytes(entries: readonly Entry[]): number {
  let bytes = 0;
  for (const entry of entries) bytes += entryBytes(entry);
  return bytes;
}
