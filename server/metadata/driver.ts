/**
 * Runs the metadata's Raft member: its clock, its disk, its messages, and the state machine behind it. The order of
 * each round is core/raft's contract: send what is early, persist, send, apply, advance.
 *
 * What may wait for a vote or an acknowledgement is on disk before it leaves, because persist() returns only then. The
 * disk is written synchronously on purpose (server/raft-storage/disk.ts).
 */
import { FarkvError } from '../../core/errors.js';
import { Timing, type Counted } from '../../core/exposition.js';
import { MetadataMachine, type Applied } from '../../core/metadata/machine.js';
import type { MetadataState } from '../../core/metadata/state.js';
import {
  checkRaftMessage,
  EntryType,
  ImplausibleMessage,
  LostEntriesClaim,
  LostEntriesError,
  RaftNode,
  TERMS_AT_ONCE,
  type ChangeRefusal,
  type ConfigChange,
  type Entry,
  type ProposalRefusal,
  type RaftMessage,
  type RaftStatus,
  type Ready,
  type RestoredState,
  type Snapshot,
} from '../../core/raft/index.js';
import { describeError, RateLimitedLog, type Log } from '../log.js';
import type { RaftStorage } from '../raft-storage/index.js';
import { DiskLines } from './disk-lines.js';

export interface DriverOptions {
  readonly storage: Pick<RaftStorage, 'persist' | 'saveSnapshot'>;
  readonly restored: RestoredState;
  readonly raftId: number;
  /** 48 random bits. */
  readonly incarnation: number;
  readonly random: () => number;
  readonly tickMs: number;
  readonly electionMs: number;
  /** Sends to message.to, or loses it. `leavesNow`: it leaves before this returns, for then the disk is waited for. */
  readonly send: (message: RaftMessage, leavesNow: boolean) => void;
  readonly log: Log;
  /** Whether most voters follow this member as the leader of this term, by their own word. Default: nobody knows. */
  readonly isLedBy?: (raftId: number, term: number) => Promise<boolean>;
  /** The member cannot go on: an entry of a later version, or a broken invariant. Called once. */
  readonly fatal: (error: FarkvError) => void;
  /** Between two lines about a disk that stays full. Default: a minute. */
  readonly quietFullMs?: number;
  /** A snapshot is made when the log has grown by this much. */
  readonly compactBytes?: number;
  /** The latest format of metadata that this server reads; default: all that it can. */
  readonly knownFormat?: number;
}

/**
 * Of a leader that a quorum has confirmed: it led in `term` after it was asked, and has applied `index`, which holds
 * all that was committed when it was asked, and all that has been applied here since.
 */
export interface Confirmed {
  readonly term: number;
  readonly index: number;
}

interface Read {
  readonly term: number;
  /** Undefined until a quorum has answered. */
  index: number | undefined;
  readonly resolve: (confirmed: Confirmed) => void;
  readonly reject: (error: FarkvError) => void;
}

const COMPACT_BYTES = 8 << 20;
/** About this part of that is kept behind a snapshot, for followers that are a little late. */
const KEEP_PART = 1 / 8;
const RETRY_STORAGE_MS = 1000;
const ALONE_TICK_MS = 1000;
/** Rounds before other events get their turn. */
const ROUNDS = 32;

export class MetadataDriver {
  readonly #options: DriverOptions;
  readonly #node: RaftNode;
  readonly #machine: MetadataMachine;
  readonly #appliedListeners: ((applied: Applied) => void)[] = [];
  readonly #stateListeners: ((state: MetadataState) => void)[] = [];
  readonly #leaderListeners: ((leader: number) => void)[] = [];
  readonly #configListeners: (() => void)[] = [];
  readonly #reads = new Map<number, Read>();
  readonly #appliedWaiters: { readonly index: number; readonly resolve: () => void }[] = [];
  #lastRead = 0;
  #configChanged = false;
  #scheduled = false;
  #stopped = false;
  #leader = 0;
  #term = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #syncs = new Timing();
  #retry: NodeJS.Timeout | undefined;
  readonly #disk: DiskLines;
  #compactedBytes = 0;
  /** Others are being asked whether this member has lost entries. */
  #inDoubt = false;
  readonly #far: RateLimitedLog;

  constructor(options: DriverOptions) {
    this.#options = options;
    const machine = new MetadataMachine(options.knownFormat);
    this.#machine = machine;
    this.#disk = new DiskLines({
      log: options.log,
      full: {
        event: 'raft-log-full',
        text: 'this server accepts no metadata changes until there is',
        retryMs: RETRY_STORAGE_MS,
      },
      hasRoom: { event: 'raft-log-has-room', text: 'metadata changes are accepted' },
      quietMs: options.quietFullMs,
    });
    this.#far = new RateLimitedLog((text, fields) => options.log.warn(text, fields));
    const ticks = Math.max(4, Math.round(options.electionMs / options.tickMs));
    this.#node = new RaftNode(
      {
        id: options.raftId,
        incarnation: options.incarnation,
        random: options.random,
        electionTicks: ticks,
        heartbeatTicks: Math.max(1, Math.floor(ticks / 5)),
        unreadable: (data) => machine.malformed(data, 'snapshot'),
      },
      options.restored,
    );
    if (options.restored.snapshot !== undefined) this.#machine.restore(options.restored.snapshot.data);
  }

  get state(): MetadataState {
    return this.#machine.state;
  }
  /** Raft number of the leader that this member follows, or its own; 0: none known. */
  get leader(): number {
    return this.#node.leader;
  }
  get leads(): boolean {
    return this.#node.role === 'leader';
  }
  get term(): number {
    return this.#node.term;
  }
  /** How long its log took to be written and synced. */
  get syncs(): Counted {
    return this.#syncs;
  }
  /** The latest format of metadata that this server reads. */
  get knownFormat(): number {
    return this.#machine.known;
  }
  status(): RaftStatus {
    return this.#node.status();
  }

  /** Every applied command, also refused ones and duplicates. */
  onApplied(listener: (applied: Applied) => void): void {
    this.#appliedListeners.push(listener);
  }
  /** After a round that changed the metadata. */
  onState(listener: (state: MetadataState) => void): void {
    this.#stateListeners.push(listener);
  }
  /** The leader that this member knows, or the term, has changed. */
  onLeader(listener: (leader: number) => void): void {
    this.#leaderListeners.push(listener);
  }

  /** A configuration of the Raft group was committed, or came with a snapshot. */
  onConfig(listener: () => void): void {
    this.#configListeners.push(listener);
  }

  start(): void {
    // Alone there is nobody to wait for, and hardly a reason to wake up.
    if (this.#alone()) this.campaign();
    this.#clock();
  }

  #alone(): boolean {
    const { voters, learners } = this.#node.config;
    return voters.length === 1 && voters[0] === this.#options.raftId && learners.length === 0;
  }

  #clock(): void {
    const { tickMs } = this.#options;
    this.#timer = setTimeout(
      () => {
        this.#guarded(() => this.#node.tick());
        if (!this.#stopped) this.#clock();
      },
      this.#alone() ? Math.max(ALONE_TICK_MS, tickMs) : tickMs,
    );
  }

  /**
   * A message as it came from the peer with this number. Throws ERR_PROTOCOL, and takes nothing of it, when it is none,
   * not the peer's to send, or one that no member can have sent which follows Raft's rules.
   */
  receive(from: number, value: unknown): void {
    const checked = checkRaftMessage(value);
    if (!checked.ok) throw new FarkvError('ERR_PROTOCOL', `malformed Raft message: ${checked.why}`);
    if (checked.message.from !== from || checked.message.to !== this.#options.raftId)
      throw new FarkvError('ERR_PROTOCOL', 'a Raft message between other members');
    const { message } = checked;
    this.#checkEntries(message);
    const { term } = this.#node;
    if (message.term - term > TERMS_AT_ONCE)
      this.#far.say(
        `member ${from} of the metadata group speaks of term ${message.term}, and this server is in term ${term}: each such message raises that by ${TERMS_AT_ONCE} at most`,
        { event: 'term-ahead', member: from, ofTerm: message.term, term },
      );
    const refused = this.#stepped(message);
    if (refused === undefined) return;
    if (refused instanceof LostEntriesClaim) this.#doubt(message);
    throw new FarkvError('ERR_PROTOCOL', `a Raft message that cannot be true: ${refused.reason}`, { cause: refused });
  }

  /** What could not be applied once it is committed must not get into the log. */
  #checkEntries(message: RaftMessage): void {
    if (message.type !== 'append') return;
    for (const { type, data } of message.entries) {
      if (type !== EntryType.Normal || data.length === 0) continue;
      const why = this.#machine.malformed(data, 'entry');
      if (why !== undefined) throw new FarkvError('ERR_PROTOCOL', `a Raft message with an entry that is none: ${why}`);
    }
  }

  /** Why the message was not taken, if so. */
  #stepped(message: RaftMessage): ImplausibleMessage | undefined {
    let refused: ImplausibleMessage | undefined;
    this.#guarded(() => {
      try {
        this.#node.step(message);
      } catch (error) {
        if (!(error instanceof ImplausibleMessage)) throw error;
        refused = error;
      }
    });
    return refused;
  }

  /**
   * A member says that this one has lost what it had acknowledged. That is believed of the one that most voters take for
   * the leader: any other member may say so of anybody.
   */
  #doubt({ from, term }: RaftMessage): void {
    const { isLedBy } = this.#options;
    if (this.#inDoubt || isLedBy === undefined) return;
    this.#inDoubt = true;
    isLedBy(from, term).then(
      (led) => {
        this.#inDoubt = false;
        if (led)
          this.#fail(
            new LostEntriesError(
              'what is committed is in the log; this member has lost entries that it had acknowledged',
            ),
          );
      },
      (error: unknown) => {
        this.#inDoubt = false;
        this.#options.log.debug(`nobody says who leads: ${describeError(error)}`);
      },
    );
  }

  /**
   * Undefined: taken, and it will show in onApplied when it is committed, unless this member loses its leadership
   * before.
   */
  propose(bytes: Uint8Array): ProposalRefusal | undefined {
    let refusal: ProposalRefusal | undefined;
    this.#guarded(() => {
      const proposed = this.#node.propose(bytes);
      refusal = proposed.ok ? undefined : proposed.reason;
    });
    return refusal;
  }

  /** As propose, for the configuration of the Raft group. */
  proposeChange(change: ConfigChange): ChangeRefusal | undefined {
    let refusal: ChangeRefusal | undefined;
    this.#guarded(() => {
      const proposed = this.#node.proposeChange(change);
      refusal = proposed.ok ? undefined : proposed.reason;
    });
    return refusal;
  }

  /**
   * Asks a quorum whether this member leads (ReadIndex). Rejects with ERR_NO_LEADER when it does not, or no longer, and
   * waits for as long as no quorum answers and nobody else leads.
   */
  confirmLeader(): Promise<Confirmed> {
    return new Promise((resolve, reject) => {
      const ctx = ++this.#lastRead;
      let refusal: string | undefined = this.#stopped ? 'it has stopped' : this.leads ? undefined : 'it does not lead';
      if (refusal === undefined) {
        this.#reads.set(ctx, { term: this.#node.term, index: undefined, resolve, reject });
        this.#guarded(() => (refusal = this.#node.readIndex(ctx)));
      }
      if (refusal === undefined) return;
      this.#reads.delete(ctx);
      reject(new FarkvError('ERR_NO_LEADER', `this server cannot say what is committed: ${refusal}`));
    });
  }

  /** Resolves when this server's metadata is at `index` of the log. */
  whenApplied(index: number): Promise<void> {
    if (this.#node.applied >= index) return Promise.resolve();
    return new Promise((resolve) => this.#appliedWaiters.push({ index, resolve }));
  }

  /**
   * Asks for votes now, if no leader is known: at a start there is no use in waiting for the election time-out. It
   * begins with a pre-vote, so it disturbs nobody who has a leader.
   */
  campaign(): void {
    this.#guarded(() => {
      if (this.#node.leader === 0) this.#node.campaign();
    });
  }

  /** A hint that a member has ended: if it leads, nobody need wait until it is missed (core/raft/election.ts). */
  leaderGone(raftId: number): void {
    this.#guarded(() => this.#node.leaderGone(raftId));
  }

  /** Hands the leadership to another member, if this one has it, so that the others need not wait for an election. */
  handOver(to: number): void {
    this.#guarded(() => void this.#node.transferLeadership(to));
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#retry);
    for (const read of this.#reads.values()) read.reject(new FarkvError('ERR_CLOSED', 'the server is closing'));
    this.#reads.clear();
  }

  /** Every way into the member: a broken invariant ends it, and whatever the input made ready is done soon. */
  #guarded(input: () => void): void {
    if (this.#stopped) return;
    try {
      input();
    } catch (cause) {
      this.#fail(cause);
      return;
    }
    if (this.#scheduled || !this.#node.hasReady()) return;
    this.#scheduled = true;
    // Not at once: what arrives in the same turn of the event loop shares one write to disk.
    setImmediate(() => {
      this.#scheduled = false;
      try {
        this.#rounds();
      } catch (cause) {
        this.#fail(cause);
      }
    });
  }

  #fail(cause: unknown): void {
    if (this.#stopped) return;
    this.stop();
    const error =
      cause instanceof FarkvError
        ? cause
        : new FarkvError('ERR_INTERNAL', `the metadata's Raft member has stopped: ${describeError(cause)}`, { cause });
    this.#options.fatal(error);
  }

  #rounds(): void {
    const before = this.#machine.state;
    for (let i = 0; i < ROUNDS && !this.#stopped && this.#node.hasReady(); i++) this.#round();
    if (this.#stopped) return;
    if (this.#machine.state !== before) for (const listener of this.#stateListeners) listener(this.#machine.state);
    if (this.#node.leader !== this.#leader || this.#node.term !== this.#term) {
      this.#leader = this.#node.leader;
      this.#term = this.#node.term;
      for (const listener of this.#leaderListeners) listener(this.#leader);
    }
    if (this.#configChanged) {
      this.#configChanged = false;
      for (const listener of this.#configListeners) listener();
    }
    this.#wakeReaders();
    // More to do, or a listener made more.
    this.#guarded(() => undefined);
  }

  #round(): void {
    const node = this.#node;
    const ready = node.ready();
    for (const message of ready.early) this.#options.send(message, true);
    const begin = performance.now();
    const persisted = this.#options.storage.persist(ready);
    if (ready.mustSync) this.#syncs.add(Math.round((performance.now() - begin) * 1e6));
    if (persisted === 'full') {
      this.#apply(undefined, ready.committed);
      this.#confirm(ready);
      node.storageRefused();
      this.#disk.full();
      this.#retry ??= setTimeout(() => {
        this.#retry = undefined;
        this.#guarded(() => node.retryStorage());
      }, RETRY_STORAGE_MS);
      return;
    }
    for (const message of ready.messages) this.#options.send(message, false);
    this.#apply(ready.snapshot, ready.committed);
    this.#confirm(ready);
    node.advance();
    if (this.#disk.isFull && !node.status().storageFull) this.#disk.hasRoom();
    this.#compact();
  }

  #confirm(ready: Ready): void {
    for (const { ctx, index } of ready.readStates) {
      const read = this.#reads.get(ctx);
      if (read !== undefined) read.index = index;
    }
    for (const ctx of ready.abortedReads) {
      this.#reads.get(ctx)?.reject(new FarkvError('ERR_NO_LEADER', 'this server leads no longer'));
      this.#reads.delete(ctx);
    }
  }

  /** After the listeners of onState: whoever waited for an index finds everything done that follows from it. */
  #wakeReaders(): void {
    const { applied, term } = this.#node;
    for (const [ctx, read] of this.#reads) {
      if (read.index === undefined || read.index > applied) continue;
      this.#reads.delete(ctx);
      // What was applied after the question is part of the answer: an owner that asked before its shards were taken,
      // and is answered after that, must see them go before it relies on the answer.
      if (read.term === term && this.leads) read.resolve({ term, index: applied });
      else read.reject(new FarkvError('ERR_NO_LEADER', 'this server leads no longer'));
    }
    const due = this.#appliedWaiters.filter((w) => w.index <= applied);
    if (due.length === 0) return;
    this.#appliedWaiters.splice(
      0,
      this.#appliedWaiters.length,
      ...this.#appliedWaiters.filter((w) => w.index > applied),
    );
    for (const waiter of due) waiter.resolve();
  }

  #apply(snapshot: Snapshot | undefined, committed: readonly Entry[]): void {
    if (snapshot !== undefined) this.#machine.restore(snapshot.data);
    if (snapshot !== undefined || committed.some((entry) => entry.type === EntryType.Config))
      this.#configChanged = true;
    for (const entry of committed) {
      if (entry.type !== EntryType.Normal || entry.data.length === 0) continue;
      let applied: Applied;
      try {
        applied = this.#machine.apply(entry.data);
      } catch (cause) {
        const code = cause instanceof FarkvError ? cause.code : 'ERR_INTERNAL';
        throw new FarkvError(
          code,
          `entry ${entry.index} of the metadata log cannot be applied: ${describeError(cause)}`,
          { cause },
        );
      }
      for (const listener of this.#appliedListeners) listener(applied);
    }
  }

  /** Replaces the log's beginning by a snapshot when it has grown enough. */
  #compact(): void {
    const { logBytes, firstIndex, lastIndex } = this.#node.status();
    const compactBytes = this.#options.compactBytes ?? COMPACT_BYTES;
    if (logBytes - this.#compactedBytes < compactBytes) return;
    const meta = this.#node.snapshotMeta();
    if (meta === undefined) return;
    const snapshot = { meta, data: this.#machine.snapshot() };
    if (this.#options.storage.saveSnapshot(snapshot) === 'full') {
      // Tried again when the log has grown as much once more.
      this.#compactedBytes = logBytes;
      return;
    }
    this.#node.compact(snapshot, Math.floor((compactBytes * KEEP_PART) / (logBytes / (lastIndex - firstIndex + 1))));
    this.#compactedBytes = this.#node.status().logBytes;
  }
}
