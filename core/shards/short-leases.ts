/**
 * How long the leases are that this server grants to clients: short while a shard is about to be given up, because
 * pausing it takes as long as the longest lease on it, and only then. A move that gets nowhere must not cost the other
 * shards' clients a renewal each 50 ms.
 */
import type { Told } from './actions.js';
import type { Life } from './life.js';

/** While a shard is about to be given up. */
const MOVING_LEASE_MS = 100;

export interface ShortLeasesOptions {
  /** At other times. */
  readonly leaseMs: number;
  readonly act: (action: Told) => void;
  /** Waits until the last longer lease is over; what comes back then is for over(). */
  readonly wait: (round: object) => void;
}

export class ShortLeases {
  readonly #options: ShortLeasesOptions;
  readonly #for = new Set<Life>();
  /** From the first that wants short leases to the last that does not any more. */
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

  /** Every longer lease is over. Returns who waited for that. */
  over(round: object): readonly Life[] {
    if (round !== this.#round) return [];
    this.#short = true;
    return [...this.#for];
  }

  done(life: Life): void {
    if (!this.#for.delete(life) || this.#for.size > 0) return;
    this.#round = undefined;
    this.#short = false;
    this.#options.act({ do: 'leases', ms: this.#options.leaseMs });
  }
}
