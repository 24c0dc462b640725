/** What goes out of the machine (actions) and what comes back for them (results). */
import type { Command } from '../metadata/commands.js';
import type { Member, Shard } from '../metadata/state.js';

/** Has a result: the driver gives it back with the ticket, exactly once. */
export type Asked =
  /** An empty table; nothing is answered. */
  | {
      readonly do: 'open';
      readonly shard: number;
      readonly worker: number;
      readonly epoch: number;
      readonly incarnation: string;
      readonly memoryBytes: number;
    }
  /** Leases are granted, changes are taken. Also goes on with what was paused. */
  | { readonly do: 'serve'; readonly shard: number }
  /** No more changes are taken, for the sake of this copy; reads go on. Without a copy: changes are taken again. */
  | { readonly do: 'seal'; readonly shard: number; readonly copy: string | undefined }
  /** Nothing is answered or granted. Done when every granted lease is over; the contents stay. */
  | { readonly do: 'pause'; readonly shard: number }
  /** The same, and the memory goes. */
  | { readonly do: 'close'; readonly shard: number }
  /** Copies from the owner into the open table, until little is left; follows what changes from then on. */
  | {
      readonly do: 'copy';
      readonly shard: number;
      readonly copy: string;
      readonly source: Shard;
      readonly owner: Member;
    }
  /** Done when the owner is sealed for this copy and both have the same. */
  | { readonly do: 'finish'; readonly shard: number }
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

/** Has no result. */
export type Told =
  /** Before the first shard is served: what is granted from now on must be waited for by the next start. */
  | { readonly do: 'mark' }
  /** Of all that is granted from now on, in milliseconds. */
  | { readonly do: 'leases'; readonly ms: number }
  /** This server must not go on. */
  | {
      readonly do: 'fail';
      readonly shard: number;
      readonly what: 'opened' | 'served' | 'given up';
      readonly error: unknown;
    }
  | { readonly do: 'note'; readonly note: Note };

export type Action = Told | (Asked & { readonly of: number });

/** What operators are told. */
export type Note = { readonly shard: number } & (
  | { readonly of: 'served'; readonly epoch: number }
  | { readonly of: 'taken'; readonly epoch: number }
  /** It was copied to here, and the copy is not here any more. */
  | { readonly of: 'empty' }
  | { readonly of: 'leaving' }
  /** The move is called off: its last part was not copied within `ms`. */
  | { readonly of: 'late'; readonly to: string; readonly epoch: number; readonly ms: number }
  /** The move is no more, and the shard is served again with all that is in it. */
  | { readonly of: 'resumed'; readonly to: string }
  /** It moves to here: a copy begins. */
  | { readonly of: 'comes' }
  | { readonly of: 'copying'; readonly from: string }
  /**
   * `again`: it is tried again in so many milliseconds, with `most` attempts in all; undefined: its move is called off.
   */
  | {
      readonly of: 'not copied';
      readonly source: Shard;
      readonly attempts: number;
      readonly most: number;
      readonly again: number | undefined;
      readonly full: boolean;
      readonly error: unknown;
    }
  | { readonly of: 'copied' }
  /** It is open with all values of its owner; the metadata may still call the move off. */
  | { readonly of: 'came'; readonly epoch: number }
  | { readonly of: 'not closed'; readonly error: unknown }
);

export interface Result {
  /** Of the action that it is for. */
  readonly of: number;
  readonly failed?: Failure;
}

export interface Failure {
  /** There is no memory for it. */
  readonly full: boolean;
  readonly error: unknown;
}
