/**
 * RaftNode: what a driver uses. Messages, ticks and proposals go in; Ready tells what to do because of them. The
 * contract between the two is in index.ts. No method blocks, and none may be called from within another.
 */
import { ownLogIsDurable } from './acknowledgement.js';
import type { ConfigChange } from './config-change.js';
import type { Configuration } from './configuration.js';
import { EntryType, type Entry, type HardState } from './entry.js';
import { campaign, leaderGone, ownVoteIsDurable, tick } from './election.js';
import { invariant, present } from './invariant.js';
import {
  proposalRefusal,
  proposeChange,
  transferLeadership,
  type ChangeRefusal,
  type ProposalRefusal,
  type Proposed,
  type TransferRefusal,
} from './membership.js';
import type { RaftMessage } from './messages.js';
import { completeOptions, type RaftSettings } from './options.js';
import { Raft, type RestoredState, type Role } from './raft.js';
import { answerReads, requestRead, roundIsDue, type ReadRefusal } from './reads.js';
import type { RaftStatus, Ready } from './ready.js';
import { appendEntry, broadcastAppend, broadcastHeartbeat } from './sending.js';
import type { Snapshot, SnapshotMeta } from './snapshot.js';
import { step } from './step.js';

export class RaftNode {
  readonly #raft: Raft;
  /** What is on disk. */
  #persisted: HardState;
  /** Behind the log's own while a snapshot waits to be given to the state machine. */
  #appliedIndex: number;
  #outstanding: Ready | undefined;

  constructor(settings: RaftSettings, restored: RestoredState) {
    this.#raft = new Raft(completeOptions(settings), restored);
    this.#persisted = restored.hardState;
    this.#appliedIndex = this.#raft.log.applied;
  }

  get id(): number {
    return this.#raft.id;
  }
  get role(): Role {
    return this.#raft.role;
  }
  get term(): number {
    return this.#raft.term;
  }
  get leader(): number {
    return this.#raft.leader;
  }
  get config(): Configuration {
    return this.#raft.config;
  }
  get lastIndex(): number {
    return this.#raft.log.lastIndex;
  }
  get commit(): number {
    return this.#raft.log.commit;
  }
  /** Up to where the driver's state machine is, as far as advance() told. */
  get applied(): number {
    return this.#appliedIndex;
  }
  /** Bytes of the log that is held in memory: what compact() makes smaller. */
  get logBytes(): number {
    return this.#raft.log.bytes;
  }
  get storageFull(): boolean {
    return this.#raft.storageFull;
  }

  // ---------------------------------------------------------------- input

  /**
   * A message that went through checkRaftMessage and is for this member. Throws ImplausibleMessage, and takes nothing of
   * it, when its sender breaks the rules of Raft.
   */
  step(message: RaftMessage): void {
    step(this.#raft, message);
  }

  tick(): void {
    tick(this.#raft);
  }

  /** A hint that the member `id` has ended, true or false: if it led, this member need not wait until it misses it. */
  leaderGone(id: number): void {
    leaderGone(this.#raft, id);
  }

  /** Campaigns now, without waiting for the election time-out; for a group of one, and for tests. */
  campaign(): void {
    if (this.#raft.role !== 'leader' && this.#raft.promotable) campaign(this.#raft, 'pre-vote', false);
  }

  /**
   * Appends an entry at the leader. That it was accepted says nothing yet: it has taken effect when an entry with this
   * index and this term is in `committed`; if another entry is at that index, it never will.
   */
  propose(data: Uint8Array): Proposed<ProposalRefusal> {
    const raft = this.#raft;
    invariant(data.length > 0, "an entry without data is a leader's own");
    const over = raft.uncommittedBytes > 0 && raft.uncommittedBytes + data.length > raft.options.maxUncommittedBytes;
    const reason = proposalRefusal(raft) ?? (over ? 'busy' : undefined);
    if (reason !== undefined) return { ok: false, reason };
    const entry = appendEntry(raft, EntryType.Normal, data);
    this.#proposed = true;
    return { ok: true, index: entry.index, term: entry.term };
  }

  /** Appends the next configuration at the leader; a joint one is left by itself. */
  proposeChange(change: ConfigChange): Proposed<ChangeRefusal> {
    return proposeChange(this.#raft, change);
  }

  /** A linearizable read. `undefined`: accepted; then `ctx` comes in exactly one of readStates and abortedReads. */
  readIndex(ctx: number): ReadRefusal | undefined {
    return requestRead(this.#raft, ctx);
  }

  transferLeadership(to: number): TransferRefusal | undefined {
    return transferLeadership(this.#raft, to);
  }

  // ---------------------------------------------------------------- output

  hasReady(): boolean {
    const raft = this.#raft;
    if (this.#outstanding !== undefined) return false;
    return (
      this.#proposed ||
      raft.outbox.length > 0 ||
      this.#hardStateChanged() ||
      this.#snapshotDue() !== undefined ||
      (raft.log.lastIndex > raft.log.stable && !raft.storageFull) ||
      this.#committable() > raft.log.applied ||
      raft.reads.states.length > 0 ||
      raft.reads.aborted.length > 0 ||
      roundIsDue(raft)
    );
  }

  /** Takes what is to be done. The next call comes after advance() or storageRefused(). */
  ready(): Ready {
    invariant(this.#outstanding === undefined, 'one Ready at a time');
    const raft = this.#raft;
    const { log, reads } = raft;
    // Proposals and reads of one round through the driver's loop share their messages.
    if (this.#proposed && raft.role === 'leader') broadcastAppend(raft);
    this.#proposed = false;
    if (roundIsDue(raft)) {
      reads.round++;
      broadcastHeartbeat(raft);
      answerReads(raft);
    }
    const hardState = { term: raft.term, vote: raft.vote, commit: log.commit }; // mutation: raft/vote-not-stored
    const voted = hardState.term !== this.#persisted.term || hardState.vote !== this.#persisted.vote;
    const entries =
      log.lastIndex > log.stable && !raft.storageFull ? log.slice(log.stable + 1, log.lastIndex, Infinity) : [];
    const snapshot = this.#snapshotDue();
    const end = this.#committable();
    // mutation: raft/acknowledged-unsynced
    const isEarly = ({ type }: RaftMessage): boolean => type === 'append' && !voted;
    const ready: Ready = {
      hardState: this.#hardStateChanged() ? hardState : undefined,
      snapshot,
      entries,
      mustSync: voted || entries.length > 0 || snapshot !== undefined, // mutation: raft/vote-unsynced
      messages: raft.outbox.filter((message) => !isEarly(message)),
      early: raft.outbox.filter(isEarly),
      committed: end > log.applied ? log.slice(log.applied + 1, end, raft.options.maxCommittedBytes) : [],
      readStates: reads.states,
      abortedReads: reads.aborted,
    };
    raft.outbox = [];
    raft.cameNearer = false;
    reads.states = [];
    reads.aborted = [];
    this.#outstanding = ready;
    return ready;
  }

  /** All of the outstanding Ready is done: persisted, sent, applied. */
  advance(): void {
    const ready = this.#takeOutstanding();
    const raft = this.#raft;
    this.#hardStatePersisted(ready.hardState);
    if (ready.snapshot !== undefined) {
      raft.snapshot = ready.snapshot;
      if (raft.pendingSnapshot === ready.snapshot) raft.pendingSnapshot = undefined;
      this.#appliedIndex = ready.snapshot.meta.index;
    }
    const last = ready.entries.at(-1);
    if (last !== undefined) raft.log.stableTo(last.index, last.term);
    this.#applied(ready);
    if (raft.role === 'leader') ownLogIsDurable(raft);
  }

  /**
   * In place of advance(), when the disk had no room for the outstanding Ready's entries or snapshot. The driver has
   * persisted its hardState (which needs no room, server/raft-storage), has sent none of its messages and has done the
   * rest. From now on this member takes no proposals and no entries, and claims nothing that is not on its disk; it
   * still votes, leads, and answers reads.
   */
  storageRefused(): void {
    const ready = this.#takeOutstanding();
    const raft = this.#raft;
    this.#hardStatePersisted(ready.hardState);
    raft.storageFull = true;
    // Accepts that were made since then claim entries that did not get to the disk.
    // mutation: raft/acknowledged-refused
    raft.outbox = raft.outbox.filter((message) => message.type !== 'append-accept');
    this.#applied(ready);
  }

  /** There may be room again: the next Ready offers what is not on disk, and proposals are taken. */
  retryStorage(): void {
    this.#raft.storageFull = false;
  }

  // ---------------------------------------------------------------- snapshots

  /**
   * What a snapshot of the state machine stands for, which has applied all up to this.applied. undefined: there is no
   * use in one now, since it would be empty, or a newer one has come in from the leader and waits in the next Ready.
   */
  snapshotMeta(): SnapshotMeta | undefined {
    const { log } = this.#raft;
    const index = this.#appliedIndex;
    if (index === 0 || index < log.baseIndex) return undefined;
    // mutation: raft/snapshot-config
    return { index, term: present(log.termAt(index)), config: this.#raft.configAt(index) };
  }

  /**
   * The driver has made a snapshot and its disk holds it: entries that it covers may go, but for the newest
   * `keepEntries` of them, which spare followers that are a little behind a snapshot.
   */
  compact(snapshot: Snapshot, keepEntries: number): void {
    const raft = this.#raft;
    if (snapshot.meta.index <= (raft.snapshot?.meta.index ?? 0)) return;
    invariant(snapshot.meta.index <= this.#appliedIndex, 'a snapshot is of what is applied');
    raft.snapshot = snapshot;
    raft.compactTo(snapshot.meta.index - keepEntries);
  }

  /**
   * The term of the entry at `index`; undefined where it is compacted or does not exist. For the driver's waiting
   * proposals.
   */
  termAt(index: number): number | undefined {
    return this.#raft.log.termAt(index);
  }

  /** The entry at `index`; undefined where it is compacted or does not exist. */
  entryAt(index: number): Entry | undefined {
    return this.#raft.log.entryAt(index);
  }

  status(): RaftStatus {
    const raft = this.#raft;
    const { log } = raft;
    return {
      id: raft.id,
      role: raft.role,
      term: raft.term,
      leader: raft.leader,
      commit: log.commit,
      applied: this.#appliedIndex,
      firstIndex: log.baseIndex + 1,
      lastIndex: log.lastIndex,
      logBytes: log.bytes,
      config: raft.config,
      configCommitted: raft.configIndex <= log.commit,
      transferee: raft.transferee,
      storageFull: raft.storageFull,
      progress: [...raft.progress].map(([id, { state, match, active }]) => ({ id, state, match, active })),
    };
  }

  // ---------------------------------------------------------------- inside

  /** Proposals were appended since the last Ready and have not been sent. */
  #proposed = false;

  #takeOutstanding(): Ready {
    const ready = this.#outstanding;
    invariant(ready !== undefined, 'only a Ready that was taken is finished');
    this.#outstanding = undefined;
    return ready;
  }

  #hardStatePersisted(hardState: HardState | undefined): void {
    if (hardState === undefined) return;
    this.#persisted = hardState;
    const { id, term, vote } = this.#raft;
    if (hardState.vote === id && vote === id && hardState.term === term) ownVoteIsDurable(this.#raft);
  }

  #applied(ready: Ready): void {
    const last = ready.committed.at(-1);
    if (last === undefined) return;
    this.#appliedIndex = last.index;
    // A snapshot that came in meanwhile has gone further.
    if (last.index > this.#raft.log.applied) this.#raft.log.appliedTo(last.index);
  }

  #hardStateChanged(): boolean {
    const { term, vote, log, storageFull } = this.#raft;
    const { term: oldTerm, vote: oldVote, commit } = this.#persisted;
    return term !== oldTerm || vote !== oldVote || (log.commit !== commit && !storageFull);
  }

  #snapshotDue(): Snapshot | undefined {
    return this.#raft.storageFull ? undefined : this.#raft.pendingSnapshot;
  }

  /** Up to where entries may be applied: committed, and on this member's disk. */
  #committable(): number {
    const { log, pendingSnapshot } = this.#raft;
    return pendingSnapshot === undefined ? Math.min(log.commit, log.stable) : log.applied;
  }
}
