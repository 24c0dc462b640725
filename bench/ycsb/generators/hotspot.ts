/**
 * A fraction of the operations goes to a hot set at the low end of the records, the rest to the others; uniform in
 * each.
 */
import type { Random } from '../random.js';
import type { Generator } from './generator.js';

export class HotspotGenerator implements Generator {
  readonly #random: Random;
  readonly #low: number;
  readonly #hot: number;
  readonly #cold: number;
  readonly #hotOperations: number;

  constructor(random: Random, low: number, high: number, hotDataFraction: number, hotOperationFraction: number) {
    const count = high - low + 1;
    this.#random = random;
    this.#low = low;
    this.#hot = Math.floor(count * hotDataFraction);
    this.#cold = count - this.#hot;
    // An empty set cannot be asked, whatever its share.
    this.#hotOperations = this.#hot === 0 ? 0 : this.#cold === 0 ? 1 : hotOperationFraction;
  }

  next(): number {
    if (this.#random.double() < this.#hotOperations) return this.#low + this.#random.below(this.#hot);
    return this.#low + this.#hot + this.#random.below(this.#cold);
  }
}
