/**
 * The state of one member, and the few changes of it that everything else is built from. What happens on a message or a
 * tick is in election, sending, acknowledgement, follower, membership and reads, as functions over this state; node.ts
 * is what a driver uses.
 *
 * Invariants: term never falls; vote changes only from 0 within a term; a leader never truncates its log; the
 * configuration in force is the newest in the log, committed or not.
 */
import { decodeConfiguration, isVoter, membersOf, NO_CONFIGURATION, type Configuration } from './configuration.js';
import { EntryType, type Entry, type HardState } from './entry.js';
import { invariant, present } from './invariant.js';
import { RaftLog } from './log.js';
import type { RaftMessage } from './messages.js';
import type { RaftOptions } from './options.js';
import { Progress } from './progress.js';
import { ReadQueue } from './reads.js';
import { SnapshotReceiver, type Snapshot } from './snapshot.js';

export type Role = 'follower' | 'pre-candidate' | 'candidate' | 'leader';

/** What the driver read from its storage. A new member has term 0, no snapshot and no entries; see bootstrap.ts. */
export interface RestoredState {
  readonly hardState: HardState;
  readonly snapshot?: Snapshot | undefined;
  /** Those that follow the snapshot. */
  readonly entries: readonly Entry[];
}

/** A configuration and where it came into force. */
interface ConfigAt {
  readonly index: number;
  readonly config: Configuration;
}

export class Raft {
  readonly id: number;
  term: number;
  vote: number;
  role: Role = 'follower';
  /** 0: unknown. */
  leader = 0;
  readonly log: RaftLog;
  /** The newest snapshot that is on disk; for followers that need entries which are compacted. */
  snapshot: Snapshot | undefined;
  /** A snapshot from the leader that the driver has not persisted yet. */
  pendingSnapshot: Snapshot | undefined;
  readonly receiver: SnapshotReceiver;
  /** Messages for the next Ready. */
  outbox: RaftMessage[] = [];
  readonly reads: ReadQueue;

  /** Leaders: one for each member of the configuration, itself too. */
  progress = new Map<number, Progress>();
  /** Candidates: who answered what. */
  votes = new Map<number, boolean>();
  /** Leaders: whom leadership is being handed to; 0: nobody. */
  transferee = 0;
  /** Leaders: bytes appended and not committed. */
  uncommittedBytes = 0;
  /** The driver's disk took no more entries: nothing that needs new ones on disk is done. */
  storageFull = false;
  /** The term was raised towards that of a message far ahead, since the last Ready (step.ts). */
  cameNearer = false;

  /** Ticks since a leader was heard; leaders: since a quorum was last checked. */
  electionElapsed = 0;
  heartbeatElapsed = 0;
  electionTimeout = 0;
  /**
   * The leader that was reported to have ended, until another one is heard or the term rises; 0: none. A hint, on which
   * nothing that is safe rests.
   */
  goneLeader = 0;
  /** Ticks until this member campaigns because of that report; 0: it does not. */
  campaignIn = 0;

  /** Oldest first; the first is the one in force at the log's base. */
  #configs: ConfigAt[];

  constructor(
    readonly options: RaftOptions,
    restored: RestoredState,
  ) {
    const { hardState, snapshot, entries } = restored;
    this.id = options.id;
    this.term = hardState.term;
    this.vote = hardState.vote;
    this.snapshot = snapshot;
    this.log = new RaftLog(snapshot?.meta.index ?? 0, snapshot?.meta.term ?? 0, entries);
    this.#configs = [{ index: this.log.baseIndex, config: snapshot?.meta.config ?? NO_CONFIGURATION }];
    this.#noteConfigs(entries);
    this.receiver = new SnapshotReceiver(options.maxSnapshotBytes);
    this.reads = new ReadQueue(options.maxPendingReads);
    invariant(hardState.term >= this.log.lastTerm, 'the term on disk is not older than the log');
    this.log.commitTo(hardState.commit);
    this.newElectionTimeout();
  }

  /** The configuration in force: the newest in the log (Raft paper, section 6). */
  get config(): Configuration {
    return present(this.#configs.at(-1)).config;
  }
  /** The index of the entry that brought it. */
  get configIndex(): number {
    return present(this.#configs.at(-1)).index;
  }

  /** The configuration that was in force at `index`, which is not compacted. */
  configAt(index: number): Configuration {
    invariant(index >= this.log.baseIndex, 'the configuration of a compacted index is forgotten');
    return present(this.#configs.findLast((at) => at.index <= index)).config;
  }

  /** Up to where this member may say that its disk holds the log. */
  get durableIndex(): number {
    return this.pendingSnapshot === undefined ? this.log.stable : 0;
  }

  /**
   * Whether this member may campaign. One that its newest configuration leaves out still may while that configuration
   * is not known to be committed: it can be the only one with a log that is up to date enough to win (Ongaro's
   * dissertation, section 4.2.2).
   */
  get promotable(): boolean {
    if (this.pendingSnapshot !== undefined) return false;
    if (isVoter(this.config, this.id)) return true;
    const before = this.#configs.at(-2);
    return before !== undefined && this.configIndex > this.log.commit && isVoter(before.config, this.id);
  }

  send(message: RaftMessage): void {
    this.outbox.push(message);
  }

  /** Follows `leader` (0: unknown) in a term that is the present one or a newer one. */
  becomeFollower(term: number, leader: number): void {
    this.#reset(term);
    this.role = 'follower';
    this.leader = leader;
  }

  /** Asks whether an election could be won, changing nothing that must be persisted. */
  becomePreCandidate(): void {
    invariant(this.role !== 'leader', 'a leader does not campaign');
    this.role = 'pre-candidate';
    this.leader = 0;
    this.votes.clear();
    this.newElectionTimeout();
  }

  becomeCandidate(): void {
    invariant(this.role !== 'leader', 'a leader does not campaign');
    this.#reset(this.term + 1);
    this.role = 'candidate';
    this.vote = this.id;
  }

  /** The first entry of the term is the caller's to append. */
  becomeLeader(): void {
    invariant(this.role === 'candidate', 'leaders were candidates');
    this.#reset(this.term);
    this.role = 'leader';
    this.leader = this.id;
    this.followConfig();
    for (const progress of this.progress.values()) progress.active = false;
    this.uncommittedBytes = 0;
    for (let index = this.log.commit + 1; index <= this.log.lastIndex; index++) {
      this.uncommittedBytes += this.log.entryAt(index)?.data.length ?? 0;
    }
  }

  /** Entries were appended to the log: configurations among them are in force now. */
  appended(entries: readonly Entry[], truncatedAt?: number): void {
    // mutation: raft/truncated-config
    if (truncatedAt !== undefined) this.#configs = this.#configs.filter((at) => at.index < truncatedAt);
    this.#noteConfigs(entries);
  }

  /** Leaders: makes `progress` follow the configuration in force. */
  followConfig(): void {
    const members = new Set(membersOf(this.config)).add(this.id);
    for (const id of this.progress.keys()) if (!members.has(id)) this.progress.delete(id);
    for (const id of members) {
      if (this.progress.has(id)) continue;
      const own = id === this.id;
      const progress = new Progress(this.log.lastIndex + 1, own ? this.log.stable : 0, this.options);
      // A member that is new to the leader counts as alive until the next check, so that adding one does not depose the
      // leader.
      progress.active = true;
      if (own) progress.becomeReplicate();
      this.progress.set(id, progress);
    }
  }

  /** Replaces the log by a snapshot that the driver is going to persist. */
  restore(snapshot: Snapshot): void {
    this.log.restore(snapshot.meta.index, snapshot.meta.term);
    this.#configs = [{ index: snapshot.meta.index, config: snapshot.meta.config }];
    this.pendingSnapshot = snapshot;
  }

  /** Forgets the log up to `index`, which this.snapshot covers. */
  compactTo(index: number): void {
    this.log.compactTo(index);
    const first = this.#configs.findLastIndex((at) => at.index <= this.log.baseIndex);
    this.#configs.splice(0, first);
  }

  newElectionTimeout(): void {
    const { electionTicks, random } = this.options;
    this.electionElapsed = 0;
    this.electionTimeout = electionTicks + Math.floor(random() * electionTicks);
  }

  forgetGone(): void {
    this.goneLeader = 0;
    this.campaignIn = 0;
  }

  #reset(term: number): void {
    invariant(term >= this.term, 'the term never falls');
    if (term !== this.term) {
      this.term = term;
      this.vote = 0;
      // What was said in an older term and has not left yet would be ignored by all; not sending it is the simplest to
      // be sure of.
      this.outbox = [];
      this.forgetGone();
    }
    this.leader = 0;
    this.heartbeatElapsed = 0;
    this.newElectionTimeout();
    this.transferee = 0;
    this.votes.clear();
    this.progress.clear();
    this.reads.reset();
  }

  #noteConfigs(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.type !== EntryType.Config) continue;
      const config = decodeConfiguration(entry.data);
      invariant(config !== undefined, 'a configuration entry can be read');
      this.#configs.push({ index: entry.index, config });
    }
  }
}
