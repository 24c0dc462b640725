/**
 * What one life of a simulated member is as an owner and as a leader, and what owners and leaders send each other
 * (owners.ts).
 */
import type { Command } from '../../core/metadata/commands.js';
import type { GrantedLeases, HeldLease } from '../../core/metadata/owner-leases.js';
import type { MetadataState } from '../../core/metadata/state.js';
import type { CopyTables } from './copy-tables.js';
import type { Plane } from './plane.js';

export type Note =
  | { readonly t: 'ask'; readonly sentMs: number; readonly incarnation: string }
  | { readonly t: 'grant'; readonly sentMs: number; readonly index: number; readonly life: number }
  | { readonly t: 'propose'; readonly command: Command; readonly proposer: string };

export interface OwnerMessage {
  readonly from: number;
  readonly to: number;
  readonly note: Note;
}

/** One life of a member as an owner, and as a leader. */
export interface Life {
  readonly incarnation: string;
  readonly lease: HeldLease;
  askedMs: number;
  /** Grants that wait for the log. */
  grants: { readonly sentMs: number; readonly gotMs: number; readonly index: number }[];
  grantor:
    | {
        readonly term: number;
        readonly leases: GrantedLeases;
        readonly taking: Map<string, readonly string[]>;
        lookMs: number | undefined;
      }
    | undefined;
  /** Messages that came while the member stood still or wrote: they lie in its sockets. */
  inbox: OwnerMessage[];
  reads: Map<
    number,
    {
      readonly from: number;
      readonly note: Extract<Note, { t: 'ask' }> | undefined;
      index: number | undefined;
      readonly term: number;
    }
  >;
  proposedMs: number;
  joinedMs: number;
  readonly plane: Plane;
  readonly copies: CopyTables | undefined;
  /** By proposer, which is used once: what this member asked for. */
  readonly asked: Map<string, Asked>;
  /** The leases of earlier lives are over. Own clock. */
  readonly earlierUntil: number;
  /** What its shards know: the metadata, and that the leases of earlier lives are over. */
  readonly seen: { metadata: MetadataState | undefined; over: boolean };
}

interface Asked {
  readonly command: Command;
  readonly settle: () => void;
  readonly untilMs: number;
}

export interface OwnerCounters {
  grants: number;
  claims: number;
  taken: number;
  refused: number;
}
