/**
 * Zipf's law over the records, exact at every rank: rank i of n has the probability i^-theta / zeta(n, theta). Rank 1
 * is the record `low`.
 *
 * Rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
 * distributions", ACM TOMACS 6(3), 1996): a number is drawn from the area under the continuous curve x^-theta, by the
 * inverse of its integral H, rounded to the nearest rank k, and taken if it fell into the part of k's strip that the
 * histogram covers. No table, and under 1.1 draws a number. Not what YCSB calls zipfian: see scrambled-zipfian.ts.
 */
import type { Random } from '../random.js';
import type { Generator } from './generator.js';
import { ZIPFIAN_CONSTANT } from './zipfian.js';

export class ExactZipfianGenerator implements Generator {
  readonly #random: Random;
  readonly #low: number;
  readonly #count: number;
  readonly #theta: number;
  /** H(1.5) - 1: the area to the left of rank 1's strip begins here. */
  readonly #areaLow: number;
  readonly #areaHigh: number;
  /** A draw this close below its rank is taken without computing H. */
  readonly #sure: number;

  constructor(random: Random, low: number, high: number, theta = ZIPFIAN_CONSTANT) {
    this.#random = random;
    this.#low = low;
    this.#count = high - low + 1;
    this.#theta = theta;
    this.#areaLow = this.#integral(1.5) - 1;
    this.#areaHigh = this.#integral(this.#count + 0.5);
    this.#sure = 2 - this.#inverse(this.#integral(2.5) - Math.pow(2, -theta));
  }

  next(): number {
    for (;;) {
      const area = this.#areaHigh + this.#random.double() * (this.#areaLow - this.#areaHigh);
      const x = this.#inverse(area);
      const rank = Math.min(this.#count, Math.max(1, Math.floor(x + 0.5)));
      if (rank - x <= this.#sure || area >= this.#integral(rank + 0.5) - Math.pow(rank, -this.#theta))
        return this.#low + rank - 1;
    }
  }

  /** H(x) = (x^(1-theta) - 1) / (1 - theta), by expm1 so that a theta near 1 keeps its digits. */
  #integral(x: number): number {
    const log = Math.log(x);
    const t = (1 - this.#theta) * log;
    return t === 0 ? log : (log * Math.expm1(t)) / t;
  }

  #inverse(area: number): number {
    const t = Math.max(-1, area * (1 - this.#theta));
    return Math.exp(t === 0 ? area : (area * Math.log1p(t)) / t);
  }
}
