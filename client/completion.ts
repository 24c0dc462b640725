/**
 * Completion records: what the native side says of a finished operation, and where its value lies.
 *
 * A record is CompletionField.Words numbers (native/native-client.ts) in an array that the native side owns; it is read
 * before the next call.
 *
 * Where a value lies is said by its record's Offset alone. `offsetIn` is the only place that reads it; NO_VALUE does
 * not leave this file but as "undefined", or as the ABSENT of getManyInto.
 */
import { CompletionField, NO_VALUE, type NativeClient } from '../native/native-client.js';
import { FarkvError, Status } from './errors.js';
import { SLAB_BYTES, type Slab, type ValueMemory } from './value-memory.js';

const WORDS: number = CompletionField.Words;
const ID: number = CompletionField.Id;
const STATUS: number = CompletionField.Status;
const BYTES: number = CompletionField.Bytes;
const OFFSET: number = CompletionField.Offset;

export interface Completion {
  /** The record begins at words[at]. */
  readonly words: Uint32Array;
  readonly at: number;
  /** The value did not fit in the slab and is held by the native side until taken. */
  readonly large: boolean;
  /**
   * The value; undefined: there is none. `keep`: it belongs to the caller from now on, else only until the caller
   * returns.
   */
  value(keep: boolean): Buffer | undefined;
  /** Fetches a value that is `large` into memory of the caller's own. */
  take(target: Uint8Array): void;
}

/**
 * Where the value of a record lies in the memory of which its crossing wrote the bytes before `written`; NO_VALUE: it
 * has none.
 */
export function offsetIn(written: number, words: Uint32Array, at: number): number {
  const offset = words[at + OFFSET] ?? NO_VALUE;
  if (offset === NO_VALUE) return NO_VALUE;
  const end = offset + (words[at + BYTES] ?? 0);
  // mutation: client/unwritten-bytes
  if (end > written)
    throw new FarkvError('ERR_INTERNAL', `a value of bytes ${offset} to ${end}, where ${written} were written`);
  return offset;
}

/** The value itself; undefined: there is none. */
export function valueIn(memory: Buffer, written: number, words: Uint32Array, at: number): Buffer | undefined {
  const offset = offsetIn(written, words, at);
  return offset === NO_VALUE ? undefined : memory.subarray(offset, offset + (words[at + BYTES] ?? 0));
}

/** The value of an answer that always has one. */
export function present(value: Buffer | undefined): Buffer {
  if (value === undefined) throw new FarkvError('ERR_INTERNAL', 'a GET was answered without its value');
  return value;
}

/** An answer at once: it has no value of its own, reads are handled where they are made. */
export class AnswerAtOnce implements Completion {
  readonly words: Uint32Array;
  readonly at = 0;
  readonly large = false;

  constructor(info: Uint32Array) {
    this.words = info;
  }

  value(): undefined {
    return undefined;
  }

  take(): void {
    return undefined;
  }
}

/**
 * Walks over the records of one drain. Invariant: the slab's whole rest is lent to the drain until commit, because a
 * codec may call the client while it decodes; values that were kept stay taken.
 */
export class DrainCursor implements Completion {
  readonly words: Uint32Array;
  at = 0;
  readonly #native: NativeClient;
  readonly #values: ValueMemory;
  #slab: Slab;
  #base = 0;
  /** The slab from #base on, and how much of it was written. */
  #rest: Buffer;
  #written = 0;

  constructor(native: NativeClient, values: ValueMemory) {
    this.#native = native;
    this.#values = values;
    this.#slab = values.ready();
    this.#rest = this.#slab.memory;
    this.words = native.completions;
  }

  /** Drains into the rest of a slab; returns the number of records. */
  drain(): number {
    const slab = this.#values.ready();
    this.#slab = slab;
    this.#base = slab.used;
    this.#rest = slab.memory.subarray(slab.used);
    slab.lend(SLAB_BYTES);
    const records = this.#native.drain(this.#rest);
    this.#written = this.#native.info[BYTES] ?? 0;
    return records;
  }

  /** After the last record. */
  commit(): void {
    this.#slab.giveBack(this.#base);
  }

  get large(): boolean {
    return this.words[this.at + STATUS] === Status.bufferTooSmall;
  }

  value(keep: boolean): Buffer | undefined {
    if (this.large) {
      const own = Buffer.allocUnsafeSlow(this.words[this.at + BYTES] ?? 0);
      this.take(own);
      return own;
    }
    const value = valueIn(this.#rest, this.#written, this.words, this.at);
    // mutation: client/drained-given-back
    if (keep && value !== undefined) this.#slab.hold(value.byteOffset - this.#slab.memory.byteOffset + value.length);
    return value;
  }

  take(target: Uint8Array): void {
    this.#native.take(this.words[this.at + ID] ?? 0, target);
  }
}

export { WORDS as COMPLETION_WORDS };
