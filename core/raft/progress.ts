/**
 * What a leader knows of one member's log, and how it paces what it sends (etcd's progress).
 *
 *   probe      one append at a time until it is known where the logs agree
 *   replicate  appends follow each other without waiting, up to a window
 *   snapshot   the entries it needs are compacted; a snapshot is under way (snapshot.ts) and no append is sent
 *
 * Invariants: match < next; everything up to match is durable at the member; in replicate, next - 1 is the last index
 * sent.
 */
import { Inflights } from './inflights.js';
import type { RaftOptions } from './options.js';
import { SnapshotSender, type Snapshot } from './snapshot.js';

export type ProgressState = 'probe' | 'replicate' | 'snapshot';

export class Progress {
  state: ProgressState = 'probe';
  match: number;
  next: number;
  /** Heard from since the leader last checked that a quorum is alive. */
  active = false;
  /** The newest ReadIndex round that this member acknowledged. */
  round = 0;
  /** In probe: an append is under way; sent again after the next heartbeat is answered. */
  probeSent = false;
  /** In snapshot. */
  sender: SnapshotSender | undefined;
  readonly inflights: Inflights;
  readonly #options: RaftOptions;

  constructor(next: number, match: number, options: RaftOptions) {
    this.next = next;
    this.match = match;
    this.inflights = new Inflights(options.maxInflightMessages, options.maxInflightBytes);
    this.#options = options;
  }

  get paused(): boolean {
    switch (this.state) {
      case 'probe':
        return this.probeSent;
      case 'replicate':
        return this.inflights.full;
      case 'snapshot':
        return true;
    }
  }

  becomeProbe(): void {
    this.#reset('probe');
    this.next = this.match + 1;
  }

  becomeReplicate(): void {
    this.#reset('replicate');
    this.next = this.match + 1;
  }

  becomeSnapshot(snapshot: Snapshot): void {
    this.#reset('snapshot');
    this.sender = new SnapshotSender(snapshot, this.#options.snapshotChunkBytes, this.#options.snapshotWindow);
  }

  /** An append with these entries, the last at lastIndex, was sent. */
  sentEntries(count: number, lastIndex: number, bytes: number): void {
    if (this.state === 'probe') {
      this.probeSent = true;
    } else if (count > 0) {
      this.next = lastIndex + 1;
      this.inflights.add(lastIndex, bytes);
    }
  }

  /** The member's log equals ours up to `index`. Whether that is news. */
  accepted(index: number): boolean {
    if (index <= this.match) return false;
    this.match = index;
    this.next = Math.max(this.next, index + 1);
    this.probeSent = false;
    return true;
  }

  /**
   * The member refused an append at prevIndex `rejected`; the logs can agree at `hint` at most. False when the refusal
   * is a late one, of a message that was overtaken.
   */
  refused(rejected: number, hint: number): boolean {
    if (this.state === 'replicate') {
      if (rejected <= this.match) return false;
      this.next = this.match + 1;
      return true;
    }
    if (this.state === 'snapshot' || this.next - 1 !== rejected) return false;
    this.next = Math.max(Math.min(rejected, hint + 1), this.match + 1);
    this.probeSent = false;
    return true;
  }

  #reset(state: ProgressState): void {
    this.state = state;
    this.probeSent = false;
    this.sender = undefined;
    this.inflights.clear();
  }
}
