/**
 * What members say to each other. Plain objects of safe integers, booleans and bytes, so that any codec carries them; a
 * message from outside goes through checkRaftMessage (check-message.ts) before it is stepped.
 *
 * Any of them may be lost, repeated, delayed or reordered; none may be changed on the way. `term` is the sender's term
 * when it spoke, except in a pre-vote and its grant: there it is the term that an election would have.
 */
import type { Configuration } from './configuration.js';
import type { Entry } from './entry.js';

interface Envelope {
  readonly from: number;
  readonly to: number;
  readonly term: number;
}

/** Leader to all: entries that follow (prevIndex, prevTerm), and how far the log is committed. */
export interface Append extends Envelope {
  readonly type: 'append';
  readonly prevIndex: number;
  readonly prevTerm: number;
  readonly commit: number;
  readonly entries: readonly Entry[];
}

/** The sender's durable log equals the leader's up to `index`. */
export interface AppendAccept extends Envelope {
  readonly type: 'append-accept';
  readonly index: number;
}

/**
 * The append at prevIndex `index` did not fit; the logs can agree at `hintIndex` at most, where the sender has
 * `hintTerm`.
 */
export interface AppendReject extends Envelope {
  readonly type: 'append-reject';
  readonly index: number;
  readonly hintIndex: number;
  readonly hintTerm: number;
}

/**
 * Leader to all. `round` numbers the leader's ReadIndex rounds in this term; `commit` is never beyond what the receiver
 * has.
 */
export interface Heartbeat extends Envelope {
  readonly type: 'heartbeat';
  readonly commit: number;
  readonly round: number;
}

export interface HeartbeatReply extends Envelope {
  readonly type: 'heartbeat-reply';
  readonly round: number;
}

export interface VoteRequest extends Envelope {
  readonly type: 'vote' | 'pre-vote';
  readonly lastIndex: number;
  readonly lastTerm: number;
  /** The leader asked for this election (timeout-now), so the receiver may vote although it hears that leader. */
  readonly transfer: boolean;
}

export interface VoteReply extends Envelope {
  readonly type: 'vote-reply' | 'pre-vote-reply';
  readonly granted: boolean;
}

/**
 * What a snapshot stands for: everything up to `index`, the last of it in `term`, and the configuration that held
 * there.
 */
export interface SnapshotMeta {
  readonly index: number;
  readonly term: number;
  readonly config: Configuration;
}

/** One piece of a snapshot of `bytes` bytes, at `offset`. A snapshot of no bytes has one empty chunk. */
export interface SnapshotChunk extends Envelope {
  readonly type: 'snapshot-chunk';
  readonly snapshot: SnapshotMeta;
  readonly bytes: number;
  readonly offset: number;
  readonly chunk: Uint8Array;
}

/** The sender holds the first `received` bytes of the snapshot at `index`. */
export interface SnapshotReply extends Envelope {
  readonly type: 'snapshot-reply';
  readonly index: number;
  readonly received: number;
}

/** Follower to leader. (from, incarnation, request) never repeats. */
export interface ReadIndexRequest extends Envelope {
  readonly type: 'read-index';
  readonly incarnation: number;
  readonly request: number;
}

/** A read that waits until `index` is applied is linearizable. */
export interface ReadIndexReply extends Envelope {
  readonly type: 'read-index-reply';
  readonly incarnation: number;
  readonly request: number;
  readonly index: number;
}

/** Leader to the member that shall lead next: campaign at once. */
export interface TimeoutNow extends Envelope {
  readonly type: 'timeout-now';
}

/** Answer to a leader or candidate of an old term, for it to learn the newer one. */
export interface Stale extends Envelope {
  readonly type: 'stale';
}

export type RaftMessage =
  | Append
  | AppendAccept
  | AppendReject
  | Heartbeat
  | HeartbeatReply
  | VoteRequest
  | VoteReply
  | SnapshotChunk
  | SnapshotReply
  | ReadIndexRequest
  | ReadIndexReply
  | TimeoutNow
  | Stale;
