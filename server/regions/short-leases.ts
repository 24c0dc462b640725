/**
 * How long the leases are that this server's data plane grants: short while a shard is about to be given away, which takes as long as the longest lease on it, and
 * only then. A move that gets nowhere must not cost the other shards' clients a renewal each 50 ms.
 */
import type { DataPlane } from '../../native/addon.js';

export interface ShortLeasesOptions {
  readonly dataPlane: Pick<DataPlane, 'setLeaseMs'>;
  /** At other times. */
  readonly leaseMs: number;
  /** How much longer the last of those may be relied on. */
  readonly leaseOverMs: number;
  readonly sleep: (ms: number) => Promise<void>;
}

/** While a shard is about to be closed for a move: closing takes as long as the longest lease. */
const MOVING_LEASE_MS = 100;

export class ShortLeases {
  readonly #options: ShortLeasesOptions;
  /** Whose being given away is under way. */
  readonly #for = new Set<object>();
  #shortening: Promise<void> | undefined;

  constructor(options: ShortLeasesOptions) {
    this.#options = options;
  }

  /** Resolves when no lease on this server's shards is longer than MOVING_LEASE_MS. They stay so until done() for each that asked. */
  async begin(whose: object): Promise<void> {
    const { dataPlane, leaseMs, leaseOverMs, sleep } = this.#options;
    if (leaseMs <= MOVING_LEASE_MS) return;
    this.#for.add(whose);
    this.#shortening ??= (async () => {
      dataPlane.setLeaseMs(MOVING_LEASE_MS);
      await sleep(leaseOverMs);
    })();
    await this.#shortening;
  }

  done(whose: object): void {
    if (!this.#for.delete(whose) || this.#for.size > 0) return;
    this.#shortening = undefined;
    this.#options.dataPlane.setLeaseMs(this.#options.leaseMs);
  }
}
