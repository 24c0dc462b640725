/**
 * getMany and getManyInto: one crossing into the native side for up to CHUNK keys; what was not answered at once are
 * operations of one batch.
 *
 * Values of a getMany lie side by side in memory of its own, whose size follows the values seen lately, or in the slabs
 * of a drain; a value that does not fit is read once more by itself. Those of a getManyInto lie in the caller's memory.
 *
 * Who says where a value lies: the native side, for what it answered at once, by the record's Offset and by nothing
 * else (completion.ts). What comes later is laid behind that by this file, and the crossings are over by then: no two
 * authors write to the same bytes.
 *
 * The caller's array is copied first: an element may be a getter that throws, and within the crossing that would leave
 * operations posted that nobody waits for. What the caller does to it later changes nothing.
 */
import { CompletionField, NO_VALUE, PENDING_STATUS, type NativeClient } from '../native/native-client.js';
import { Batch, type BatchFailure } from './batch.js';
import { COMPLETION_WORDS, offsetIn, present, valueIn, type Completion } from './completion.js';
import { asFarkvError, FarkvError, Status, statusError } from './errors.js';
import { KeyText } from './key-text.js';
import type { Limits, Operations } from './operations.js';
import { PendingRead, tooSmall, type Key } from './pending.js';
import { sharedMemory } from './value-memory.js';
import type { ValueReader } from './value-reader.js';

const ID: number = CompletionField.Id;
const STATUS: number = CompletionField.Status;
const BYTES: number = CompletionField.Bytes;

const CHUNK = 1024;
const MEMORY_MAX = 8 << 20;
/** In the place of an offset: there is no such key. */
export const ABSENT = NO_VALUE;
/** So many bytes of a target are used at most, so that every offset in it is below ABSENT. */
const TARGET_MAX = ABSENT - 1;

/**
 * One crossing: these keys, the first of which is number `from` of the call; the values that are answered at once are
 * laid into `memory` from `begin` on.
 */
interface Crossing {
  readonly space: number;
  readonly keys: readonly Key[];
  readonly from: number;
  readonly memory: Buffer;
  readonly begin: number;
  readonly limits: Limits;
}

/** What becomes of the values of one crossing; i is a key's number in it. */
interface Sink {
  /**
   * A value that was answered at once: its record is words[at ...], and it ends before `end` of the crossing's memory.
   */
  atOnce(i: number, end: number, words: Uint32Array, at: number): void;
  /** A value that came later. */
  later(i: number, bytes: Buffer, words: Uint32Array, at: number): void;
  /** What `later` is given goes on being referred to. */
  readonly keeps: boolean;
  /**
   * Read key i by itself: there was no room to post it (bytes undefined), or none for its value; undefined: that will
   * not help.
   */
  again(i: number, bytes: number | undefined): Promise<unknown> | undefined;
  /** Takes over key i, which a signal may end. */
  single(i: number, id: number): Promise<unknown>;
}

/** How the keys of one call end that did not at once. */
interface Ends {
  readonly failures: BatchFailure[];
  readonly waits: Promise<unknown>[];
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
  async read<T>(
    space: number,
    given: readonly Key[],
    reader: ValueReader<T>,
    limits: Limits,
  ): Promise<(T | undefined)[]> {
    if (this.#operations.closed) throw statusError(Status.closed);
    const keys = given.slice();
    const results = new Array<T | undefined>(keys.length).fill(undefined);
    const ends: Ends = { failures: [], waits: [] };
    for (let from = 0; from < keys.length; from += CHUNK) {
      const chunk = from === 0 && keys.length <= CHUNK ? keys : keys.slice(from, from + CHUNK);
      const expected = Math.ceil(chunk.length * this.#usual * 1.25) + 1024;
      const memory = sharedMemory(this.#atOnce ? Math.min(MEMORY_MAX, expected) : 0);
      const set = (i: number, value: T | undefined): void => {
        results[from + i] = value;
      };
      const sink: Sink = {
        keeps: !reader.copies,
        atOnce: (i, end, words, at) => set(i, reader.read(present(valueIn(memory, end, words, at)), words, at)),
        later: (i, bytes, words, at) => set(i, reader.read(bytes, words, at)),
        again: (i) => this.#operations.read(space, chunk[i] ?? '', reader, limits).then((value) => set(i, value)),
        single: (i, id) =>
          this.#operations
            .adopt(new PendingRead(space, chunk[i] ?? '', reader), id, limits)
            .then((value) => set(i, value)),
      };
      this.#post({ space, keys: chunk, from, memory, begin: 0, limits }, sink, ends);
    }
    if (ends.waits.length > 0) await Promise.all(ends.waits);
    if (ends.failures.length > 0) throw batchError(ends.failures, keys.length);
    return results;
  }

  /**
   * The values' bytes, side by side from target[0] on; spans[2 i] and spans[2 i + 1] are where the value of keys[i]
   * begins, ABSENT where there is no such key, and how many bytes it has. Gives the bytes used; a promise when not all
   * was answered at once.
   */
  readInto(
    space: number,
    given: readonly Key[],
    target: Buffer,
    spans: Uint32Array,
    limits: Limits,
  ): number | Promise<number> {
    if (this.#operations.closed) throw statusError(Status.closed);
    const keys = given.slice();
    const memory = target.length > TARGET_MAX ? target.subarray(0, TARGET_MAX) : target;
    const ends: Ends = { failures: [], waits: [] };
    /** Where the values end that lie in `memory`. */
    let used = 0;
    /** Bytes of all values, and whether some of them did not fit. */
    let needed = 0;
    let short = false;
    const place = (i: number, offset: number, length: number): void => {
      spans[2 * i] = offset;
      spans[2 * i + 1] = length;
    };
    const append = (i: number, value: Buffer | undefined): void => {
      if (value === undefined) return;
      needed += value.length;
      short ||= value.length > memory.length - used;
      if (value.length > memory.length - used) return;
      memory.set(value, used);
      place(i, used, value.length);
      used += value.length;
    };
    spans.fill(ABSENT, 0, 2 * keys.length);
    for (let from = 0; from < keys.length; from += CHUNK) {
      const chunk = from === 0 && keys.length <= CHUNK ? keys : keys.slice(from, from + CHUNK);
      const sink: Sink = {
        keeps: false,
        atOnce: (i, end, words, at) => {
          const length = words[at + BYTES] ?? 0;
          needed += length;
          place(from + i, offsetIn(end, words, at), length);
        },
        later: (i, bytes) => append(from + i, bytes),
        again: (i, bytes) => {
          if (bytes === undefined)
            return this.#operations
              .read(space, chunk[i] ?? '', asBytes, limits)
              .then((value) => append(from + i, value));
          needed += bytes;
          short = true;
          return undefined;
        },
        single: (i, id) =>
          this.#operations
            .adopt(new PendingRead(space, chunk[i] ?? '', asBytes), id, limits)
            .then((value) => append(from + i, value)),
      };
      used = this.#post({ space, keys: chunk, from, memory, begin: used, limits }, sink, ends);
    }
    const end = (): number => {
      for (let i = 0; i < keys.length; i++) if (spans[2 * i] === ABSENT) spans[2 * i + 1] = 0;
      if (ends.failures.length > 0) throw batchError(ends.failures, keys.length);
      if (short) throw tooSmall(needed, memory.length);
      return used;
    };
    return ends.waits.length === 0 ? end() : Promise.all(ends.waits).then(end);
  }

  /** Gives where the values end that were answered at once. */
  #post(crossing: Crossing, sink: Sink, ends: Ends): number {
    const own = !this.#reading;
    const records = own ? this.#records : new Uint32Array(crossing.keys.length * COMPLETION_WORDS);
    this.#reading = true;
    try {
      return this.#answers(crossing, sink, records, ends);
    } finally {
      if (own) this.#reading = false;
    }
  }

  #answers(crossing: Crossing, sink: Sink, records: Uint32Array, ends: Ends): number {
    const { space, keys, from, memory, begin, limits } = crossing;
    const later = (i: number, wait: Promise<unknown> | undefined): void => {
      if (wait !== undefined)
        ends.waits.push(wait.catch((error: unknown) => ends.failures.push({ index: from + i, error })));
    };
    const pending = this.#native.getMany(
      space,
      keys,
      memory,
      begin,
      records,
      limits.timeoutMs,
      this.#text.join(keys),
      this.#text.lengths,
    );
    // Before a codec may call the client: the next call writes `info` anew.
    const end = this.#native.info[BYTES] ?? 0;
    if (pending > 0 && limits.signal === undefined) this.#adopt(crossing, records, sink, ends);
    else if (pending > 0) forPending(records, keys.length, (i, id) => later(i, sink.single(i, id)));
    const all = pending === keys.length;
    if (memory.length > 0 || !all) this.#atOnce = !all;
    if (all) return end;
    let bytes = 0;
    let values = 0;
    for (let i = 0; i < keys.length; i++) {
      const at = i * COMPLETION_WORDS;
      const status = records[at + STATUS];
      if (status === PENDING_STATUS || status === Status.notFound) continue;
      const length = records[at + BYTES] ?? 0;
      if (status === Status.ok || status === Status.bufferTooSmall) {
        bytes += length;
        values++;
      }
      if (status === Status.ok) {
        try {
          sink.atOnce(i, end, records, at);
        } catch (error) {
          ends.failures.push({ index: from + i, error });
        }
      } else if (status === Status.bufferTooSmall || status === Status.busy) {
        later(i, sink.again(i, status === Status.busy ? undefined : length));
      } else {
        ends.failures.push({ index: from + i, error: this.#operations.failure(status ?? -1, space, keys[i] ?? '') });
      }
    }
    if (values > 0) this.#usual += (bytes / values - this.#usual) / 4;
    return end;
  }

  /** Before anything else is done with the answers: a codec may call the client, which may then drain. */
  #adopt({ space, keys, from }: Crossing, records: Uint32Array, sink: Sink, ends: Ends): void {
    const batch = new Batch(space, keys, (i, status, completion) => take(sink, i, status, completion));
    forPending(records, keys.length, (i, id) => this.#operations.adoptOne(batch.operation(i), id));
    ends.waits.push(
      batch
        .ended()
        .then(() => ends.failures.push(...batch.failures.map(({ index, error }) => ({ index: from + index, error })))),
    );
  }
}

function forPending(records: Uint32Array, keys: number, run: (i: number, id: number) => void): void {
  for (let i = 0; i < keys; i++) {
    const at = i * COMPLETION_WORDS;
    if (records[at + STATUS] === PENDING_STATUS) run(i, records[at + ID] ?? 0);
  }
}

/** A completion of a batch's GET. */
function take(sink: Sink, i: number, status: number, completion: Completion): void {
  if (status === Status.notFound) return;
  if (status !== Status.ok && !completion.large) throw statusError(status);
  sink.later(i, present(completion.value(sink.keeps)), completion.words, completion.at);
}

const asBytes: ValueReader<Buffer> = { copies: false, read: (bytes) => bytes };

/** The cause of a batch's error: `errors[i]` is that of the key, or item, with the number `indexes[i]`. */
export interface BatchFailures extends AggregateError {
  readonly indexes: readonly number[];
}

/** One error for a batch: the code of the first key's that failed, all of them in its cause. */
export function batchError(failures: readonly BatchFailure[], keys: number): FarkvError {
  const sorted = [...failures].sort((a, b) => a.index - b.index);
  const errors = sorted.map(({ error }) => asFarkvError(error));
  const [first] = errors;
  const { code, message: text } = asFarkvError(first, 'ERR_INTERNAL');
  const cause: BatchFailures = Object.assign(new AggregateError(errors), { indexes: sorted.map(({ index }) => index) });
  return new FarkvError(code, `${errors.length} of ${keys} keys failed; the first: ${text}`, { cause });
}
