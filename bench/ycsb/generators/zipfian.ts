/**
 * Zipf's law with the exponent 0.99, as YCSB draws from it: the approximation of Gray et al., "Quickly Generating
 * Billion-Record Synthetic Databases" (SIGMOD 1994), figure 8. The first two ranks have their exact frequency, the rest
 * follows a continuous curve; the smallest integer is the most frequent.
 *
 * The number of items may grow (`nextOf`): zeta(n) is then continued, not begun again. As in YCSB, eta goes on using
 * the number of items given at first. For a sampler that is exact at every rank see exact-zipfian.ts.
 */
import type { Random } from '../random.js';
import type { Generator } from './generator.js';

export const ZIPFIAN_CONSTANT = 0.99;

/** sum of 1 / i^theta for from < i <= to, added to `sum`. */
export function zeta(from: number, to: number, theta: number, sum = 0): number {
  for (let i = from + 1; i <= to; i++) sum += 1 / Math.pow(i, theta);
  return sum;
}

export class ZipfianGenerator implements Generator {
  readonly #random: Random;
  readonly #base: number;
  readonly #items: number;
  readonly #theta: number;
  readonly #zeta2: number;
  readonly #alpha: number;
  readonly #second: number;
  #counted: number;
  #zetaN: number;
  #eta: number;

  /** From low to high, both included. zetaN may be given where summing it up would take long. */
  constructor(
    random: Random,
    low: number,
    high: number,
    theta = ZIPFIAN_CONSTANT,
    zetaN = zeta(0, high - low + 1, theta),
  ) {
    this.#random = random;
    this.#base = low;
    this.#items = high - low + 1;
    this.#theta = theta;
    this.#zeta2 = zeta(0, 2, theta);
    this.#alpha = 1 / (1 - theta);
    this.#second = 1 + Math.pow(0.5, theta);
    this.#counted = this.#items;
    this.#zetaN = zetaN;
    this.#eta = this.#etaNow();
  }

  next(): number {
    return this.nextOf(this.#items);
  }

  /** Draws from `items` items, which may be more than last time; fewer leave the frequencies as they are. */
  nextOf(items: number): number {
    if (items > this.#counted) {
      this.#zetaN = zeta(this.#counted, items, this.#theta, this.#zetaN);
      this.#counted = items;
      this.#eta = this.#etaNow();
    }
    const u = this.#random.double();
    const uz = u * this.#zetaN;
    if (uz < 1) return this.#base;
    if (uz < this.#second) return this.#base + 1;
    return this.#base + Math.floor(items * Math.pow(this.#eta * u - this.#eta + 1, this.#alpha));
  }

  #etaNow(): number {
    return (1 - Math.pow(2 / this.#items, 1 - this.#theta)) / (1 - this.#zeta2 / this.#zetaN);
  }
}
