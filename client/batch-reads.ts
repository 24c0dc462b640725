/**
 * getMany: one crossing into the native side for up to CHUNK keys; what was not answered at once goes on as single operations.
 *
 * Values of a batch lie side by side in memory of the batch's own, whose size follows the values seen lately; a value that does not fit is
 * read once more by itself.
 */
import { CompletionField, PENDING_STATUS, type NativeClient } from '../native/addon.js';
import { COMPLETION_WORDS } from './completion.js';
import { FarkvError, Status, statusError } from './errors.js';
import type { Limits, Operations } from './operations.js';
import { PendingRead, type Key } from './pending.js';
import type { ValueReader } from './value-reader.js';

const ID: number = CompletionField.Id;
const STATUS: number = CompletionField.Status;
const BYTES: number = CompletionField.Bytes;
const OFFSET: number = CompletionField.Offset;

const CHUNK = 1024;
const MEMORY_MAX = 8 << 20;

export class BatchReads {
  readonly #native: NativeClient;
  readonly #operations: Operations;
  /** Bytes of a value, smoothed; the first batch guesses. */
  #usual = 256;

  constructor(native: NativeClient, operations: Operations) {
    this.#native = native;
    this.#operations = operations;
  }

  /** results[i] belongs to keys[i]. Rejects when any key failed, after all have ended. */
  async read<T>(ns: number, keys: readonly Key[], reader: ValueReader<T>, limits: Limits): Promise<(T | undefined)[]> {
    if (this.#operations.closed) throw statusError(Status.closed);
    const results = new Array<T | undefined>(keys.length).fill(undefined);
    const failures: unknown[] = [];
    const later: Promise<unknown>[] = [];
    const comes = (i: number, value: Promise<T | undefined>): void => {
      later.push(value.then((v) => (results[i] = v), (error: unknown) => failures.push(error)));
    };
    for (let from = 0; from < keys.length; from += CHUNK) {
      const chunk = from === 0 && keys.length <= CHUNK ? keys : keys.slice(from, from + CHUNK);
      this.#post(ns, chunk, reader, limits, (i, value) => (results[from + i] = value), (i, value) => comes(from + i, value), failures);
    }
    if (later.length > 0) await Promise.all(later);
    if (failures.length > 0) throw batchError(failures, keys.length);
    return results;
  }

  #post<T>(
    ns: number,
    keys: readonly Key[],
    reader: ValueReader<T>,
    limits: Limits,
    found: (i: number, value: T) => void,
    comes: (i: number, value: Promise<T | undefined>) => void,
    failures: unknown[],
  ): void {
    const records = new Uint32Array(keys.length * COMPLETION_WORDS);
    const memory = Buffer.allocUnsafeSlow(Math.min(MEMORY_MAX, Math.ceil(keys.length * this.#usual * 1.25) + 1024));
    this.#native.getMany(ns, keys, memory, 0, records, limits.timeoutMs);
    // First what is pending: a codec may call the client, which may then drain.
    for (const [i, key] of keys.entries()) {
      const at = i * COMPLETION_WORDS;
      if (records[at + STATUS] === PENDING_STATUS) comes(i, this.#operations.adopt(new PendingRead(ns, key, reader), records[at + ID] ?? 0, limits));
    }
    let bytes = 0;
    let values = 0;
    for (const [i, key] of keys.entries()) {
      const at = i * COMPLETION_WORDS;
      const status = records[at + STATUS];
      if (status === Status.ok) {
        const offset = records[at + OFFSET] ?? 0;
        const length = records[at + BYTES] ?? 0;
        bytes += length;
        values++;
        try {
          found(i, reader.read(memory.subarray(offset, offset + length), records, at));
        } catch (error) {
          failures.push(error);
        }
      } else if (status === Status.bufferTooSmall) {
        bytes += records[at + BYTES] ?? 0;
        values++;
        comes(i, this.#operations.read(ns, key, reader, limits));
      } else if (status === Status.busy) {
        comes(i, this.#operations.read(ns, key, reader, limits));
      } else if (status !== Status.notFound && status !== PENDING_STATUS) {
        failures.push(this.#operations.failure(status ?? -1, ns, key));
      }
    }
    if (values > 0) this.#usual += (bytes / values - this.#usual) / 4;
  }
}

/** One error for a batch: the first one's code, all of them in an AggregateError as its cause. */
export function batchError(failures: readonly unknown[], keys: number): FarkvError {
  const [first] = failures;
  const code = first instanceof FarkvError ? first.code : 'ERR_INTERNAL';
  const text = first instanceof Error ? first.message : String(first);
  return new FarkvError(code, `${failures.length} of ${keys} keys failed; the first: ${text}`, { cause: new AggregateError(failures) });
}
