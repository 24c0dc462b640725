/**
 * What clients may rely on, and the check: never two owners for one shard. A claim is what an owner has granted at
 * most: from now until its own lease ends, by its own clock. It outlives the owner's process, and a pause of it, as
 * clients' leases do.
 */
import { Violation } from './checker.js';

interface Claim {
  readonly owner: number;
  readonly epoch: number;
  /** World time in microseconds. */
  until: number;
}

export class Claims {
  readonly #byShard = new Map<number, Claim[]>();

  constructor(private readonly nowUs: () => number) {}

  /** Clients of this owner may rely on it until then. Throws a Violation if they may still rely on another owner. */
  add(shard: number, owner: number, epoch: number, until: number): void {
    const now = this.nowUs();
    const claims = (this.#byShard.get(shard) ?? []).filter((c) => c.until > now);
    for (const other of claims) {
      if (other.owner === owner && other.epoch === epoch) continue;
      throw new Violation(
        'owner leases',
        `shard ${shard} is served by ${owner} in epoch ${epoch}, and clients may rely on ${other.owner} in epoch ${other.epoch} for ${Math.ceil((other.until - now) / 1000)} ms more`,
      );
    }
    const own = claims.find((c) => c.owner === owner && c.epoch === epoch);
    if (own === undefined) claims.push({ owner, epoch, until });
    else own.until = Math.max(own.until, until);
    this.#byShard.set(shard, claims);
  }
}
