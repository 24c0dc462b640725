/**
 * getMany and getManyInto: one crossing into the native side for up to CHUNK keys; what was not answered at once are
 * operations of one batch. A long batch is handed over in pieces, as there is room (batch-line.ts) and time (turn.ts).
 *
 * Values of a getMany lie side by side in memory of its own, whose size follows the values seen lately, or in the slabs
 * of a drain; a value that does not fit is read once more by itself. Those of a getManyInto lie in the caller's memory.
 *
 * Who says where a value lies: the native side, for what it answered at once, by the record's Offset and by nothing
 * else (completion.ts). What comes later is laid behind that: of one memory, bytes are handed out by this file alone,
 * from `used` on, and a crossing is over before anything else is.
 *
 * The caller's array is copied first: an element may be a getter that throws, and within the crossing that would leave
 * operations posted that nobody waits for. What the caller does to it later changes nothing.
 */
import { CompletionField, NO_VALUE, PENDING_STATUS, type NativeClient } from '../native/native-client.js';
import { Batch, Failures } from './batch.js';
import { COMPLETION_WORDS, offsetIn, present, valueIn } from './completion.js';
import { Status, statusError } from './errors.js';
import { KeyText } from './key-text.js';
import type { Limits, Operations } from './operations.js';
import { abortError, ownKey, PendingRead, tooSmall, type Key } from './pending.js';
import { sharedMemory } from './value-memory.js';
import { ValueSizes } from './value-sizes.js';
import type { ValueReader } from './value-reader.js';

const ID: number = CompletionField.Id;
const STATUS: number = CompletionField.Status;
const BYTES: number = CompletionField.Bytes;

const CHUNK = 1024;
/** Of a chunk, however large its values are. */
const CHUNK_MIN = 16;
/** In the place of an offset: there is no such key. */
export const ABSENT = NO_VALUE;
/** So many bytes of a target are used at most, so that every offset in it is below ABSENT. */
const TARGET_MAX = ABSENT - 1;

/** What becomes of the values of a call; i is a key's number in it. */
interface Sink {
  /** Where a crossing is to write, and from where on. */
  target(keys: number): { readonly memory: Buffer; readonly begin: number };
  /** The crossing has written up to `end`. */
  written(end: number): void;
  /** A value that was answered at once: its record is words[at ...], and it ends before `end` of the target. */
  atOnce(i: number, memory: Buffer, end: number, words: Uint32Array, at: number): void;
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

/** What a batch waits for: that others end, its next turn of the event loop, or nothing. */
type Lack = 'room' | 'time' | 'nothing';

/** One call, and how far it is. */
interface Call {
  readonly space: number;
  readonly keys: Key[];
  readonly limits: Limits;
  readonly sink: Sink;
  readonly batch: Batch;
  readonly failures: Failures;
  /** Keys that end by themselves. */
  readonly singles: Promise<unknown>[];
  /** The first key that was not handed over. */
  next: number;
  /** The last crossing found no room for some of its keys. */
  refused: boolean;
}

export class BatchReads {
  readonly #native: NativeClient;
  readonly #operations: Operations;
  readonly #sizes = new ValueSizes();
  /** The last batch was answered at once, at least in part: its values want memory before they are asked for. */
  #atOnce = true;
  /** There was a batch before. */
  #crossed = false;
  /** Records of one crossing, and whether they are being read: a codec may call the client meanwhile. */
  readonly #records = new Uint32Array(CHUNK * COMPLETION_WORDS);
  readonly #text = new KeyText(CHUNK);
  #reading = false;

  constructor(native: NativeClient, operations: Operations) {
    this.#native = native;
    this.#operations = operations;
    operations.reads.limit = this.#sizes.together;
  }

  /** results[i] belongs to keys[i]. Rejects when any key failed, after all have ended. */
  async read<T>(
    space: number,
    given: readonly Key[],
    reader: ValueReader<T>,
    limits: Limits,
  ): Promise<(T | undefined)[]> {
    const keys = given.slice();
    const results = new Array<T | undefined>(keys.length).fill(undefined);
    const set = (i: number, value: T | undefined): void => {
      results[i] = value;
    };
    const call = this.#call(space, keys, limits, {
      keeps: !reader.copies,
      target: (count) => ({ memory: sharedMemory(this.#atOnce ? this.#sizes.memoryOf(count) : 0), begin: 0 }),
      written: () => undefined,
      atOnce: (i, memory, end, words, at) => set(i, reader.read(present(valueIn(memory, end, words, at)), words, at)),
      later: (i, bytes, words, at) => set(i, reader.read(bytes, words, at)),
      again: (i) => this.#operations.read(space, keys[i] ?? '', reader, limits).then((value) => set(i, value)),
      single: (i, id) =>
        this.#operations
          .adopt(new PendingRead(space, keys[i] ?? '', this.#sizes.measured(reader)), id, limits)
          .then((value) => set(i, value)),
    });
    const rest = this.#finish(call) ?? this.#operations.answered(keys.length);
    if (rest !== undefined) await rest;
    if (call.failures.length > 0) throw call.failures.error(keys.length);
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
    const keys = given.slice();
    const memory = target.length > TARGET_MAX ? target.subarray(0, TARGET_MAX) : target;
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
    const call = this.#call(space, keys, limits, {
      keeps: false,
      target: () => ({ memory, begin: used }),
      written: (end) => {
        used = end;
      },
      atOnce: (i, _, end, words, at) => {
        const length = words[at + BYTES] ?? 0;
        needed += length;
        place(i, offsetIn(end, words, at), length);
      },
      later: (i, bytes) => append(i, bytes),
      again: (i, bytes) => {
        if (bytes === undefined)
          return this.#operations.read(space, keys[i] ?? '', asBytes, limits).then((value) => append(i, value));
        needed += bytes;
        short = true;
        return undefined;
      },
      single: (i, id) =>
        this.#operations
          .adopt(new PendingRead(space, keys[i] ?? '', this.#sizes.measured(asBytes)), id, limits)
          .then((value) => append(i, value)),
    });
    const end = (): number => {
      for (let i = 0; i < keys.length; i++) if (spans[2 * i] === ABSENT) spans[2 * i + 1] = 0;
      if (call.failures.length > 0) throw call.failures.error(keys.length);
      if (short) throw tooSmall(needed, memory.length);
      return used;
    };
    const rest = this.#finish(call) ?? this.#operations.answered(keys.length);
    return rest === undefined ? end() : rest.then(end);
  }

  #call(space: number, keys: Key[], limits: Limits, sink: Sink): Call {
    if (this.#operations.closed) throw statusError(Status.closed);
    if (limits.signal?.aborted === true) throw abortError(limits.signal);
    const failures = new Failures();
    const { reads } = this.#operations;
    const batch = new Batch(space, reads, failures, (i, status, completion) => {
      if (status === Status.notFound) this.#sizes.answered(0);
      if (status === Status.notFound) return;
      if (status !== Status.ok && !completion.large) throw failures.share(status, () => statusError(status));
      this.#sizes.answered(completion.words[completion.at + BYTES] ?? 0);
      sink.later(i, present(completion.value(sink.keeps)), completion.words, completion.at);
    });
    return { space, keys, limits, sink, batch, failures, singles: [], next: 0, refused: false };
  }

  /** Hands keys over while there is room and time; answers with what the rest waits for. */
  #advance(call: Call): Lack {
    const { reads, turn } = this.#operations;
    const { keys } = call;
    while (call.next < keys.length) {
      if (call.refused) return 'room';
      if (call.next > 0 && (turn.over || this.#isCalledOff(call))) return 'time';
      this.#sizes.learn();
      reads.limit = this.#sizes.together;
      // What is answered at once takes no place.
      const room = this.#crossed && this.#atOnce ? CHUNK : reads.free;
      if (room < 1) return 'room';
      const from = call.next;
      const count = Math.min(Math.max(CHUNK_MIN, this.#sizes.keysOfMemory), CHUNK, room, keys.length - from);
      this.#post(call, from, count === keys.length ? keys : keys.slice(from, from + count));
      call.next = from + count;
    }
    return 'nothing';
  }

  /** A codec, which runs between two pieces, may close the client or abort the call: nothing more is handed over. */
  #isCalledOff({ limits }: Call): boolean {
    return this.#operations.closed || limits.signal?.aborted === true;
  }

  /** undefined: all has ended; else resolves when it has, and hands over piece by piece what is left. */
  #finish(call: Call): Promise<unknown> | undefined {
    const lack = this.#advance(call);
    return lack === 'nothing' ? this.#ends(call) : this.#rest(call, lack);
  }

  async #rest(call: Call, first: Lack): Promise<void> {
    const { reads, turn } = this.#operations;
    const { keys, limits } = call;
    const since = this.#operations.clock;
    // Of the first piece the caller may use its memory again once the call has returned.
    // mutation: client/keys-of-the-caller
    for (let i = call.next; i < Math.min(keys.length, CHUNK); i++) keys[i] = ownKey(keys[i] ?? '');
    try {
      for (let lack = first; lack !== 'nothing'; lack = this.#advance(call)) {
        if (lack === 'room') {
          await reads.room(since, limits);
        } else {
          reads.wake();
          await turn.next();
        }
        call.refused = false;
        if (this.#operations.closed) throw statusError(Status.closed);
        if (limits.signal?.aborted === true) throw abortError(limits.signal);
      }
    } catch (error) {
      call.failures.addAll(call.next, keys.length, error);
    }
    reads.wake();
    await this.#ends(call);
  }

  /** undefined: all that was handed over has ended. */
  #ends({ batch, singles }: Call): Promise<unknown> | undefined {
    const ended = batch.ended();
    if (singles.length === 0) return ended;
    return ended === undefined ? Promise.all(singles) : Promise.all([ended, ...singles]);
  }

  #post(call: Call, from: number, keys: readonly Key[]): void {
    const own = !this.#reading;
    const records = own ? this.#records : new Uint32Array(keys.length * COMPLETION_WORDS);
    this.#reading = true;
    try {
      this.#cross(call, from, keys, records);
    } finally {
      if (own) this.#reading = false;
    }
  }

  #cross(call: Call, from: number, keys: readonly Key[], records: Uint32Array): void {
    const { space, limits, sink, failures } = call;
    const { memory, begin } = sink.target(keys.length);
    const later = (i: number, wait: Promise<unknown> | undefined): void => {
      if (wait !== undefined) call.singles.push(wait.catch((error: unknown) => failures.add(from + i, error)));
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
    sink.written(end);
    // Before anything else is done with the answers: a codec may call the client, which may then drain.
    if (pending > 0 && limits.signal === undefined)
      forPending(records, keys.length, (i, id) =>
        this.#operations.adoptOne(call.batch.operation(from + i, keys[i] ?? ''), id),
      );
    else if (pending > 0)
      forPending(records, keys.length, (i, id) => later(i, this.#counted(sink.single(from + i, id))));
    this.#crossed = true;
    const all = pending === keys.length;
    if (memory.length > 0 || !all) this.#atOnce = !all;
    if (all) return;
    for (let i = 0; i < keys.length; i++) {
      const at = i * COMPLETION_WORDS;
      const status = records[at + STATUS] ?? -1;
      if (status === PENDING_STATUS) continue;
      const length = status === Status.ok || status === Status.bufferTooSmall ? (records[at + BYTES] ?? 0) : 0;
      if (status !== Status.busy) this.#sizes.answered(length);
      if (status === Status.notFound) continue;
      if (status === Status.ok) {
        try {
          sink.atOnce(from + i, memory, end, records, at);
        } catch (error) {
          failures.add(from + i, error);
        }
      } else if (status === Status.bufferTooSmall || status === Status.busy) {
        call.refused ||= status === Status.busy;
        later(i, sink.again(from + i, status === Status.busy ? undefined : length));
      } else {
        failures.add(from + i, this.#operations.errors.sharedFailure(failures, status, space, keys[i] ?? ''));
      }
    }
  }

  /** One of a batch that a signal may end takes a place of the batches. */
  async #counted(read: Promise<unknown>): Promise<void> {
    const { reads } = this.#operations;
    reads.outstanding++;
    try {
      await read;
    } finally {
      reads.outstanding--;
      reads.wake();
    }
  }
}

function forPending(records: Uint32Array, keys: number, run: (i: number, id: number) => void): void {
  for (let i = 0; i < keys; i++) {
    const at = i * COMPLETION_WORDS;
    if (records[at + STATUS] === PENDING_STATUS) run(i, records[at + ID] ?? 0);
  }
}

const asBytes: ValueReader<Buffer> = { copies: false, read: (bytes) => bytes };
