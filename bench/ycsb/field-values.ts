/**
 * What is written into fields: random printable bytes or, with `dataintegrity=true`, bytes that follow from the key and
 * the field's name as YCSB makes them, so that every later read can be checked without remembering anything.
 *
 * Random bytes are slices of a pool that is filled once: making 1,000 random bytes anew would cost as much as a PUT.
 */
import type { Generator } from './generators/generator.js';
import type { Random } from './random.js';
import { readDirectory, recordBytes, writeDirectory } from './record.js';

const POOL_BYTES = 1 << 20;

export class FieldValues {
  readonly #random: Random;
  readonly #lengths: Generator;
  readonly #names: readonly string[];
  readonly #deterministic: boolean;
  readonly #pool: Buffer;
  readonly #lengthsNow: Uint32Array;

  constructor(random: Random, lengths: Generator, names: readonly string[], deterministic: boolean, longest: number) {
    this.#random = random;
    this.#lengths = lengths;
    this.#names = names;
    this.#deterministic = deterministic;
    this.#lengthsNow = new Uint32Array(names.length);
    this.#pool = Buffer.allocUnsafe(deterministic ? 0 : POOL_BYTES + longest);
    for (let i = 0; i < this.#pool.length; i++) this.#pool[i] = 32 + ((random.int32() >>> 8) % 95);
  }

  /** A record with all fields new. */
  record(key: string): Buffer {
    const lengths = this.#lengthsNow;
    for (let i = 0; i < lengths.length; i++) lengths[i] = this.#lengths.next();
    const record = Buffer.allocUnsafe(recordBytes(lengths));
    let at = writeDirectory(record, lengths);
    for (let i = 0; i < lengths.length; i++) {
      const length = lengths[i] ?? 0;
      this.#fill(record, at, length, key, i);
      at += length;
    }
    return record;
  }

  /** One field new. */
  field(key: string, index: number): Buffer {
    const field = Buffer.allocUnsafe(this.#lengths.next());
    this.#fill(field, 0, field.length, key, index);
    return field;
  }

  /**
   * Whether a record that was read is what dataintegrity=true wrote: one field of it, or every field where `index` is
   * undefined.
   */
  verify(key: string, record: Uint8Array, index: number | undefined): boolean {
    const spans = readDirectory(record);
    if (spans?.length !== this.#names.length) return false;
    return spans.every((span, i) => {
      if (index !== undefined && i !== index) return true;
      const expected = this.field(key, i);
      return expected.equals(record.subarray(span.start, span.end));
    });
  }

  #fill(target: Buffer, offset: number, length: number, key: string, index: number): void {
    if (this.#deterministic) {
      fillDeterministic(target, offset, length, `${key}:${this.#names[index] ?? ''}`);
    } else {
      const from = this.#random.below(POOL_BYTES);
      this.#pool.copy(target, offset, from, from + length);
    }
  }
}

/**
 * The first `length` bytes of: prefix, then again and again ":" and the decimal Java String.hashCode of everything so
 * far, that ":" included. The hash is carried along (h = 31 h + c), so the whole is linear.
 */
export function fillDeterministic(target: Buffer, offset: number, length: number, prefix: string): void {
  let hash = 0;
  let at = 0;
  const append = (text: string) => {
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      hash = (Math.imul(31, hash) + code) | 0;
      if (at < length) target[offset + at] = code;
      at++;
    }
  };
  append(prefix);
  while (at < length) {
    append(':');
    append(String(hash));
  }
}
