/**
 * Zipfian over age: the record that was inserted last is asked for most. `newest` answers with its number, which may
 * rise.
 */
import type { Random } from '../random.js';
import type { Generator } from './generator.js';
import { ZipfianGenerator } from './zipfian.js';

export class LatestGenerator implements Generator {
  readonly #newest: () => number;
  readonly #ages: ZipfianGenerator;

  constructor(random: Random, newest: () => number) {
    this.#newest = newest;
    this.#ages = new ZipfianGenerator(random, 0, Math.max(0, newest() - 1));
  }

  next(): number {
    const newest = this.#newest();
    return newest - this.#ages.nextOf(newest);
  }
}
