/**
 * One simulated member: the real core and the real storage over a disk in memory, and the loop of a driver around them,
 * which may be stopped between any two of its actions.
 */
import { FarkvError } from '../../core/errors.js';
import {
  decodeConfiguration,
  EntryType,
  RaftNode,
  type Configuration,
  type Entry,
  type RaftMessage,
  type Ready,
  type Snapshot,
} from '../../core/raft/index.js';
import { RaftStorage } from '../../server/raft-storage/index.js';
import { crc32c } from '../support/crc32c.js';
import { Violation, type Watched } from './checker.js';
import { DurableModel } from './durable-model.js';
import type { Machine } from './machine.js';
import { MemoryDisk, SimulatedCrash } from './memory-disk.js';
import { OWNER_READS } from './owners.js';
import type { World } from './world.js';

/** Limits far below the defaults, so that every bound is met within a short run. */
const LIMITS = {
  electionTicks: 10,
  heartbeatTicks: 1,
  maxMessageBytes: 600,
  maxInflightMessages: 8,
  maxInflightBytes: 2000,
  maxUncommittedBytes: 4000,
  maxLogBytes: 60_000,
  maxCommittedBytes: 800,
  maxPendingReads: 16,
  snapshotChunkBytes: 200,
  snapshotWindow: 2,
};
const SEGMENT_BYTES = 3000;
const INBOX_MAX = 500;
const RETRY_STORAGE_TICKS = 20;

export class SimMember implements Watched {
  readonly disk: MemoryDisk;
  readonly model = new DurableModel();
  machine: Machine;
  node: RaftNode | undefined;
  #storage: RaftStorage | undefined;
  /** A Ready whose disk work is under way. */
  #writing: Ready | undefined;
  /** What a crash would find half done. */
  #unfinished: Ready | undefined;
  #unfinishedSnapshot: Snapshot | undefined;
  #inbox: RaftMessage[] = [];
  /** Rises with every start, so that events for an earlier life are told apart. */
  life = 0;
  paused = false;
  /** Its disk was damaged and refused: it never comes back. */
  lost = false;
  /** Its last end was the machine's, not the process's alone. */
  machineCrashed = false;
  /** The process ends at this many more actions of the driver; 0: it does not. */
  dieIn = 0;
  #fullTicks = 0;

  term = 0;
  commit = 0;
  ledTerm = 0;
  ledIndex = 0;
  ledIndexTerm = 0;
  spokenTerm = 0;

  constructor(
    readonly id: number,
    private readonly world: World,
    private readonly bootstrap: readonly number[] | undefined,
  ) {
    this.disk = new MemoryDisk(`/member-${id}`, world.random);
    this.machine = world.application.machine();
  }

  /**
   * The configurations behind `index` in its log, which are not committed yet. It may act on one, now or when it comes
   * back.
   */
  configsAfter(index: number): Configuration[] {
    const { node, model } = this;
    const entries =
      node === undefined ? [...model.entries, ...(this.#unfinished?.entries ?? [])] : this.#inMemory(node, index);
    const changes = entries.filter((entry) => entry.type === EntryType.Config && entry.index > index);
    return changes.map(({ data }) => decodeConfiguration(data)!);
  }

  #inMemory(node: RaftNode, after: number): Entry[] {
    const entries: Entry[] = [];
    for (let index = after + 1; index <= node.lastIndex; index++) {
      const entry = node.entryAt(index);
      if (entry !== undefined) entries.push(entry);
    }
    return entries;
  }

  get writing(): boolean {
    return this.#writing !== undefined;
  }

  /** Starts the process. 'refused': its disk is damaged, and it never starts again. */
  start(): 'started' | 'failed' | 'refused' {
    const { world } = this;
    let opened;
    try {
      opened = RaftStorage.open({
        disk: this.disk,
        identity: { clusterId: 'sim', memberId: this.id },
        bootstrap: this.bootstrap,
        checksum: crc32c,
        rebuild: 'REBUILD',
        notice: () => world.counters.repairs++,
        fatal: (_what, cause) => {
          throw cause;
        },
        segmentBytes: SEGMENT_BYTES,
      });
    } catch (error) {
      if (error instanceof SimulatedCrash) return 'failed';
      if (!(error instanceof FarkvError) || error.code !== 'ERR_DATA_DIR') throw error;
      if (this.disk.full) return 'failed';
      if (!world.damaged.has(this.id))
        throw new Violation('restart', `the disk of ${this.id} is refused, and nothing damaged it: ${error.message}`);
      this.lost = true;
      world.counters.disksRefused++;
      return 'refused';
    }
    const { storage, restored, created } = opened;
    this.life++;
    this.#storage = storage;
    this.#inbox = [];
    this.paused = false;
    this.dieIn = 0;
    this.machine = world.application.machine();
    if (restored.snapshot !== undefined) this.machine.restore(restored.snapshot.data);
    const why = created
      ? this.#madeAgain(restored)
      : this.model.restart(restored, this.#unfinished, this.#unfinishedSnapshot);
    this.#unfinished = undefined;
    this.#unfinishedSnapshot = undefined;
    const node = new RaftNode(
      { ...LIMITS, id: this.id, incarnation: ++world.starts, random: () => world.random.next() / 2 ** 32 },
      restored,
    );
    this.node = node;
    world.checker.restarted(this, node, why);
    world.checker.applied(this, node.applied);
    world.checker.look(this, node);
    world.owners?.started(this);
    return 'started';
  }

  /** The directory was made, or made again: only one that had promised nothing may be. */
  #madeAgain(restored: ConstructorParameters<typeof RaftNode>[1]): string | undefined {
    if (this.spokenTerm > 0) return 'a directory that was in use was made again';
    Object.assign(this.model, new DurableModel(restored));
    return undefined;
  }

  /** The process ends now, or the machine does. */
  crash(machine: boolean): void {
    this.machineCrashed = machine;
    this.disk.crash(machine);
    this.node = undefined;
    this.#storage = undefined;
    this.#unfinished = this.#writing ?? this.#unfinished;
    this.#writing = undefined;
    this.#inbox = [];
    this.world.memberStopped(this);
    this.world.owners?.stopped(this);
  }

  deliver(message: RaftMessage): void {
    const { node } = this;
    if (node === undefined) return;
    if (this.paused || (this.#writing !== undefined && !this.world.faults.stepsDuringWrites)) {
      if (this.#inbox.length < INBOX_MAX) this.#inbox.push(message);
      return;
    }
    this.#step(node, message);
    this.pump();
  }

  tick(times: number): void {
    const { node } = this;
    if (node === undefined || this.paused || (this.#writing !== undefined && !this.world.faults.stepsDuringWrites))
      return;
    for (let i = 0; i < times; i++) {
      node.tick();
      this.world.checker.look(this, node);
    }
    if (node.storageFull && (this.#fullTicks += times) >= RETRY_STORAGE_TICKS) {
      this.#fullTicks = 0;
      node.retryStorage();
    }
    this.world.owners?.tick(this);
    this.pump();
  }

  /** A hint, true or false, that a member has ended. */
  leaderGone(id: number): void {
    const { node } = this;
    if (node === undefined || this.paused || (this.#writing !== undefined && !this.world.faults.stepsDuringWrites))
      return;
    node.leaderGone(id);
    this.world.checker.look(this, node);
    this.pump();
  }

  pause(): void {
    this.paused = true;
    this.world.counters.pauses++;
    this.world.owners?.paused(this);
  }

  resume(): void {
    this.paused = false;
    this.world.owners?.resumed(this);
    this.pump();
  }

  /** The driver's loop, up to where it waits for the disk. */
  pump(): void {
    const { world } = this;
    while (this.node !== undefined && !this.paused && this.#writing === undefined) {
      const { node } = this;
      if (node.hasReady()) {
        const ready = node.ready();
        world.trace?.ready(this.id, ready);
        world.checker.ready(this, node, ready);
        world.checker.look(this, node);
        this.#writing = ready;
        if (!this.#sends(ready.early)) return;
        if (ready.mustSync) {
          world.scheduleIo(this);
          return;
        }
        this.#finish(node, ready, true);
      } else {
        const message = this.#inbox.shift();
        if (message === undefined) return;
        this.#step(node, message);
      }
    }
  }

  /** The time that the disk needed is over: its work is done, or the crash comes in the middle of it. */
  ioDone(): void {
    const { node } = this;
    const ready = this.#writing;
    const storage = this.#storage;
    if (node === undefined || ready === undefined || storage === undefined) return;
    this.#unfinished = ready;
    try {
      const done = storage.persist(ready) === 'done';
      if (done) {
        this.model.persisted(ready);
        this.#unfinished = undefined;
      } else {
        this.model.votePersisted(ready.hardState);
        this.world.counters.diskFull++;
      }
      this.world.checker.persisted(this);
      this.#finish(node, ready, done);
    } catch (error) {
      this.#ended(error);
      return;
    }
    this.pump();
  }

  /** False: the member has ended. */
  #sends(messages: readonly RaftMessage[]): boolean {
    try {
      for (const message of messages) {
        this.#mayDie();
        this.world.checker.sends(this, message);
        this.world.send(message);
      }
      return true;
    } catch (error) {
      this.#ended(error);
      return false;
    }
  }

  /** Steps 2 to 4 of the driver's loop. */
  #finish(node: RaftNode, ready: Ready, persisted: boolean): void {
    const { world } = this;
    const { checker } = world;
    try {
      if (persisted) {
        if (!this.#sends(ready.messages)) return;
        if (ready.snapshot !== undefined) {
          world.counters.snapshotsTaken++;
          this.machine.restore(ready.snapshot.data);
          checker.applied(this, ready.snapshot.meta.index);
        }
      }
      this.#mayDie();
      for (const entry of ready.committed) {
        checker.applies(this, entry);
        if (entry.type === EntryType.Normal && entry.data.length > 0) this.machine.apply(entry.index, entry.data);
      }
      const last = ready.committed.at(-1);
      if (last !== undefined) checker.applied(this, last.index);
      for (const { ctx, index } of ready.readStates) if (ctx < OWNER_READS) checker.readAnswered(ctx, index);
      for (const ctx of ready.abortedReads) if (ctx < OWNER_READS) checker.readAborted(ctx);
      this.#mayDie();
      this.#writing = undefined;
      if (persisted) node.advance();
      else node.storageRefused();
      checker.look(this, node);
      world.owners?.progressed(this, ready);
      const due =
        node.applied - this.model.snapshotIndex >= world.faults.compactEvery || node.logBytes > LIMITS.maxLogBytes / 2;
      if (due && node.applied > this.model.snapshotIndex) this.#compact(node);
    } catch (error) {
      this.#ended(error);
    }
  }

  #compact(node: RaftNode): void {
    const storage = this.#storage;
    if (storage === undefined) return;
    const meta = node.snapshotMeta();
    if (meta === undefined) return;
    const snapshot = { meta, data: this.machine.snapshot() };
    this.#unfinishedSnapshot = snapshot;
    if (storage.saveSnapshot(snapshot) === 'done') {
      this.model.snapshotSaved(snapshot);
      node.compact(snapshot, this.world.faults.keepEntries);
      this.world.counters.compactions++;
    }
    this.#unfinishedSnapshot = undefined;
  }

  #step(node: RaftNode, message: RaftMessage): void {
    this.world.steps++;
    this.world.trace?.step(message);
    node.step(message);
    this.world.checker.look(this, node);
  }

  #mayDie(): void {
    if (this.dieIn > 0 && --this.dieIn === 0) throw new SimulatedCrash('between two actions');
  }

  #ended(error: unknown): void {
    const failedSync = error instanceof Error && 'code' in error && error.code === 'EIO';
    if (!(error instanceof SimulatedCrash) && !failedSync) throw error;
    this.world.counters.crashesInside++;
    if (failedSync) this.world.counters.failedSyncs++;
    this.world.crashed(this, failedSync);
  }
}
