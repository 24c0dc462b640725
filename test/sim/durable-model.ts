/**
 * What a member's disk must hold, kept beside the real storage in the simplest form: what persist() was given and
 * returned 'done' for. After every restart the storage must have restored exactly this, or this and the one batch that
 * a crash cut short.
 */
import type { Entry, HardState, Ready, RestoredState, Snapshot } from '../../core/raft/index.js';

type Batch = Pick<Ready, 'hardState' | 'snapshot' | 'entries'>;

export class DurableModel {
  term = 0;
  vote = 0;
  snapshotIndex = 0;
  snapshotTerm = 0;
  /** Behind the snapshot. */
  entries: Entry[] = [];

  constructor(restored?: RestoredState) {
    if (restored !== undefined) this.#become(restored);
  }

  get lastIndex(): number {
    return this.snapshotIndex + this.entries.length;
  }

  /** Whether the entry (index, term) is on this disk, in the log or covered by the snapshot. */
  has(index: number, term: number): boolean {
    return index <= this.snapshotIndex || this.entries[index - this.snapshotIndex - 1]?.term === term;
  }

  persisted(batch: Batch): void {
    this.votePersisted(batch.hardState);
    if (batch.snapshot !== undefined) this.#reset(batch.snapshot.meta.index, batch.snapshot.meta.term, []);
    const first = batch.entries[0];
    if (first === undefined) return;
    this.entries.length = Math.min(this.entries.length, first.index - this.snapshotIndex - 1);
    for (const entry of batch.entries) this.entries.push(entry);
  }

  votePersisted(hardState: HardState | undefined): void {
    if (hardState === undefined) return;
    this.term = hardState.term;
    this.vote = hardState.vote;
  }

  snapshotSaved({ meta }: Snapshot): void {
    if (meta.index <= this.snapshotIndex) return;
    this.#reset(meta.index, meta.term, this.entries.slice(meta.index - this.snapshotIndex));
  }

  /**
   * Why `restored` is not what this disk may hold, given the batch and the snapshot of its own that a crash
   * interrupted. When it is, the model becomes what was restored, since that is durable by now.
   */
  restart(restored: RestoredState, batch: Batch | undefined, own: Snapshot | undefined): string | undefined {
    const before = this.#copy();
    const candidates = [before];
    if (batch !== undefined) {
      const voted = this.#copy();
      voted.votePersisted(batch.hardState);
      candidates.push(voted);
      if (batch.snapshot !== undefined) {
        // The snapshot's file without its record in the log.
        const filed = voted.#copy();
        filed.#take(batch.snapshot);
        candidates.push(filed);
      }
      const whole = this.#copy();
      whole.persisted(batch);
      candidates.push(whole);
    }
    if (own !== undefined) {
      const saved = this.#copy();
      saved.snapshotSaved(own);
      candidates.push(saved);
    }
    const found = new DurableModel(restored);
    if (!candidates.some((candidate) => candidate.#equals(found))) {
      return `restored ${found.describe()}, but ${candidates.map((c) => c.describe()).join(' or ')} was persisted`;
    }
    this.#become(restored);
    return undefined;
  }

  describe(): string {
    const lastTerm = this.entries.at(-1)?.term ?? this.snapshotTerm;
    const snapshot = `${this.snapshotIndex}/${this.snapshotTerm}`;
    return `term ${this.term} vote ${this.vote} snapshot ${snapshot} log to ${this.lastIndex}/${lastTerm}`;
  }

  #take({ meta }: Snapshot): void {
    const kept = this.has(meta.index, meta.term) ? this.entries.slice(meta.index - this.snapshotIndex) : [];
    this.#reset(meta.index, meta.term, kept);
  }

  #become({ hardState, snapshot, entries }: RestoredState): void {
    this.votePersisted(hardState);
    this.#reset(snapshot?.meta.index ?? 0, snapshot?.meta.term ?? 0, [...entries]);
  }

  #reset(index: number, term: number, entries: Entry[]): void {
    this.snapshotIndex = index;
    this.snapshotTerm = term;
    this.entries = entries;
  }

  #copy(): DurableModel {
    const copy = new DurableModel();
    copy.term = this.term;
    copy.vote = this.vote;
    copy.#reset(this.snapshotIndex, this.snapshotTerm, [...this.entries]);
    return copy;
  }

  #equals(other: DurableModel): boolean {
    return (
      this.term === other.term &&
      this.vote === other.vote &&
      this.snapshotIndex === other.snapshotIndex &&
      this.snapshotTerm === other.snapshotTerm &&
      this.entries.length === other.entries.length &&
      this.entries.every((entry, i) => sameEntry(entry, other.entries[i]!))
    );
  }
}

export function sameEntry(a: Entry, b: Entry): boolean {
  return a.index === b.index && a.term === b.term && a.type === b.type && sameBytes(a.data, b.data);
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
