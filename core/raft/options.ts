/**
 * What a member is told when it is made: its bounds, its pace and its source of chance. Times are ticks, of a length
 * that the driver chooses; the core has no clock.
 */
import { invariant } from './invariant.js';

export interface RaftOptions {
  /** This member. Never 0, never given to another machine once it voted. */
  readonly id: number;
  /**
   * A number that no earlier start of this member used (random, or counted). Answers to ReadIndex requests of an
   * earlier life are told apart by it.
   */
  readonly incarnation: number;
  /** Uniform in [0, 1). Seeded in the simulator. */
  readonly random: () => number;
  /**
   * A follower that heard no leader for between one and two times this many ticks campaigns. Votes are ignored within
   * it.
   */
  readonly electionTicks: number;
  readonly heartbeatTicks: number;
  /** Entries in one append message; one entry may exceed it alone. */
  readonly maxMessageBytes: number;
  /** Append messages to one follower that are not acknowledged yet, and their entries' bytes. */
  readonly maxInflightMessages: number;
  readonly maxInflightBytes: number;
  /** Proposals are refused ('busy') beyond this many bytes that are appended and not committed. */
  readonly maxUncommittedBytes: number;
  /** Proposals are refused ('log-full') beyond this many bytes in the log: the driver is behind with compaction. */
  readonly maxLogBytes: number;
  /** Committed entries in one Ready. */
  readonly maxCommittedBytes: number;
  /** Linearizable reads that wait at one member, its own and (at a leader) those of others. */
  readonly maxPendingReads: number;
  readonly snapshotChunkBytes: number;
  /** Chunks of a snapshot that are not acknowledged yet. */
  readonly snapshotWindow: number;
  /** A larger snapshot is not received. */
  readonly maxSnapshotBytes: number;
  /** Why the state machine could not be made from these bytes of a snapshot; undefined: it can, or nobody asks. */
  readonly unreadable?: (data: Uint8Array) => string | undefined;
}

const KIB = 1024;
const MIB = 1024 * KIB;

export const DEFAULT_LIMITS = {
  electionTicks: 10,
  heartbeatTicks: 1,
  maxMessageBytes: MIB,
  maxInflightMessages: 64,
  maxInflightBytes: 8 * MIB,
  maxUncommittedBytes: 16 * MIB,
  maxLogBytes: 128 * MIB,
  maxCommittedBytes: 4 * MIB,
  maxPendingReads: 4096,
  snapshotChunkBytes: 256 * KIB,
  snapshotWindow: 4,
  maxSnapshotBytes: 512 * MIB,
} as const satisfies Partial<RaftOptions>;

export type RaftSettings = Pick<RaftOptions, 'id' | 'incarnation' | 'random'> & Partial<RaftOptions>;

export function completeOptions(settings: RaftSettings): RaftOptions {
  const options = { ...DEFAULT_LIMITS, ...settings };
  invariant(Number.isSafeInteger(options.id) && options.id > 0, 'a member number is a positive safe integer');
  invariant(
    Number.isSafeInteger(options.incarnation) && options.incarnation > 0,
    'an incarnation is a positive safe integer',
  );
  invariant(
    options.heartbeatTicks > 0 && options.electionTicks > options.heartbeatTicks,
    'elections are slower than heartbeats',
  );
  invariant(
    options.maxInflightMessages > 0 && options.snapshotWindow > 0 && options.snapshotChunkBytes > 0,
    'windows are not empty',
  );
  return options;
}
