/**
 * The random numbers of a benchmark thread: xoshiro128** (Blackman and Vigna, 2018), seeded by splitmix32, so that a
 * run can be repeated with `-p seed=N`. Fast because it stays within 32-bit integer operations. Not for secrets.
 */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  constructor(seed: number) {
    let state = seed | 0;
    const next = () => {
      state = (state + 0x9e3779b9) | 0;
      let z = state;
      z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
      z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
      return (z ^ (z >>> 15)) | 0;
    };
    this.#a = next();
    this.#b = next();
    this.#c = next();
    this.#d = next() | 1;
  }

  /** A signed integer of 32 random bits. */
  int32(): number {
    const b5 = Math.imul(this.#b, 5);
    const result = Math.imul((b5 << 7) | (b5 >>> 25), 9);
    const t = this.#b << 9;
    this.#c ^= this.#a;
    this.#d ^= this.#b;
    this.#b ^= this.#c;
    this.#a ^= this.#d;
    this.#c ^= t;
    this.#d = (this.#d << 11) | (this.#d >>> 21);
    return result;
  }

  /** In [0, 1), 53 bits, as Java's nextDouble. */
  double(): number {
    return ((this.int32() >>> 6) * 134217728 + (this.int32() >>> 5)) / 9007199254740992;
  }

  /** An integer in [0, below); below is at most 2^53. The bias of the floating product is under below / 2^53. */
  below(below: number): number {
    return Math.floor(this.double() * below);
  }
}

/** Seeds of threads are far apart whatever the run's seed is. */
export function threadSeed(seed: number, thread: number): number {
  return Math.imul(seed ^ Math.imul(thread + 1, 0x85ebca6b), 0xc2b2ae35) | 0;
}
