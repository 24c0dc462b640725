/**
 * The key of a record: "user" and the record's number, hashed unless `insertorder=ordered`, padded with zeros to
 * `zeropadding` digits.
 *
 * A hashed name costs about 200 ns to make, as much as a part of a GET over shared memory; names of the first 2^18
 * records are remembered once made, so that a run measures the store. Not for: choosing a record.
 */
import { decimal64, fnvHash64, hashed } from './fnv.js';

const REMEMBERED = 1 << 18;

export class KeyNames {
  readonly #ordered: boolean;
  readonly #zeroPadding: number;
  readonly #names: (string | undefined)[];

  constructor(ordered: boolean, zeroPadding: number, records: number) {
    this.#ordered = ordered;
    this.#zeroPadding = zeroPadding;
    this.#names = new Array<string | undefined>(Math.min(REMEMBERED, records)).fill(undefined);
  }

  of(record: number): string {
    if (record >= this.#names.length) return this.#build(record);
    return (this.#names[record] ??= this.#build(record));
  }

  #build(record: number): string {
    if (this.#ordered) return 'user' + String(record).padStart(this.#zeroPadding, '0');
    fnvHash64(record);
    return 'user' + decimal64(hashed.high, hashed.low).padStart(this.#zeroPadding, '0');
  }
}
