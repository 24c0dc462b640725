/**
 * How long the leases are that this server grants to clients: short while a shard is about to be given up, because
 * pausing it takes as long as the longest lease on it, and only then. A move that gets nowhere must not cost the other
 * shards' clients a renewal each 50 ms.
 */
import type { Told } from './actions.js';

/** While a shard is about to be given up. */
const MOVING_LEASE_MS = 100;

export interface ShortLeasesOptions {
  /** At other times. */
  readonly leaseMs: number;
  readonly act: (action: Told) => void;
  /** Waits for as long as a lease that is granted now may last; what comes back then is for over(). */
  readonly wait: (round: object) => void;
}

/** `Life`: who wants them. */
export class ShortLeases<Life extends object> {
  readonly #options: ShortLeasesOptions;
  readonly #for = new Set<Life>();
  /** What is waited for, from the first that wants short leases until nobody has for as long as a lease. */
  #round: object | undefined;
  #short = false;

  constructor(options: ShortLeasesOptions) {
    this.#options = options;
  }

  /** No lease on this server's shards is longer than MOVING_LEASE_MS. */
  get short(): boolean {
    return this.#short || this.#options.leaseMs <= MOVING_LEASE_MS;
  }

  begin(life: Life): void {
    if (this.#options.leaseMs <= MOVING_LEASE_MS) return;
    this.#for.add(life);
    if (this.#round !== undefined) return;
    this.#round = {};
    this.#options.act({ do: 'leases', ms: MOVING_LEASE_MS });
    this.#options.wait(this.#round);
  }

  /** Every longer lease is over: returns who waited for that. Or nobody has come since the last one was given up. */
  over(round: object): readonly Life[] {
    if (round !== this.#round) return [];
    if (this.#for.size === 0) this.#end();
    else this.#short = true;
    return [...this.#for];
  }

  /** The move was called off. */
  done(life: Life): void {
    if (this.#for.delete(life) && this.#for.size === 0) this.#end();
  }

  /** The shard is given up. Where a server is emptied others follow, and do not wait once more. */
  gone(life: Life): void {
    if (!this.#for.delete(life) || this.#for.size > 0) return;
    if (this.#short) this.#options.wait((this.#round = {}));
    else this.#end();
  }

  #end(): void {
    this.#round = undefined;
    this.#short = false;
    this.#options.act({ do: 'leases', ms: this.#options.leaseMs });
  }
}
