/**
 * getMany and getManyInto: one crossing into the native side for up to CHUNK keys; what was not answered at once are operations of one batch.
 *
 * Values of a getMany lie side by side in memory of its own, whose size follows the values seen lately, or in the slabs of a drain; a value that does
 * not fit is read once more by itself. Those of a getManyInto lie in the caller's memory.
 *
 * The caller's array is copied first: an element may be a getter that throws, and within the crossing that would leave operations posted that nobody
 * waits for. What the caller does to it later changes nothing.
 */
import { CompletionField, PENDING_STATUS, type NativeClient } from '../native/addon.js';
import { Batch, type BatchFailure } from './batch.js';
import { COMPLETION_WORDS, type Completion } from './completion.js';
import { FarkvError, Status, statusError } from './errors.js';
import { KeyText } from './key-text.js';
import type { Limits, Operations } from './operations.js';
import { PendingRead, tooSmall, type Key } from './pending.js';
import type { ValueReader } from './value-reader.js';

const ID: number = CompletionField.Id;
const STATUS: number = CompletionField.Status;
const BYTES: number = CompletionField.Bytes;
const OFFSET: number = CompletionField.Offset;

const CHUNK = 1024;
const MEMORY_MAX = 8 << 20;
/** In the place of an offset: there is no such key. */
export const ABSENT = 0xffffffff;

/** What becomes of the values of one batch. */
interface Sink {
  /** A value at bytes[offset ...]; its record is words[at ...]. */
  found(i: number, bytes: Buffer, offset: number, length: number, words: Uint32Array, at: number): void;
  /** Its bytes go on being referred to. */
  readonly keeps: boolean;
  /** Read key i by itself: there was no room to post it (bytes undefined), or none for its value; undefined: that will not help. */
  again(i: number, bytes: number | undefined): Promise<unknown> | undefined;
}

export class BatchReads {
  readonly #native: NativeClient;
  readonly #operations: Operations;
  /** Bytes of a value, smoothed; the first batch guesses. */
  #usual = 256;
  /** The last batch was answered at once, at least in part: its values want memory before they are asked for. */
  #atOnce = true;
  /** Records of one crossing, and whether they are being read: a codec may call the client meanwhile. */
  readonly #records = new Uint32Array(CHUNK * COMPLETION_WORDS);
  readonly #text = new KeyText(CHUNK);
  #reading = false;

  constructor(native: NativeClient, operations: Operations) {
    this.#native = native;
    this.#operations = operations;
  }

  /** results[i] belongs to keys[i]. Rejects when any key failed, after all have ended. */
  async read<T>(ns: number, given: readonly Key[], reader: ValueReader<T>, limits: Limits): Promise<(T | undefined)[]> {
    if (this.#operations.closed) throw statusError(Status.closed);
    const keys = given.slice();
    const results = new Array<T | undefined>(keys.length).fill(undefined);
    const failures: BatchFailure[] = [];
    const waits: Promise<unknown>[] = [];
    for (let from = 0; from < keys.length; from += CHUNK) {
      const chunk = from === 0 && keys.length <= CHUNK ? keys : keys.slice(from, from + CHUNK);
      const sink: Sink = {
        keeps: !reader.copies,
        found: (i, bytes, offset, length, words, at) => {
          results[from + i] = reader.read(bytes.subarray(offset, offset + length), words, at);
        },
        again: async (i) => {
          results[from + i] = await this.#operations.read(ns, chunk[i] ?? '', reader, limits);
        },
      };
      const expected = Math.ceil(chunk.length * this.#usual * 1.25) + 1024;
      const memory = Buffer.allocUnsafeSlow(this.#atOnce ? Math.min(MEMORY_MAX, expected) : 0);
      this.#post(ns, chunk, from, memory, limits, sink, failures, waits, (i, id) => {
        const single = this.#operations.adopt(new PendingRead(ns, chunk[i] ?? '', reader), id, limits);
        return single.then((value) => (results[from + i] = value));
      });
    }
    if (waits.length > 0) await Promise.all(waits);
    if (failures.length > 0) throw batchError(failures, keys.length);
    return results;
  }

  /**
   * The values' bytes, side by side from target[0] on; spans[2 i] and spans[2 i + 1] are where the value of keys[i] begins, ABSENT where there is no such
   * key, and how many bytes it has. Gives the bytes used; a promise when not all was answered at once.
   */
  readInto(ns: number, given: readonly Key[], target: Buffer, spans: Uint32Array, limits: Limits): number | Promise<number> {
    if (this.#operations.closed) throw statusError(Status.closed);
    const keys = given.slice();
    const failures: BatchFailure[] = [];
    const waits: Promise<unknown>[] = [];
    let used = 0;
    let needed = 0;
    const place = (i: number, length: number): boolean => {
      spans[2 * i] = used;
      spans[2 * i + 1] = length;
      needed += length;
      if (length > target.length - used) return false;
      used += length;
      return true;
    };
    const set = (i: number, value: Buffer | undefined): void => {
      if (value !== undefined && place(i, value.length)) target.set(value, used - value.length);
    };
    spans.fill(ABSENT, 0, 2 * keys.length);
    for (let from = 0; from < keys.length; from += CHUNK) {
      const chunk = from === 0 && keys.length <= CHUNK ? keys : keys.slice(from, from + CHUNK);
      const free = target.subarray(used);
      const sink: Sink = {
        keeps: false,
        found: (i, bytes, offset, length) => {
          // What was answered at once is in its place already, and the next one follows it.
          if (place(from + i, length) && bytes !== free) target.set(bytes.subarray(offset, offset + length), used - length);
        },
        again: (i, bytes) => {
          if (bytes === undefined) return this.#operations.read(ns, chunk[i] ?? '', asBytes, limits).then((value) => set(from + i, value));
          place(from + i, bytes);
          return undefined;
        },
      };
      this.#post(ns, chunk, from, free, limits, sink, failures, waits, (i, id) => {
        return this.#operations.adopt(new PendingRead(ns, chunk[i] ?? '', asBytes), id, limits).then((value) => set(from + i, value));
      });
    }
    const end = (): number => {
      for (let i = 0; i < keys.length; i++) if (spans[2 * i] === ABSENT) spans[2 * i + 1] = 0;
      if (failures.length > 0) throw batchError(failures, keys.length);
      if (needed > used) throw tooSmall(needed, target.length);
      return used;
    };
    return waits.length === 0 ? end() : Promise.all(waits).then(end);
  }

  /** One crossing. `single` takes over what a signal may end. */
  #post(
    ns: number, keys: readonly Key[], from: number, memory: Buffer, limits: Limits, sink: Sink, failures: BatchFailure[], waits: Promise<unknown>[],
    single: (i: number, id: number) => Promise<unknown>,
  ): void {
    const records = this.#reading ? new Uint32Array(keys.length * COMPLETION_WORDS) : this.#records;
    const own = !this.#reading;
    this.#reading = true;
    try {
      this.#answers(ns, keys, from, memory, limits, sink, records, failures, waits, single);
    } finally {
      if (own) this.#reading = false;
    }
  }

  #answers(
    ns: number, keys: readonly Key[], from: number, memory: Buffer, limits: Limits, sink: Sink, records: Uint32Array, failures: BatchFailure[], waits: Promise<unknown>[],
    single: (i: number, id: number) => Promise<unknown>,
  ): void {
    const later = (i: number, wait: Promise<unknown> | undefined): void => {
      if (wait !== undefined) waits.push(wait.catch((error: unknown) => failures.push({ index: from + i, error })));
    };
    const pending = this.#native.getMany(ns, keys, memory, 0, records, limits.timeoutMs, this.#text.join(keys), this.#text.lengths);
    if (pending > 0) this.#adopt(ns, keys, from, records, sink, failures, waits, limits.signal === undefined ? undefined : (i, id) => later(i, single(i, id)));
    const all = pending === keys.length;
    if (memory.length > 0 || !all) this.#atOnce = !all;
    if (all) return;
    let bytes = 0;
    let values = 0;
    for (let i = 0; i < keys.length; i++) {
      const at = i * COMPLETION_WORDS;
      const status = records[at + STATUS];
      if (status === PENDING_STATUS || status === Status.notFound) continue;
      if (status === Status.ok) {
        const length = records[at + BYTES] ?? 0;
        bytes += length;
        values++;
        try {
          sink.found(i, memory, records[at + OFFSET] ?? 0, length, records, at);
        } catch (error) {
          failures.push({ index: from + i, error });
        }
      } else if (status === Status.bufferTooSmall) {
        bytes += records[at + BYTES] ?? 0;
        values++;
        later(i, sink.again(i, records[at + BYTES] ?? 0));
      } else if (status === Status.busy) {
        later(i, sink.again(i, undefined));
      } else {
        failures.push({ index: from + i, error: this.#operations.failure(status ?? -1, ns, keys[i] ?? '') });
      }
    }
    if (values > 0) this.#usual += (bytes / values - this.#usual) / 4;
  }

  /** Before anything else is done with the answers: a codec may call the client, which may then drain. */
  #adopt(
    ns: number, keys: readonly Key[], from: number, records: Uint32Array, sink: Sink, failures: BatchFailure[], waits: Promise<unknown>[],
    single: ((i: number, id: number) => void) | undefined,
  ): void {
    const batch = new Batch(ns, keys, (i, status, completion) => take(sink, i, status, completion));
    for (let i = 0; i < keys.length; i++) {
      const at = i * COMPLETION_WORDS;
      if (records[at + STATUS] !== PENDING_STATUS) continue;
      const id = records[at + ID] ?? 0;
      if (single === undefined) this.#operations.adoptOne(batch.operation(i), id);
      else single(i, id);
    }
    if (single === undefined) waits.push(batch.ended().then(() => failures.push(...batch.failures.map(({ index, error }) => ({ index: from + index, error })))));
  }
}

/** A completion of a batch's GET. */
function take(sink: Sink, i: number, status: number, completion: Completion): void {
  const { words, at, large } = completion;
  if (status === Status.notFound) return;
  const length = words[at + BYTES] ?? 0;
  if (large) {
    const own = Buffer.allocUnsafeSlow(length);
    completion.take(own);
    sink.found(i, own, 0, length, words, at);
  } else if (status === Status.ok) {
    const offset = words[at + OFFSET] ?? 0;
    sink.found(i, completion.memory, completion.base + offset, length, words, at);
    if (sink.keeps) completion.keep(offset + length);
  } else {
    throw statusError(status);
  }
}

const asBytes: ValueReader<Buffer> = { copies: false, read: (bytes) => bytes };

/** One error for a batch: the code of the first key's that failed, all of them in an AggregateError as its cause. */
export function batchError(failures: readonly BatchFailure[], keys: number): FarkvError {
  const errors = [...failures].sort((a, b) => a.index - b.index).map(({ error }) => error);
  const [first] = errors;
  const code = first instanceof FarkvError ? first.code : 'ERR_INTERNAL';
  const text = first instanceof Error ? first.message : String(first);
  return new FarkvError(code, `${errors.length} of ${keys} keys failed; the first: ${text}`, { cause: new AggregateError(errors) });
}
