/** Exponential over age: `percentile` per cent of the draws are below `range`. Rounded down, as YCSB does. */
import type { Random } from '../random.js';
import type { Generator } from './generator.js';

export class ExponentialGenerator implements Generator {
  readonly #random: Random;
  readonly #gamma: number;

  constructor(random: Random, percentile: number, range: number) {
    this.#random = random;
    this.#gamma = -Math.log(1 - percentile / 100) / range;
  }

  next(): number {
    // 1 - u is never 0.
    return Math.floor(-Math.log(1 - this.#random.double()) / this.#gamma);
  }
}
