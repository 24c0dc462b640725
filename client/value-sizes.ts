/**
 * How large the values are that batches read, by the answers seen lately: how much memory a crossing wants, and how many
 * keys may be asked for at once. Values that come over a network share it, and each key has its own time-out: however
 * many keys a call has, only so many bytes are on their way.
 */
import type { ValueReader } from './value-reader.js';

/** Bytes of memory for the values of one crossing. */
const MEMORY_MAX = 8 << 20;
/** Bytes of values that are asked for at once. */
const ASKED_MAX = 16 << 20;
/** Keys that are asked for at once until an answer has come. */
const FIRST_KEYS = 64;
/** Bytes of a value until an answer has come. */
const GUESS = 256;

export class ValueSizes {
  /** Bytes of a value, smoothed; an absent key's has none. undefined before the first answer. */
  #usual: number | undefined;
  /** Answers that #usual does not know yet, and the bytes of their values. */
  #answers = 0;
  #bytes = 0;

  /** A key was answered with a value of so many bytes; 0: it is absent. */
  answered(bytes: number): void {
    this.#answers++;
    this.#bytes += bytes;
  }

  /** `reader`, and what it reads is an answer. */
  measured<T>(reader: ValueReader<T>): ValueReader<T> {
    return {
      copies: reader.copies,
      read: (bytes, words, at) => {
        this.answered(bytes.length);
        return reader.read(bytes, words, at);
      },
    };
  }

  /** Takes the answers in that came since: called before keys are handed over. */
  learn(): void {
    if (this.#answers === 0) return;
    const bytes = this.#bytes / this.#answers;
    this.#usual = this.#usual === undefined ? bytes : this.#usual + (bytes - this.#usual) / 4;
    this.#answers = 0;
    this.#bytes = 0;
  }

  /** So many keys may be asked for at once; at least 2. */
  get together(): number {
    if (this.#usual === undefined) return FIRST_KEYS;
    return Math.max(2, Math.floor(ASKED_MAX / Math.max(1, this.#usual)));
  }

  /** Bytes of memory for a crossing of so many keys. */
  memoryOf(keys: number): number {
    return Math.min(MEMORY_MAX, Math.ceil(keys * this.#withMargin) + 1024);
  }

  /** So many keys as have values for the memory of one crossing. */
  get keysOfMemory(): number {
    return Math.floor(MEMORY_MAX / this.#withMargin);
  }

  get #withMargin(): number {
    return 1.25 * Math.max(1, this.#usual ?? GUESS);
  }
}
