/** Every integer from low to high, both included, equally often. */
import type { Random } from '../random.js';
import type { Generator } from './generator.js';

export class UniformGenerator implements Generator {
  readonly #random: Random;
  readonly #low: number;
  readonly #count: number;

  constructor(random: Random, low: number, high: number) {
    this.#random = random;
    this.#low = low;
    this.#count = high - low + 1;
  }

  next(): number {
    return this.#low + this.#random.below(this.#count);
  }
}

/** One integer, always. */
export class ConstantGenerator implements Generator {
  readonly #value: number;

  constructor(value: number) {
    this.#value = value;
  }

  next(): number {
    return this.#value;
  }
}
