/** What goes out of the machine (actions) and what comes back for them (results). */
import type { Command } from '../metadata/commands.js';
import type { Member, Shard } from '../metadata/state.js';

/** Has a result: the driver gives it back with the ticket, exactly once. */
export type Request =
  /** An empty table; nothing is answered. */
  | {
      readonly do: 'open';
      readonly shard: number;
      readonly worker: number;
      readonly epoch: number;
      readonly incarnation: string;
      readonly memoryBytes: number;
      /** Changes are answered when they are on the disk, too. */
      readonly durable: boolean;
      /** Of the table that is to be copied into it; 0: there is none. */
      readonly buckets: number;
    }
  /** Done when all that is in the table is on the disk; of a durable shard. */
  | { readonly do: 'snapshot'; readonly shard: number }
  /** Leases are granted, changes are taken. Also goes on with what was paused. */
  | { readonly do: 'serve'; readonly shard: number }
  /** Nothing is answered or granted. Done when every granted lease is over; the contents stay. */
  | { readonly do: 'pause'; readonly shard: number }
  /** The same, and the memory goes, and what is on the disk. */
  | { readonly do: 'close'; readonly shard: number }
  /** Copies from the owner into the open table, until little is left; follows what changes from then on. */
  | {
      readonly do: 'copy';
      readonly shard: number;
      readonly copy: string;
      readonly source: Shard;
      readonly owner: Member;
      /** The table has what it had before: only values that differ are copied. */
      readonly base: boolean;
    }
  /** The copy is none any more, here and on the disk; its table is to be the base of the next one, of this id. */
  | { readonly do: 'keep base'; readonly shard: number; readonly copy: string }
  /** The copied table follows its owner from now on. Done when the owner has answered. */
  | { readonly do: 'follow'; readonly shard: number }
  /** The shard that it is a copy of is owned like this now. */
  | { readonly do: 'follow owner'; readonly shard: number; readonly source: Shard }
  /** The copy becomes the owner's table. Not served yet: `serve` is done when nobody relies on an earlier owner. */
  | {
      readonly do: 'lead';
      readonly shard: number;
      readonly epoch: number;
      readonly incarnation: string;
      readonly copies: CopiesNow;
    }
  /**
   * The shard is to be given to this copy in sync: clients wait until nobody relies on it here, and the copy has all.
   * Done then: it goes on by `serve`, or as a copy. Failed: it is served as before.
   */
  | { readonly do: 'hand over'; readonly shard: number; readonly copy: string }
  /** What is another owner's now is a copy from now on, of this id. */
  | { readonly do: 'step down'; readonly shard: number; readonly copy: string }
  /** A later config of the same epoch, or the first one. */
  | { readonly do: 'configure'; readonly shard: number; readonly epoch: number; readonly copies: CopiesNow }
  /** The copy is waited for from now on. Done, with an `lsn`, when it may be proposed in the present config. */
  | { readonly do: 'require'; readonly shard: number; readonly copy: string }
  /**
   * From now on, in its present config, the owner answers only what its own disk has. Done when that has all that was
   * answered; of a durable shard.
   */
  | { readonly do: 'rely on disk'; readonly shard: number }
  /** A copy that is not in sync is not wanted any more. */
  | { readonly do: 'drop'; readonly shard: number; readonly copy: string }
  /** Fails when nobody listens any more where this start of the server did. */
  | { readonly do: 'probe'; readonly shard: number; readonly server: Member }
  /** Fails when it has ended, or is about to end. */
  | { readonly do: 'look'; readonly server: Member }
  /** Done when nothing of the copy is under way any more. */
  | { readonly do: 'stop'; readonly shard: number }
  /**
   * Proposes `shard-opened` with the layout that the data plane has. Done when the outcome is known, or was waited for
   * long enough: the metadata says what came of it.
   */
  | { readonly do: 'announce'; readonly shard: number; readonly epoch: number; readonly incarnation: string }
  /** Done as `announce` is. */
  | { readonly do: 'propose'; readonly command: Command }
  | { readonly do: 'wait'; readonly ms: number };

/** What an owner's data plane is to know of the shard's copies. */
export interface CopiesNow {
  readonly config: number;
  readonly minInSync: number;
  /** The policy wants no copy beside the owner's. */
  readonly alone: boolean;
  /** The owner before has handed the shard over in this epoch. */
  readonly handed: boolean;
  /** Ids of the copies beside the owner's own. */
  readonly inSync: readonly string[];
  readonly eligible: readonly string[];
  readonly joining: readonly string[];
}

/** What an owner's data plane notices of a copy. `refused`: it asks to follow, and is unknown or lacks what is not kept. */
export type ProgressEvent = 'joined' | 'late' | 'back' | 'unlinked' | 'refused';
/**
 * And that where the copy is. `unknown`: its owner does not know it, or has not kept what it lacks. `full`: it has no
 * room for a change that its owner has, and acknowledges nothing any more.
 */
export type ReplicaEvent = ProgressEvent | 'damaged' | 'unknown' | 'full';

/** A copy that its owner does not wait for yet, for it was late so many times. */
export interface RejoinBackoff {
  readonly shard: number;
  readonly member: string;
  readonly times: number;
}

/**
 * What a server that ends leaves behind: where a copy stays that has all values. `with owner`: the shard is another
 * server's, which waits for the copy here.
 */
export interface Left {
  readonly shard: number;
  readonly values: 'elsewhere' | 'on disk' | 'lost' | 'with owner';
}

/** Has no result. */
export type Effect =
  /** Before the first shard is served: what is granted from now on must be waited for by the next start. */
  | { readonly do: 'mark' }
  /** What each owner's table may register from now on, at most: those that are open, and those that are being opened. */
  | { readonly do: 'limit'; readonly memoryBytes: number }
  /** This server must not go on. */
  | {
      readonly do: 'fail';
      readonly shard: number;
      readonly what: 'opened' | 'served' | 'given up';
      readonly error: unknown;
    }
  /** What is on the disk of a copy that could not be read may go. */
  | { readonly do: 'discard'; readonly shard: number; readonly copy: string }
  | { readonly do: 'note'; readonly note: ShardEvent };

export type Action = Effect | (Request & { readonly of: number });

/** What operators are told. */
export type ShardEvent = { readonly shard: number } & (
  | { readonly of: 'served'; readonly epoch: number }
  | { readonly of: 'taken'; readonly epoch: number }
  | { readonly of: 'not closed'; readonly error: unknown }
  /** Here, of another server's shard. */
  | { readonly of: 'copy begins'; readonly from: string; readonly base: boolean }
  /** `copied`: now, and not before. */
  | { readonly of: 'copy follows'; readonly epoch: number; readonly copied: boolean }
  /** It is none any more; what it has is the base of the next one. */
  | { readonly of: 'copy kept' }
  | {
      readonly of: 'copy failed';
      readonly source: Shard;
      readonly attempts: number;
      /** It is tried again in so many milliseconds; undefined: it is called off. */
      readonly again: number | undefined;
      readonly full: boolean;
      readonly error: unknown;
    }
  /** The metadata has it no more. */
  | { readonly of: 'copy removed' }
  /** It was late, and goes on with what it has. */
  | { readonly of: 'copy joins again' }
  /** It is not what its owner has: it is to be made anew. */
  | { readonly of: 'copy damaged'; readonly epoch: number }
  /** It has no room for what its owner has. */
  | { readonly of: 'copy full' }
  /** Of a copy here, which is to become the owner's. */
  | { readonly of: 'owner gone'; readonly epoch: number }
  /** It is from this server's disk, and goes on; or was made anew elsewhere meanwhile. */
  | { readonly of: 'copy is back' }
  | { readonly of: 'copy discarded' }
  /** The shard came with a copy that is not here: another one is to be used, or none. */
  | { readonly of: 'copy missing'; readonly copy: string }
  /** The copy here becomes the owner's table. */
  | { readonly of: 'copy leads'; readonly epoch: number }
  /** At the owner: to this server's copy; what comes of that is told by the metadata. */
  | { readonly of: 'hands over'; readonly to: string }
  | { readonly of: 'not handed over'; readonly to: string }
  /** The owner's table is a copy of the next owner's from now on. */
  | { readonly of: 'handed over'; readonly epoch: number }
  /** The same, and that one took it: this owner was not heard of for a time. */
  | { readonly of: 'deposed'; readonly epoch: number }
  | { readonly of: 'copy in sync'; readonly member: string; readonly inSync: number }
  | { readonly of: 'copy late'; readonly member: string; readonly inSync: number; readonly minInSync: number }
  /** It is eligible, and cannot go on from where it is: it is to be made anew. */
  | { readonly of: 'copy refused'; readonly member: string }
  /** Its server came back without all that it had acknowledged, perhaps: it is to be made anew. */
  | { readonly of: 'copy marked'; readonly member: string }
  /** It was late so many times within a minute each, and is back: it is not waited for before `ms` are over. */
  | { readonly of: 'copy held back'; readonly member: string; readonly times: number; readonly ms: number }
);

export interface Result {
  /** Of the action that it is for. */
  readonly of: number;
  readonly failed?: Failure;
  /** Of `require`: what was committed then. */
  readonly lsn?: number;
}

export interface Failure {
  /** There is no memory for it. */
  readonly full: boolean;
  /** Of `lead`: the table is no copy, for it never followed an owner. */
  readonly none?: true;
  readonly error: unknown;
}
