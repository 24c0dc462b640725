/**
 * What YCSB means by `requestdistribution=zipfian`: a zipfian rank among 10^10 items, hashed, modulo the number of
 * records. The hot records are spread over the key space, and which ones they are does not depend on how many records
 * there are.
 *
 * Because 10^10 items are folded onto the records, this is not Zipf's law over the records: the hottest record gets 1 /
 * zeta(10^10) = 3.8 % of the requests however many there are.
 */
import { fnvModulo } from '../fnv.js';
import type { Random } from '../random.js';
import type { Generator } from './generator.js';
import { ZIPFIAN_CONSTANT, ZipfianGenerator } from './zipfian.js';

const ITEMS = 10_000_000_000;
/** zeta(10^10, 0.99): published by YCSB, since adding it up takes minutes. */
export const SCRAMBLED_ZETA = 26.46902820178302;

export class ScrambledZipfianGenerator implements Generator {
  readonly #ranks: ZipfianGenerator;
  readonly #low: number;
  readonly #count: number;

  constructor(random: Random, low: number, high: number) {
    this.#ranks = new ZipfianGenerator(random, 0, ITEMS, ZIPFIAN_CONSTANT, SCRAMBLED_ZETA);
    this.#low = low;
    this.#count = high - low + 1;
  }

  next(): number {
    return this.#low + fnvModulo(this.#ranks.next(), this.#count);
  }
}
