/**
 * The states of a shard at one server. Each names what it waits for; a result counts only in the state that asked for
 * it.
 */

/** One opening of one shard at this server. */
interface Opening {
  readonly shard: number;
  /** Under which it is opened. */
  readonly epoch: number;
  /** Of its contents: 64 random bits, hex. For a shard that comes it is also the name of the copy. */
  readonly incarnation: string;
  readonly memoryBytes: number;
}

/** A shard that is this server's. */
export interface Held extends Opening {
  readonly kind: 'held';
  state: HeldState;
}

export type HeldState =
  /** The data plane allocates and registers its memory. */
  | { readonly is: 'opening' }
  /**
   * Open. Waits for the metadata to have its regions, then for the leases of the last run, then for `serve`. `busy`:
   * one of these was asked for.
   */
  | { readonly is: 'announced'; busy: boolean }
  | { readonly is: 'serving' }
  /** Served, and about to be sealed for this copy: waits until leases are short. */
  | { readonly is: 'draining'; readonly copy: string }
  /**
   * Read, and not changed, for the sake of this copy: waits until the metadata says that it has all. `telling`: the
   * move is being called off from here.
   */
  | {
      readonly is: 'sealed';
      readonly copy: string;
      readonly to: string;
      at: 'sealing' | 'sealed' | 'late' | 'unsealing';
      telling: boolean;
    }
  /**
   * Served by nobody, for the sake of this copy: waits for its leases, says that it is given up, waits for the next
   * owner to open it.
   */
  | {
      readonly is: 'paused';
      readonly copy: string;
      readonly to: string;
      at: 'pausing' | 'paused' | 'resuming' | 'unsealing';
      telling: boolean;
    }
  /** Not this server's any more. */
  | { readonly is: 'closing' };

/** A shard that is another server's and moves to this one. */
export interface Coming extends Opening {
  readonly kind: 'coming';
  /** In this server's data plane. */
  readonly worker: number;
  /** Of the move. */
  readonly planned: number;
  attempts: number;
  /** `last` was applied for this copy. */
  last: boolean;
  /** There was no memory for it. */
  full: boolean;
  state: ComingState;
}

export type ComingState =
  | { readonly is: 'opening' }
  /** `waiting`: for the owner to have opened it; `telling`: all was copied once, and the metadata is to have that. */
  | { readonly is: 'copying'; at: 'waiting' | 'copying' | 'telling'; busy: boolean }
  /** The owner is to take no more changes; the last part is copied. */
  | { readonly is: 'last' }
  /** It has all. `telling`: the metadata is to have that; `waiting`: for the owner to give it up. Given, it is held. */
  | { readonly is: 'copied'; at: 'telling' | 'stopping' | 'waiting'; busy: boolean }
  /** The copy ends, then its table is closed. */
  | {
      readonly is: 'clearing';
      readonly then: 'end' | 'again' | 'call off';
      readonly open: boolean;
      at: 'stopping' | 'closing';
    }
  | { readonly is: 'resting' }
  /** The owner is to keep it. */
  | { readonly is: 'calling off'; busy: boolean };

export type Life = Held | Coming;

export function become<L extends Life>(life: L, state: L['state']): void {
  life.state = state;
}

/** Clients may be answered. */
export function serves(life: Life): boolean {
  return (
    life.kind === 'held' && (life.state.is === 'serving' || life.state.is === 'draining' || life.state.is === 'sealed')
  );
}
