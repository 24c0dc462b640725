/**
 * The durable side of one Raft member: what must survive a crash, in one directory that belongs to one member of one
 * cluster.
 *
 *   member            whose directory it is (directory.ts)     lock    held while in use
 *   state             term and vote; how much of the log was acknowledged (state-file.ts)
 *   log-<sequence>    segments of records, one for each Ready that had entries (record.ts, segmented-log.ts)
 *   snapshot-<index>  the newest snapshot (snapshot-file.ts)
 *
 * Invariants: when persist() or saveSnapshot() returns 'done', all that it was given is on disk; 'full' leaves the log
 * on disk as it was, with term and vote written. Any other failure of a write or a sync ends the process (fatal.ts).
 * What was acknowledged and cannot be read back is never passed over: open() throws ERR_DATA_DIR, which says how the
 * member is rebuilt. Not here: when to make snapshots, and what is in them.
 */
import { bootstrapState, emptyState, type Ready, type RestoredState, type Snapshot } from '../../core/raft/index.js';
import type { Checksum } from './checksum.js';
import { refused } from './damage.js';
import {
  checkIdentity,
  clearUnfinished,
  lockDirectory,
  readIdentity,
  writeIdentity,
  type Identity,
} from './directory.js';
import { NoRoom, type Disk } from './disk.js';
import type { Fatal } from './fatal.js';
import { replay } from './replay.js';
import { SegmentedLog } from './segmented-log.js';
import { readNewestSnapshot, removeOlderSnapshots, writeSnapshot } from './snapshot-file.js';
import { StateFile } from './state-file.js';

export interface StorageOptions {
  readonly disk: Disk;
  readonly identity: Identity;
  /**
   * The first voters, when this member is one of a new group; undefined when it joins one. Used for a new directory
   * only.
   */
  readonly bootstrap: readonly number[] | undefined;
  readonly checksum: Checksum;
  /** How this member is rebuilt, for messages: a sentence. */
  readonly rebuild: string;
  /** Told what was repaired at opening. */
  readonly notice: (text: string) => void;
  readonly fatal: Fatal;
  /** A segment is closed when it is at least this long. */
  readonly segmentBytes?: number;
}

export interface OpenedStorage {
  readonly storage: RaftStorage;
  /** What RaftNode starts from. */
  readonly restored: RestoredState;
  /** The directory was made by this call. */
  readonly created: boolean;
}

export type Persisted = 'done' | 'full';

const SEGMENT_BYTES = 8 * 1024 * 1024;

export class RaftStorage {
  #snapshotIndex: number;

  private constructor(
    private readonly options: StorageOptions,
    private readonly state: StateFile,
    private readonly log: SegmentedLog,
    snapshotIndex: number,
  ) {
    this.#snapshotIndex = snapshotIndex;
  }

  /** Locks and reads the directory, or makes it. Throws ERR_DATA_DIR when it is in use, another's, or damaged. */
  static open(options: StorageOptions): OpenedStorage {
    const { disk, checksum, identity } = options;
    try {
      lockDirectory(disk);
      const found = readIdentity(disk, checksum);
      if (found === undefined) return RaftStorage.#create(options);
      checkIdentity(disk, found, identity);
      return RaftStorage.#read(options);
    } catch (error) {
      disk.close();
      throw refused(disk.path, error, options.rebuild);
    }
  }

  /** Persists what a Ready asks for. See the contract in core/raft/index.ts for what 'full' obliges to. */
  persist(ready: Pick<Ready, 'hardState' | 'snapshot' | 'entries'>): Persisted {
    return this.#guarded('writing the Raft log', () => {
      const { hardState, snapshot, entries } = ready;
      if (hardState !== undefined && (hardState.term !== this.state.term || hardState.vote !== this.state.vote)) {
        this.state.writeHardState(hardState.term, hardState.vote);
      }
      if (hardState !== undefined) this.#commit = hardState.commit;
      // The commit index travels with the next record: a member that forgets it learns it again from the leader.
      if (snapshot === undefined && entries.length === 0) return;
      if (snapshot !== undefined) this.#writeSnapshot(snapshot);
      const last = entries.at(-1)?.index ?? snapshot?.meta.index ?? 0;
      this.log.append({ commit: Math.min(this.#commit, last), snapshot: snapshot?.meta, entries });
      this.#acknowledge();
      if (snapshot !== undefined) this.#removeCovered();
    });
  }

  /** Persists a snapshot of this member's own making, and removes what it covers. */
  saveSnapshot(snapshot: Snapshot): Persisted {
    return this.#guarded('writing a snapshot', () => {
      this.#writeSnapshot(snapshot);
      this.#removeCovered();
    });
  }

  close(): void {
    this.log.close();
    this.state.close();
    this.options.disk.close();
  }

  /** As of the last hard state that was handed in. */
  #commit = 0;

  static #create(options: StorageOptions): OpenedStorage {
    const { disk, checksum, bootstrap, identity } = options;
    // What an earlier, unfinished making left is in the way of nothing but the names.
    clearUnfinished(disk, checksum);
    const restored = bootstrap === undefined ? emptyState() : bootstrapState(bootstrap);
    const state = StateFile.create(disk, checksum);
    const log = SegmentedLog.create(disk, checksum, options.segmentBytes ?? SEGMENT_BYTES);
    const storage = new RaftStorage(options, state, log, 0);
    if (storage.persist({ hardState: restored.hardState, snapshot: undefined, entries: restored.entries }) === 'full')
      throw new NoRoom();
    writeIdentity(disk, identity, checksum);
    return { storage, restored, created: true };
  }

  static #read(options: StorageOptions): OpenedStorage {
    const { disk, checksum, notice } = options;
    // The process before may have died between making a name and syncing it. What this one is going to build on must
    // not vanish later.
    disk.syncNames();
    const state = StateFile.open(disk, checksum);
    const snapshot = readNewestSnapshot(disk, checksum);
    const snapshotIndex = snapshot?.meta.index ?? 0;
    const opened = SegmentedLog.open(
      disk,
      checksum,
      options.segmentBytes ?? SEGMENT_BYTES,
      snapshotIndex,
      state.acknowledged,
    );
    for (const repair of opened.repairs) notice(`${disk.path}/${repair}`);
    const { entries, commit, snapshotRecordMissing } = replay(opened.firstIndex, opened.records, snapshot);
    const storage = new RaftStorage(options, state, opened.log, snapshotIndex);
    storage.#commit = commit;
    if (snapshotRecordMissing) opened.log.append({ commit, snapshot: snapshot?.meta, entries: [] });
    storage.#acknowledge();
    storage.#removeCovered();
    return {
      storage,
      restored: { hardState: { term: state.term, vote: state.vote, commit }, snapshot, entries },
      created: false,
    };
  }

  #writeSnapshot(snapshot: Snapshot): void {
    if (snapshot.meta.index <= this.#snapshotIndex) return;
    writeSnapshot(this.options.disk, snapshot, this.options.checksum);
    this.#snapshotIndex = snapshot.meta.index;
  }

  #removeCovered(): void {
    this.log.removeUpTo(this.#snapshotIndex);
    removeOlderSnapshots(this.options.disk, this.#snapshotIndex);
  }

  #acknowledge(): void {
    const { segment, bytes } = this.log.end;
    this.state.acknowledge(segment, bytes);
  }

  #guarded(what: string, write: () => void): Persisted {
    try {
      write();
      return 'done';
    } catch (error) {
      if (error instanceof NoRoom) return 'full';
      return this.options.fatal(`${what} in ${this.options.disk.path} failed`, error);
    }
  }
}
