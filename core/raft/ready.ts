/** What a RaftNode hands to its driver, and what it tells of itself. The contract is in index.ts. */
import type { Configuration } from './configuration.js';
import type { Entry, HardState } from './entry.js';
import type { RaftMessage } from './messages.js';
import type { ProgressState } from './progress.js';
import type { Role } from './raft.js';
import type { ReadState } from './reads.js';
import type { Snapshot } from './snapshot.js';

/** What the driver has to do, in the order of the fields. Lists may be empty. */
export interface Ready {
  /** To be persisted, when present: it differs from what was last persisted. */
  readonly hardState: HardState | undefined;
  /** To be persisted, then given to the state machine in place of all it had. */
  readonly snapshot: Snapshot | undefined;
  /**
   * To be persisted behind `snapshot`. The first may lie at or before the end of the log on disk, which then ends
   * before it.
   */
  readonly entries: readonly Entry[];
  /** Whether anything above must be on disk, not only written, before the driver goes on. */
  readonly mustSync: boolean;
  /** To be sent, once the above is on disk. */
  readonly messages: readonly RaftMessage[];
  /**
   * To be sent before the above is on disk, or while it is being written: a leader's entries, in a term that is on disk
   * already. They claim nothing about this member's disk.
   */
  readonly early: readonly RaftMessage[];
  /**
   * To be applied, in order. All are on this member's disk already. Those of type Config and those without data change
   * no state.
   */
  readonly committed: readonly Entry[];
  /** Reads that may be answered once their index is applied. */
  readonly readStates: readonly ReadState[];
  /** Reads (their ctx) that will not be answered; the driver may ask again. */
  readonly abortedReads: readonly number[];
}

export interface MemberProgress {
  readonly id: number;
  readonly state: ProgressState;
  readonly match: number;
  readonly active: boolean;
}

export interface RaftStatus {
  readonly id: number;
  readonly role: Role;
  readonly term: number;
  /** 0: unknown. */
  readonly leader: number;
  readonly commit: number;
  readonly applied: number;
  readonly firstIndex: number;
  readonly lastIndex: number;
  readonly logBytes: number;
  readonly config: Configuration;
  /** Whether the configuration in force is known to be committed. */
  readonly configCommitted: boolean;
  readonly transferee: number;
  readonly storageFull: boolean;
  /** Leaders only. */
  readonly progress: readonly MemberProgress[];
}
