/** A choice among named things by weight. */
import type { Random } from '../random.js';

export class DiscreteGenerator<T> {
  readonly #random: Random;
  readonly #values: readonly T[];
  readonly #upTo: Float64Array;

  constructor(random: Random, weights: readonly (readonly [value: T, weight: number])[]) {
    const chosen = weights.filter(([, weight]) => weight > 0);
    if (chosen.length === 0) throw new RangeError('no weight is above 0');
    const sum = chosen.reduce((total, [, weight]) => total + weight, 0);
    let upTo = 0;
    this.#random = random;
    this.#values = chosen.map(([value]) => value);
    this.#upTo = Float64Array.from(chosen, ([, weight]) => (upTo += weight / sum));
  }

  next(): T {
    const u = this.#random.double();
    let i = 0;
    while (i < this.#values.length - 1 && u >= (this.#upTo[i] ?? 1)) i++;
    return this.#values[i] as T;
  }
}
