/** Token buckets: `burst` at once, then `perSecond`. The caller says what time it is. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

export class Bucket {
  readonly #rate: Rate;
  #left: number;
  #at: number;

  constructor(rate: Rate, nowMs: number) {
    this.#rate = rate;
    this.#left = rate.burst;
    this.#at = nowMs;
  }

  /** Takes one, if there is one. */
  take(nowMs: number): boolean {
    const { perSecond, burst } = this.#rate;
    this.#left = Math.min(burst, this.#left + (Math.max(0, nowMs - this.#at) / 1000) * perSecond);
    this.#at = nowMs;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }

  /** Takes one that is there within `mostMs`; returns when that is, in milliseconds. Undefined: none is. */
  reserve(nowMs: number, mostMs: number): number | undefined {
    if (this.take(nowMs)) return 0;
    // `take` has counted up to now.
    const wait = ((1 - this.#left) / this.#rate.perSecond) * 1000;
    if (wait > mostMs) return undefined;
    this.#left -= 1;
    return wait;
  }
}

/** One bucket for each name; of so many names as `most` those that were used last are remembered. */
export class Buckets {
  readonly #rate: Rate;
  readonly #most: number;
  readonly #all = new Map<string, Bucket>();

  constructor(rate: Rate, most: number) {
    this.#rate = rate;
    this.#most = most;
  }

  of(name: string, nowMs: number): Bucket {
    const bucket = this.#all.get(name) ?? new Bucket(this.#rate, nowMs);
    this.#all.delete(name);
    this.#all.set(name, bucket);
    if (this.#all.size <= this.#most) return bucket;
    for (const oldest of this.#all.keys()) {
      this.#all.delete(oldest);
      break;
    }
    return bucket;
  }
}
