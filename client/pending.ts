/**
 * Operations that were not answered at once: what each needs to be posted (again), and what it does with its completion
 * record.
 *
 * An operation is in one of two places: under its id in the table of what the native side works on, or in the queue of
 * what still waits for room there (operations.ts). Its promise is settled exactly once, by `settle` or `fail`. The
 * native side copies what it is given; an operation in the queue owns copies of its own (`own`), so that a caller may
 * use its buffers again as soon as the call has returned.
 */
import { types } from 'node:util';
import { CompletionField, type Answer, type NativeClient, type NativeKey } from '../native/native-client.js';
import type { AbortWatch } from './abort-watch.js';
import { present, type Completion } from './completion.js';
import { asFarkvError, FarkvError, Status, statusError } from './errors.js';
import type { ValueReader } from './value-reader.js';

/**
 * What names an entry: a text (its UTF-8; ERR_KEY_INVALID for half a surrogate pair, which has none), bytes, or a key
 * prepared by `Keyspace.key`.
 */
export type Key = NativeKey;

const STATUS: number = CompletionField.Status;
const BYTES: number = CompletionField.Bytes;

/** The key in memory that the caller does not change. */
export function ownKey(key: Key): Key {
  return types.isUint8Array(key) ? Buffer.from(key) : key;
}

type Resolve<T> = (value: T) => void;
type Reject = (reason: unknown) => void;

let latestResolve: Resolve<never> = () => undefined;
let latestReject: Reject = () => undefined;
/** One executor for all promises: a closure for each operation would be garbage. */
const capture = (resolve: Resolve<never>, reject: Reject): void => {
  latestResolve = resolve;
  latestReject = reject;
};

export abstract class Pending<T> {
  id = -1;
  /** Set when the operation has to wait before it is posted (patient-queue.ts). */
  since = 0;
  timeoutMs = 0;
  settled = false;
  /** True: the result is handed over in the next turn of the event loop (see operations.ts). */
  later = false;
  readonly space: number;
  /** undefined: an operation on no one key. */
  key: Key | undefined;
  readonly promise: Promise<T>;
  readonly #resolve: Resolve<T>;
  readonly #reject: Reject;
  #signal: AbortSignal | undefined;
  #watch: AbortWatch<Pending<unknown>> | undefined;

  constructor(space: number, key: Key | undefined) {
    this.space = space;
    this.key = key;
    this.promise = new Promise<T>(capture as (resolve: Resolve<T>, reject: Reject) => void);
    this.#resolve = latestResolve as Resolve<T>;
    this.#reject = latestReject;
  }

  /** The shard that it is about; negative: the key is none. */
  shard(native: NativeClient): number {
    return native.shardOf(this.space, this.key ?? '');
  }

  /**
   * Copies what the caller may change once its call has returned: to be called before the operation waits to be posted.
   */
  own(): void {
    if (this.key !== undefined) this.key = ownKey(this.key);
  }

  /** Gives the operation to the native side. */
  abstract post(native: NativeClient, timeoutMs: number): Answer;

  /** What the record says; throws FarkvError. */
  protected abstract outcome(status: number, completion: Completion): T;

  settle(completion: Completion): void {
    const status = completion.words[completion.at + STATUS] ?? 0;
    try {
      this.resolve(this.outcome(status, completion));
    } catch (error) {
      this.fail(asFarkvError(error));
    }
  }

  resolve(value: T): void {
    this.#end();
    if (this.later) setImmediate(this.#resolve, value);
    else this.#resolve(value);
  }

  fail(error: unknown): void {
    this.#end();
    this.#reject(error);
  }

  /** From now on the operation ends when the signal fires. */
  watch(signal: AbortSignal, watch: AbortWatch<Pending<unknown>>): void {
    this.#signal = signal;
    this.#watch = watch;
    watch.add(this as Pending<unknown>, signal);
  }

  get signal(): AbortSignal | undefined {
    return this.#signal;
  }

  /**
   * The error of an operation that a signal ended; the signal's reason is its cause. A change that had been sent by
   * then is ERR_INDETERMINATE all the same: ERR_ABORTED says that it had no effect.
   */
  protected failure(status: number, detail?: string): FarkvError {
    if (this.#signal?.aborted === true) {
      if (status === Status.aborted) return abortError(this.#signal);
      if (status === Status.indeterminate) return statusError(status, 'cancelled by the caller', this.#signal.reason);
    }
    return statusError(status, detail);
  }

  #end(): void {
    this.settled = true;
    if (this.#signal !== undefined) this.#watch?.remove(this as Pending<unknown>, this.#signal);
  }
}

export function abortError(signal: AbortSignal): FarkvError {
  return new FarkvError('ERR_ABORTED', 'cancelled by the caller', { cause: signal.reason });
}

abstract class PendingOfKey<T> extends Pending<T> {
  declare key: Key;
}

/** A GET whose value is decoded. */
export class PendingRead<T> extends PendingOfKey<T | undefined> {
  readonly #reader: ValueReader<T>;

  constructor(space: number, key: Key, reader: ValueReader<T>) {
    super(space, key);
    this.#reader = reader;
  }

  post(native: NativeClient, timeoutMs: number): Answer {
    return native.get(this.space, this.key, undefined, 0, timeoutMs);
  }

  protected outcome(status: number, completion: Completion): T | undefined {
    if (status === Status.notFound) return undefined;
    if (status !== Status.ok && !completion.large) throw this.failure(status);
    return this.#reader.read(present(completion.value(!this.#reader.copies)), completion.words, completion.at);
  }
}

/** A GET into the caller's buffer. */
export class PendingInto extends PendingOfKey<number | undefined> {
  readonly #target: Uint8Array;
  readonly #offset: number;

  constructor(space: number, key: Key, target: Uint8Array, offset: number) {
    super(space, key);
    this.#target = target;
    this.#offset = offset;
  }

  post(native: NativeClient, timeoutMs: number): Answer {
    return native.get(this.space, this.key, undefined, 0, timeoutMs);
  }

  protected outcome(status: number, completion: Completion): number | undefined {
    const { words, at, large } = completion;
    if (status === Status.notFound) return undefined;
    if (status !== Status.ok && !large) throw this.failure(status);
    const length = words[at + BYTES] ?? 0;
    const room = this.#target.length - this.#offset;
    if (length > room) {
      // A value that is held must be taken for its memory to be given back.
      if (large) completion.take(Buffer.allocUnsafeSlow(length));
      throw tooSmall(length, room);
    }
    if (large) completion.take(this.#target.subarray(this.#offset));
    else this.#target.set(present(completion.value(false)), this.#offset);
    return length;
  }
}

export function tooSmall(bytes: number, room: number): FarkvError {
  return statusError(Status.bufferTooSmall, `the value has ${bytes} bytes, there is room for ${room}`);
}

/** What became of a change, from its status and record; throws FarkvError. */
export type ChangeOutcome<T> = (status: number, words: Uint32Array, at: number) => T;

export abstract class PendingChange<T> extends PendingOfKey<T> {
  readonly #outcome: ChangeOutcome<T>;

  constructor(space: number, key: Key, outcome: ChangeOutcome<T>) {
    super(space, key);
    this.#outcome = outcome;
  }

  protected outcome(status: number, completion: Completion): T {
    if (status === Status.aborted || status === Status.indeterminate) throw this.failure(status);
    return this.#outcome(status, completion.words, completion.at);
  }
}

/** How a value is stored; made once for a put that has no options. */
export interface Stored {
  readonly ttlMs: number;
  readonly flags: number;
  readonly codec: number;
}

export class PendingPut extends PendingChange<void> {
  #value: Uint8Array;
  readonly #stored: Stored;

  constructor(space: number, key: Key, value: Uint8Array, stored: Stored, outcome: ChangeOutcome<void>) {
    super(space, key, outcome);
    this.#value = value;
    this.#stored = stored;
  }

  override own(): void {
    super.own();
    this.#value = Buffer.from(this.#value);
  }

  post(native: NativeClient, timeoutMs: number): Answer {
    const { ttlMs, flags, codec } = this.#stored;
    return native.put(this.space, this.key, this.#value, ttlMs, flags, codec, timeoutMs);
  }
}

export class PendingDelete extends PendingChange<boolean> {
  post(native: NativeClient, timeoutMs: number): Answer {
    return native.delete(this.space, this.key, timeoutMs);
  }
}

export class PendingSwap<T> extends PendingChange<T> {
  readonly #expected: bigint;
  #value: Uint8Array | undefined;
  readonly #stored: Stored;

  /** value undefined: compare-and-delete. */
  constructor(
    space: number,
    key: Key,
    expected: bigint,
    value: Uint8Array | undefined,
    stored: Stored,
    outcome: ChangeOutcome<T>,
  ) {
    super(space, key, outcome);
    this.#expected = expected;
    this.#value = value;
    this.#stored = stored;
  }

  override own(): void {
    super.own();
    if (this.#value !== undefined) this.#value = Buffer.from(this.#value);
  }

  post(native: NativeClient, timeoutMs: number): Answer {
    const { ttlMs, flags, codec } = this.#stored;
    return native.compareAndSwap(this.space, this.key, this.#expected, this.#value, ttlMs, flags, codec, timeoutMs);
  }
}

/** Where a step of a walk over a shard begins, and which keys it meets. */
export interface StepOfShard {
  readonly shard: number;
  /** 0n: at the beginning; later what the step before answered. */
  readonly cursor: bigint;
  /** What keys begin with. */
  readonly prefix?: Uint8Array | undefined;
}

/** One step of a walk over a shard; `parse` reads the reply before its memory is used again. */
abstract class PendingStep<T> extends Pending<T> {
  protected readonly step: StepOfShard;
  readonly #parse: (completion: Completion) => T;

  constructor(space: number, step: StepOfShard, parse: (completion: Completion) => T) {
    super(space, undefined);
    this.step = step;
    this.#parse = parse;
  }

  override shard(): number {
    return this.step.shard;
  }

  protected outcome(status: number, completion: Completion): T {
    if (status !== Status.ok && !completion.large) throw this.failure(status);
    return this.#parse(completion);
  }
}

/** Lists entries: about `entries` of them. */
export class PendingScan<T> extends PendingStep<T> {
  readonly #entries: number;
  readonly #withValues: boolean;

  constructor(
    space: number,
    step: StepOfShard,
    entries: number,
    withValues: boolean,
    parse: (completion: Completion) => T,
  ) {
    super(space, step, parse);
    this.#entries = entries;
    this.#withValues = withValues;
  }

  post(native: NativeClient, timeoutMs: number): Answer {
    const { shard, cursor, prefix } = this.step;
    return native.scan(this.space, shard, cursor, this.#entries, this.#withValues, timeoutMs, prefix);
  }
}

/** Counts keys. */
export class PendingTally<T> extends PendingStep<T> {
  post(native: NativeClient, timeoutMs: number): Answer {
    const { shard, cursor, prefix } = this.step;
    return native.tally(this.space, shard, cursor, timeoutMs, prefix);
  }
}
