/** What one life of a simulated member is as an owner and as a leader, and what owners and leaders send each other (owners.ts). */
import type { Command } from '../../core/metadata/commands.js';
import type { GrantedLeases, HeldLease } from '../../core/metadata/owner-leases.js';
import type { Copy } from './contents.js';

export type Note =
  | { readonly t: 'ask'; readonly sentMs: number; readonly incarnation: string }
  | { readonly t: 'grant'; readonly sentMs: number; readonly index: number; readonly life: number }
  | { readonly t: 'propose'; readonly command: Command };

export interface OwnerMessage {
  readonly from: number;
  readonly to: number;
  readonly note: Note;
}

/** What clients may rely on. */
export interface Claim {
  readonly owner: number;
  readonly epoch: number;
  /** World time in microseconds. */
  until: number;
}

export interface Clock {
  readonly rate: number;
  readonly fromMs: number;
}

/** One life of a member as an owner, and as a leader. */
export interface Life {
  readonly incarnation: string;
  readonly lease: HeldLease;
  askedMs: number;
  /** Grants that wait for the log. */
  grants: { readonly sentMs: number; readonly gotMs: number; readonly index: number }[];
  office: { readonly term: number; readonly leases: GrantedLeases; readonly taking: Map<string, string>; lookMs: number | undefined } | undefined;
  /** Messages that came while the member stood still or wrote: they lie in its sockets. */
  inbox: OwnerMessage[];
  reads: Map<number, { readonly from: number; readonly note: Extract<Note, { t: 'ask' }> | undefined; index: number | undefined; readonly term: number }>;
  proposedMs: number;
  opened: Set<string>;
  /**
   * `shard/epoch` that it has closed, and for which copy. The change that says so may be on its way for long, also when the move is called off meanwhile. The
   * owner goes on when that copy is lost.
   */
  readonly gaveUp: Map<string, string>;
  /** The same of those that take no changes, because their last part is being copied: for which copy. */
  readonly sealed: Map<string, string | undefined>;
  /** Until when clients may rely on what was granted in this life, by `shard/epoch`, and on what was in earlier ones. Own clock. */
  readonly granted: Map<string, number>;
  readonly earlierUntil: number;
  /** By shard: what is copied to here. */
  readonly copies: Map<number, Copy>;
}

export interface OwnerCounters {
  grants: number;
  claims: number;
  taken: number;
  released: number;
  refused: number;
  /** Shards that were served with what had been copied. */
  copied: number;
}
