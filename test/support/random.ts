/**
 * Seeded randomness for tests. A test that draws from it says in its log which seed it had and how to run the same
 * again; AVA shows a test's log when it fails.
 */
import type { ExecutionContext } from 'ava';

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** 32 random bits (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  }

  /** An integer from 0 to below - 1. */
  below(below: number): number {
    return Math.floor((this.next() / 2 ** 32) * below);
  }

  pick<T>(from: readonly T[]): T {
    const one = from[this.below(from.length)];
    if (one === undefined) throw new RangeError('nothing to pick from');
    return one;
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.next() & 0xff);
  }
}

/** A run says the same of the same code. */
const SEED = 20_261_127;

/** The same in every run, or FARKV_SEED, which may be `fresh`. */
export function chosenSeed(): number {
  const given = process.env.FARKV_SEED ?? String(SEED);
  return given === 'fresh' ? Math.floor(Math.random() * 2 ** 32) : Number(given);
}

/** `file` is import.meta.filename of the test. */
export function seeded(t: ExecutionContext, file: string): Random {
  const seed = chosenSeed();
  t.log(
    `seed ${seed}; replay: FARKV_SEED=${seed} npx ava ${file.slice(file.lastIndexOf('/dist/') + 1)} -m '${t.title}'`,
  );
  return new Random(seed);
}
