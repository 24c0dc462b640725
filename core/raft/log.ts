/**
 * The log of one member, in memory, from the last compaction on.
 *
 *        compacted       |  applied     commit          stable          last
 *   ---------------------+------*---------*---------------*---------------*
 *                      base     |<------- entries -------->|<- unstable -->|
 *                                                           to be persisted by the driver
 *
 * Invariants: base <= applied <= commit <= last; applied <= stable <= last. Entries up to commit are never truncated.
 * stable may be on either side of commit: a member can learn that an entry is committed before its own disk holds it.
 * Not here: who may append, and files (server/raft-storage).
 */
import { entryBytes, type Entry } from './entry.js';
import { invariant, LostEntriesError, present } from './invariant.js';

export class RaftLog {
  /** entries[i].index === baseIndex + 1 + i */
  #entries: Entry[] = [];
  #baseIndex: number;
  #baseTerm: number;
  #bytes = 0;
  #stable: number;
  #commit: number;
  #applied: number;

  /**
   * A log that begins after (baseIndex, baseTerm), the last entry of a snapshot, or (0, 0). All of it is on disk
   * already.
   */
  constructor(baseIndex: number, baseTerm: number, entries: readonly Entry[]) {
    this.#baseIndex = baseIndex;
    this.#baseTerm = baseTerm;
    this.#commit = baseIndex;
    this.#applied = baseIndex;
    this.#push(entries);
    this.#stable = this.lastIndex;
  }

  get baseIndex(): number {
    return this.#baseIndex;
  }
  get lastIndex(): number {
    return this.#baseIndex + this.#entries.length;
  }
  get lastTerm(): number {
    const last = this.#entries.at(-1);
    return last === undefined ? this.#baseTerm : last.term;
  }
  get stable(): number {
    return this.#stable;
  }
  get commit(): number {
    return this.#commit;
  }
  get applied(): number {
    return this.#applied;
  }
  /** Bytes of all entries held. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The term of the entry at `index`; undefined where it is compacted or not there yet. */
  termAt(index: number): number | undefined {
    if (index === this.#baseIndex) return this.#baseTerm;
    return this.#entries[index - this.#baseIndex - 1]?.term;
  }

  entryAt(index: number): Entry | undefined {
    return this.#entries[index - this.#baseIndex - 1];
  }

  /**
   * Entries from `from` to `to`, both included, up to maxBytes but at least one if there is one. `from` is not
   * compacted.
   */
  slice(from: number, to: number, maxBytes: number): Entry[] {
    invariant(from > this.#baseIndex && to <= this.lastIndex, 'a slice lies in the log');
    const start = from - this.#baseIndex - 1;
    let end = start;
    let bytes = 0;
    while (end <= to - this.#baseIndex - 1) {
      bytes += entryBytes(present(this.#entries[end]));
      if (end > start && bytes > maxBytes) break;
      end++;
    }
    return this.#entries.slice(start, end);
  }

  /** Whether a log that ends in (index, term) is at least as up to date as this one (Raft paper, section 5.4.1). */
  isUpToDate(index: number, term: number): boolean {
    // mutation: raft/length-before-term
    return term > this.lastTerm || (term === this.lastTerm && index >= this.lastIndex);
  }

  /** Appends a leader's new entries behind the last. */
  append(entries: readonly Entry[]): void {
    this.#push(entries);
  }

  /**
   * A follower's append: entries that follow (prevIndex, prevTerm). Undefined when they do not fit this log. Otherwise
   * the index up to which this log now equals the leader's; `truncatedAt` is where entries of another leader had to
   * give way, if any.
   */
  appendAfter(
    prevIndex: number,
    prevTerm: number,
    entries: readonly Entry[],
  ):
    | { readonly lastNew: number; readonly appended: readonly Entry[]; readonly truncatedAt: number | undefined }
    | undefined {
    if (this.termAt(prevIndex) !== prevTerm) return undefined; // mutation: raft/append-unmatched
    const lastNew = prevIndex + entries.length;
    const fresh = entries.findIndex((entry) => this.termAt(entry.index) !== entry.term);
    if (fresh < 0) return { lastNew, appended: [], truncatedAt: undefined };
    const appended = entries.slice(fresh);
    const first = prevIndex + 1 + fresh;
    invariant(first > this.#commit, 'a committed entry is never replaced');
    let truncatedAt: number | undefined;
    if (first <= this.lastIndex) {
      truncatedAt = first;
      this.#truncateFrom(first);
    }
    this.#push(appended);
    return { lastNew, appended, truncatedAt };
  }

  /** Raises the commit index; never lowers it. */
  commitTo(index: number): boolean {
    if (index <= this.#commit) return false;
    if (index > this.lastIndex)
      throw new LostEntriesError(
        'what is committed is in the log; this member has lost entries that it had acknowledged',
      );
    this.#commit = index;
    return true;
  }

  /** The driver's disk holds entries up to (index, term). Ignored where they were truncated meanwhile. */
  stableTo(index: number, term: number): void {
    if (index > this.#stable && this.termAt(index) === term) this.#stable = index;
  }

  appliedTo(index: number): void {
    invariant(
      index >= this.#applied && index <= this.#commit && index <= this.#stable,
      'applied follows commit and the disk',
    );
    this.#applied = index;
  }

  /** Forgets entries up to and including `index`, which a snapshot covers. */
  compactTo(index: number): void {
    if (index <= this.#baseIndex) return;
    invariant(index <= this.#applied, 'only applied entries are compacted');
    this.#baseTerm = present(this.termAt(index));
    const gone = this.#entries.splice(0, index - this.#baseIndex);
    for (const entry of gone) this.#bytes -= entryBytes(entry);
    this.#baseIndex = index;
  }

  /**
   * Replaces the whole log by a snapshot that ends in (index, term). It is stable when the driver has persisted the
   * snapshot.
   */
  restore(index: number, term: number): void {
    invariant(index > this.#commit, 'a snapshot goes forward');
    this.#entries = [];
    this.#bytes = 0;
    this.#baseIndex = index;
    this.#baseTerm = term;
    this.#stable = index;
    this.#commit = index;
    this.#applied = index;
  }

  /**
   * Where this log and one that has `term` at `index` may still agree: the largest index not above `index` whose term
   * is not above `term`. Both sides use it to skip whole terms of a conflict in one exchange.
   */
  lastIndexNotAfter(index: number, term: number): { readonly index: number; readonly term: number } {
    let low = this.#baseIndex;
    let high = Math.max(low, Math.min(index, this.lastIndex));
    // Terms do not fall. Other members choose what is asked for, so the log is not walked through.
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (present(this.termAt(middle)) <= term) low = middle;
      else high = middle - 1;
    }
    return { index: low, term: present(this.termAt(low)) };
  }

  #push(entries: readonly Entry[]): void {
    for (const entry of entries) {
      invariant(
        entry.index === this.lastIndex + 1 && entry.term >= this.lastTerm,
        'entries follow each other and terms do not fall',
      );
      this.#entries.push(entry);
      this.#bytes += entryBytes(entry);
    }
  }

  #truncateFrom(index: number): void {
    const gone = this.#entries.splice(index - this.#baseIndex - 1);
    for (const entry of gone) this.#bytes -= entryBytes(entry);
    if (this.#stable >= index) this.#stable = index - 1; // mutation: raft/truncated-stable
  }
}
