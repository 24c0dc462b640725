/**
 * The record numbers of inserts, shared by all benchmark threads: `next` hands out, `acknowledge` tells that an insert
 * ended, and `newest` is the highest number below which every one is acknowledged, so that no thread reads a record
 * that is not yet there.
 *
 * Memory: the first number, as a double; word 0 how many were handed out, word 1 `newest`, from the first number on,
 * word 2 a lock; then one byte for each of the last 2^20 numbers.
 * Invariant: at most WINDOW numbers are handed out and not acknowledged; one more is a broken invariant and throws. At
 * most 2^31 - 1 are handed out.
 */
import type { Generator } from './generator.js';

const WINDOW = 1 << 20;
const FIRST_BYTES = 8;
const HEADER_BYTES = 24;

export class SharedCounter implements Generator {
  readonly #first: number;
  readonly #words: Int32Array;
  readonly #window: Uint8Array;

  static allocate(start: number): SharedArrayBuffer {
    const memory = new SharedArrayBuffer(HEADER_BYTES + WINDOW);
    new Float64Array(memory, 0, 1)[0] = start;
    new Int32Array(memory, FIRST_BYTES, 3)[1] = -1;
    return memory;
  }

  constructor(memory: SharedArrayBuffer) {
    this.#first = new Float64Array(memory, 0, 1)[0] ?? 0;
    this.#words = new Int32Array(memory, FIRST_BYTES, 3);
    this.#window = new Uint8Array(memory, HEADER_BYTES);
  }

  next(): number {
    return this.#first + Atomics.add(this.#words, 0, 1);
  }

  newest(): number {
    return this.#first + Atomics.load(this.#words, 1);
  }

  acknowledge(value: number): void {
    const slot = (value - this.#first) & (WINDOW - 1);
    if (Atomics.exchange(this.#window, slot, 1) === 1) throw new Error('too many inserts are not yet acknowledged');
    // Who holds the lock moves the limit; who finds it taken leaves that to the holder, or to the next acknowledgement.
    if (Atomics.compareExchange(this.#words, 2, 0, 1) !== 0) return;
    let limit = Atomics.load(this.#words, 1);
    while (Atomics.compareExchange(this.#window, (limit + 1) & (WINDOW - 1), 1, 0) === 1) limit++;
    Atomics.store(this.#words, 1, limit);
    Atomics.store(this.#words, 2, 0);
  }
}

/** Records low to high in turn, and again; shared by all threads. */
export class SequentialGenerator implements Generator {
  readonly #words: Int32Array;
  readonly #low: number;
  readonly #count: number;

  static allocate(): SharedArrayBuffer {
    return new SharedArrayBuffer(4);
  }

  constructor(memory: SharedArrayBuffer, low: number, high: number) {
    this.#words = new Int32Array(memory);
    this.#low = low;
    this.#count = high - low + 1;
  }

  next(): number {
    return this.#low + ((Atomics.add(this.#words, 0, 1) >>> 0) % this.#count);
  }
}
