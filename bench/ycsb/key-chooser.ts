/**
 * Which record the next operation asks for, by `requestdistribution`; never one whose insert has not ended.
 *
 * For the zipfian distributions the key space is laid out with room for the inserts that the run will do (twice the
 * expected number, as in YCSB), so that the hot records stay the same while the table grows; a record that is not there
 * yet is drawn again.
 */
import { ExactZipfianGenerator } from './generators/exact-zipfian.js';
import { ExponentialGenerator } from './generators/exponential.js';
import type { Generator } from './generators/generator.js';
import { HotspotGenerator } from './generators/hotspot.js';
import { LatestGenerator } from './generators/latest.js';
import { ScrambledZipfianGenerator } from './generators/scrambled-zipfian.js';
import { SequentialGenerator, type SharedCounter } from './generators/shared-counter.js';
import { UniformGenerator } from './generators/uniform.js';
import type { Parameters } from './parameters.js';
import type { Random } from './random.js';

export class KeyChooser implements Generator {
  readonly #chosen: Generator;
  readonly #inserts: SharedCounter;
  readonly #backwards: boolean;

  constructor(p: Parameters, random: Random, inserts: SharedCounter, sequence: SharedArrayBuffer) {
    this.#inserts = inserts;
    this.#backwards = p.requestDistribution === 'exponential';
    const low = p.insertStart;
    const high = p.insertStart + p.insertCount - 1;
    const expected = Math.floor(p.operationCount * p.proportions.INSERT * 2);
    switch (p.requestDistribution) {
      case 'uniform':
        this.#chosen = new UniformGenerator(random, low, high);
        break;
      case 'zipfian':
        this.#chosen = new ScrambledZipfianGenerator(random, low, high + 1 + expected);
        break;
      case 'zipfian-exact':
        this.#chosen = new ExactZipfianGenerator(random, low, high + expected);
        break;
      case 'latest':
        this.#chosen = new LatestGenerator(random, () => inserts.newest());
        break;
      case 'hotspot':
        this.#chosen = new HotspotGenerator(random, low, high, p.hotspotDataFraction, p.hotspotOperationFraction);
        break;
      case 'exponential':
        this.#chosen = new ExponentialGenerator(random, p.exponentialPercentile, p.recordCount * p.exponentialFraction);
        break;
      case 'sequential':
        this.#chosen = new SequentialGenerator(sequence, low, high);
        break;
    }
  }

  next(): number {
    for (;;) {
      const drawn = this.#chosen.next();
      const newest = this.#inserts.newest();
      const record = this.#backwards ? newest - drawn : drawn;
      if (record >= 0 && record <= newest) return record;
    }
  }
}
