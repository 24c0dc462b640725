/**
 * From the records of the log and the newest snapshot to the state that a member starts from. Pure.
 *
 * Invariant of what is written: entries follow each other, or replace the log from their first index on; a snapshot
 * record replaces all.
 */
import type { Entry, Snapshot } from '../../core/raft/index.js';
import { Damage } from './damage.js';
import type { LogRecord } from './record.js';

export interface Replayed {
  /** Those behind the snapshot. */
  readonly entries: readonly Entry[];
  readonly commit: number;
  /** The records end elsewhere than the snapshot: a crash came between the two. A record of the snapshot is due. */
  readonly snapshotRecordMissing: boolean;
}

/** `firstIndex`: the next index of the oldest segment. */
export function replay(firstIndex: number, records: Iterable<LogRecord>, snapshot: Snapshot | undefined): Replayed {
  let base = firstIndex - 1;
  let baseTerm: number | undefined;
  let entries: Entry[] = [];
  let commit = 0;
  for (const record of records) {
    if (record.snapshot !== undefined) {
      base = record.snapshot.index;
      baseTerm = record.snapshot.term;
      entries = [];
    }
    const first = record.entries[0]?.index;
    if (first !== undefined) {
      if (first > base + entries.length + 1) throw new Damage(`the log lacks the entries before ${first}`);
      entries.length = Math.min(entries.length, Math.max(0, first - base - 1));
      for (const entry of record.entries) if (entry.index > base) entries.push(entry);
    }
    commit = Math.max(commit, record.commit);
  }

  const { index, term } = snapshot?.meta ?? { index: 0, term: 0 };
  if (index < base) throw new Damage(`the log begins behind ${base}, and there is no snapshot of it`);
  const termThere = index === base ? (baseTerm ?? term) : entries[index - base - 1]?.term;
  const continues = termThere === term;
  const behind = continues ? entries.slice(index - base) : [];
  return {
    entries: behind,
    commit: Math.min(Math.max(commit, index), index + behind.length),
    snapshotRecordMissing: !continues,
  };
}
