/**
 * Completion records: what the native side says of a finished operation, and where its value lies.
 *
 * A record is eight numbers (native/addon.ts CompletionField) in an array that the native side owns; it is read before the next call.
 */
import { CompletionField, type NativeClient } from '../native/addon.js';
import { FarkvError, Status } from './errors.js';
import { aligned, type ValueMemory } from './value-memory.js';

const WORDS: number = CompletionField.Words;
const ID: number = CompletionField.Id;
const STATUS: number = CompletionField.Status;

export interface Completion {
  /** The record begins at words[at]. */
  readonly words: Uint32Array;
  readonly at: number;
  /** The bytes did not fit in the slab and are held by the native side until taken. */
  readonly large: boolean;
  /** Where the drained bytes lie: those at `offset` of a record begin at memory[base + offset]. */
  readonly memory: Buffer;
  readonly base: number;
  /** The value's bytes, for an OK of a GET or SCAN. Who goes on referring to them calls keep. */
  bytes(offset: number, length: number): Buffer;
  /** The drained bytes up to here belong to the caller from now on. */
  keep(end: number): void;
  /** Fetches what was too large for the slab. */
  take(target: Uint8Array): void;
}

/** An answer at once: it has no value of its own, reads are handled where they are made. */
export class AnswerAtOnce implements Completion {
  readonly words: Uint32Array;
  readonly at = 0;
  readonly large = false;
  readonly memory = Buffer.alloc(0);
  readonly base = 0;

  constructor(info: Uint32Array) {
    this.words = info;
  }

  bytes(): Buffer {
    throw new FarkvError('ERR_INTERNAL', 'an answer at once was asked for its value');
  }

  keep(): void {
    return undefined;
  }

  take(): void {
    return undefined;
  }
}

/**
 * Walks over the records of one drain. Invariant: values lie in #memory from #base on; the slab's whole rest is taken until commit, because a codec
 * may call the client while it decodes; what was kept stays taken.
 */
export class DrainCursor implements Completion {
  readonly words: Uint32Array;
  at = 0;
  readonly #native: NativeClient;
  readonly #values: ValueMemory;
  #memory: Buffer;
  #base = 0;
  #kept = 0;

  constructor(native: NativeClient, values: ValueMemory) {
    this.#native = native;
    this.#values = values;
    this.#memory = values.memory;
    this.words = native.completions;
  }

  /** Drains into the rest of the slab; returns the number of records. */
  drain(): number {
    const { memory, used } = this.#values;
    this.#memory = memory;
    this.#base = this.#kept = used;
    this.#values.used = memory.length;
    return this.#native.drain(memory.subarray(used));
  }

  /** After the last record. */
  commit(): void {
    if (this.#values.memory === this.#memory) this.#values.used = aligned(this.#kept);
  }

  get large(): boolean {
    return this.words[this.at + STATUS] === Status.bufferTooSmall;
  }

  get memory(): Buffer {
    return this.#memory;
  }

  get base(): number {
    return this.#base;
  }

  bytes(offset: number, length: number): Buffer {
    const start = this.#base + offset;
    return this.#memory.subarray(start, start + length);
  }

  keep(end: number): void {
    this.#kept = Math.max(this.#kept, this.#base + end);
  }

  take(target: Uint8Array): void {
    this.#native.take(this.words[this.at + ID] ?? 0, target);
  }
}

export { WORDS as COMPLETION_WORDS };
