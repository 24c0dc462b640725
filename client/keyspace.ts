/**
 * A Keyspace: one namespace seen through one codec, with every call about keys. Views (`namespace`, `withCodec`) share
 * the connection, cost nothing, and end with it.
 *
 * Promises: GET, PUT, DELETE and compare-and-swap are linearizable per key. A change that ended with ERR_INDETERMINATE
 * may have taken effect, one that ended with ERR_ABORTED, ERR_CLOSED or ERR_TIMEOUT had no effect. Operations that are
 * not awaited may take effect in any order.
 */
import {
  checkBy,
  checkFlags,
  checkFunction,
  checkKeys,
  checkNamespace,
  checkOptions,
  checkSignal,
  checkSpans,
  checkTarget,
  checkTimeout,
  checkTtl,
  checkTtlOfSwap,
  checkVersion,
  NEW_ENTRY_OPTIONS,
  READ_OPTIONS,
  SYNC_OPTIONS,
  WRITE_OPTIONS,
  type NewEntryOptions,
  type ReadOptions,
  type SwapOptions,
  type TouchOptions,
  type WriteOptions,
} from './arguments.js';
import type { BatchChanges } from './batch-changes.js';
import type { BatchReads } from './batch-reads.js';
import { callOf, heard, isHeard } from './call-channel.js';
import { deleteKeys, putItems, type PutItem } from './change-many.js';
import { bufferCodec, checkRaw, encodeWith, resolveCodec, type BufferValue, type Codec } from './codec.js';
import { PendingAppend, PendingIncrement, PendingTouch } from './derived.js';
import { asFarkvError, guarded, guardedNow, rejected } from './errors.js';
import { heardRead, heardReadInto, heardSpun, heardSpunInto, heardSubmit, messageOf } from './heard-calls.js';
import type { Limits, Operations } from './operations.js';
import { deleteOutcome, putOutcome, swapOutcome, type Swap } from './outcomes.js';
import { PendingDelete, PendingPut, PendingSwap, type Key, type Pending, type Stored } from './pending.js';
import {
  COUNT_OPTIONS,
  SCAN_OPTIONS,
  type CountOptions,
  type ScanEntry,
  type ScanKey,
  type Scanner,
  type ScanOptions,
  type ScanPage,
} from './scan.js';
import type { SpunReads } from './spun-reads.js';
import type { PreparedKey } from '../native/native-client.js';
import { update, type Update, type Updated } from './update.js';
import { EntryReader, PlainReader, presence, timeLeft, type Entry, type ValueReader } from './value-reader.js';

/** What all views of a client share. */
export interface Shared {
  readonly operations: Operations;
  readonly spun: SpunReads;
  readonly batches: BatchReads;
  readonly changes: BatchChanges;
  readonly scanner: Scanner;
  readonly defaults: Limits;
}

export class Keyspace<In, Out = In> {
  readonly #shared: Shared;
  readonly #space: number;
  readonly #codec: Codec<In, Out>;
  readonly #plain: PlainReader<Out>;
  readonly #entry: EntryReader<Out>;
  /** How put stores when it is told nothing else. */
  readonly #stored: Stored;

  /** Whether this is one, and no proxy of one, through which nothing can be called. */
  static isKeyspace(value: unknown): value is Keyspace<never, unknown> {
    return typeof value === 'object' && value !== null && #shared in value;
  }

  /** @internal connect() makes clients. */
  constructor(shared: Shared, space: number, codec: Codec<In, Out>) {
    this.#shared = shared;
    this.#space = space;
    this.#codec = codec;
    this.#plain = new PlainReader(codec);
    this.#entry = new EntryReader(codec);
    this.#stored = { ttlMs: 0, flags: 0, codec: codec.id };
  }

  /** The value, or undefined when there is none. */
  get(key: Key, options?: ReadOptions): Promise<Out | undefined> {
    try {
      return this.#read('get', key, this.#plain, this.#limits(options));
    } catch (error) {
      return rejected(error);
    }
  }

  /** The value with its version and flags, and when it expires. */
  getEntry(key: Key, options?: ReadOptions): Promise<Entry<Out> | undefined> {
    try {
      return this.#read('getEntry', key, this.#entry, this.#limits(options));
    } catch (error) {
      return rejected(error);
    }
  }

  /**
   * Whether there is such a key: costs what get costs, but decodes nothing, and over shm copies no byte of the value.
   * Over tcp and verbs the value travels all the same, since its checksum is what says that the entry is whole.
   */
  async has(key: Key, options?: ReadOptions): Promise<boolean> {
    return await guarded(() => {
      const limits = this.#limits(options);
      return this.#one(
        'has',
        key,
        async () => (await this.#shared.operations.look(this.#space, key, presence, limits)) === true,
      );
    });
  }

  /**
   * Milliseconds until the entry expires; null: it never does; undefined: there is no such key. The owner's clock says
   * when (`expiresAtMs` of getEntry) and this host's clock what time it is, so how far they differ is in the answer;
   * never less than 0. Costs what `has` costs.
   */
  async ttl(key: Key, options?: ReadOptions): Promise<number | null | undefined> {
    return await guarded(() => {
      const limits = this.#limits(options);
      return this.#one('ttl', key, () => this.#shared.operations.look(this.#space, key, timeLeft, limits));
    });
  }

  /**
   * The values of many keys, in their order. Rejects when a key failed, after all have ended: see BatchFailures. There may
   * be any number: they are asked for as there is room, and the event loop turns meanwhile. Of keys that are bytes, those
   * behind the first 1,024 must stay as they are until the call has ended. Values share memory, up to 8 MiB, which each
   * of them keeps alive: a program that keeps few of many copies those (`Buffer.from(value)`).
   */
  async getMany(keys: readonly Key[], options?: ReadOptions): Promise<(Out | undefined)[]> {
    return await guarded(() => {
      checkKeys(keys);
      const limits = this.#limits(options);
      return this.#many('getMany', keys.length, () =>
        this.#shared.batches.read(this.#space, keys, this.#plain, limits),
      );
    });
  }

  /**
   * The values of many keys, undecoded, side by side in `target`, the caller's own memory: nothing is allocated for a
   * key, and a view of a value is `target.subarray(spans[2 * i], spans[2 * i] + spans[2 * i + 1])`, without a copy, for
   * as long as the caller leaves that memory as it is. spans[2 * i] is ABSENT (4294967295) where keys[i] is not there.
   * Which value lies where is told by `spans` only. Answers with the bytes used; at once where the transport can (shm)
   * and it takes no more than some milliseconds, else with a promise: until then both arrays are being written to.
   * ERR_BUFFER_TOO_SMALL, when all have ended, says how many bytes they need together; a value that did not fit is ABSENT
   * in `spans`. Keys that are bytes: as for getMany.
   */
  getManyInto(
    keys: readonly Key[],
    target: Uint8Array,
    spans: Uint32Array,
    options?: ReadOptions,
  ): number | Promise<number> {
    return guardedNow(() => {
      checkKeys(keys);
      checkTarget(target, 0);
      checkSpans(spans, keys.length);
      const memory = Buffer.from(target.buffer, target.byteOffset, target.length);
      const limits = this.#limits(options);
      return this.#many('getManyInto', keys.length, () =>
        this.#shared.batches.readInto(this.#space, keys, memory, spans, limits),
      );
    });
  }

  /**
   * Writes the value's bytes, undecoded, into `target` from `offset` on, and answers with their number; undefined: no
   * such key. Answers at once where the transport can (shm), with a promise where it cannot, so `await` it or look.
   * ERR_BUFFER_TOO_SMALL when they do not fit; what is wrong at once is thrown.
   */
  getInto(
    key: Key,
    target: Uint8Array,
    offset = 0,
    options?: ReadOptions,
  ): number | undefined | Promise<number | undefined> {
    try {
      checkTarget(target, offset);
      const { operations } = this.#shared;
      const limits = this.#limits(options);
      return isHeard()
        ? heardReadInto(this.#shared, this.#space, key, target, offset, limits)
        : operations.readInto(this.#space, key, target, offset, limits);
    } catch (error) {
      throw asFarkvError(error);
    }
  }

  /** As get, but spins until the answer is there; ERR_UNSUPPORTED where a thread of the server serves READs (tcp). */
  getSync(key: Key, options?: Omit<ReadOptions, 'signal'>): Out | undefined {
    try {
      const { timeoutMs } = this.#limits(options, SYNC_OPTIONS);
      return isHeard()
        ? heardSpun(this.#shared, this.#space, key, this.#plain, timeoutMs)
        : this.#shared.spun.read(this.#space, key, this.#plain, timeoutMs);
    } catch (error) {
      throw asFarkvError(error);
    }
  }

  /** As getInto, but spins until the answer is there, where getSync can. */
  getIntoSync(key: Key, target: Uint8Array, offset = 0, options?: Omit<ReadOptions, 'signal'>): number | undefined {
    try {
      checkTarget(target, offset);
      const { timeoutMs } = this.#limits(options, SYNC_OPTIONS);
      return isHeard()
        ? heardSpunInto(this.#shared, this.#space, key, target, offset, timeoutMs)
        : this.#shared.spun.readInto(this.#space, key, target, offset, timeoutMs);
    } catch (error) {
      throw asFarkvError(error);
    }
  }

  put(key: Key, value: In, options?: WriteOptions): Promise<void> {
    try {
      this.#shared.operations.checkMayChange();
      const limits = this.#limits(options, WRITE_OPTIONS);
      const bytes = encodeWith(this.#codec, value);
      return this.#submit('put', new PendingPut(this.#space, key, bytes, this.#how(options), putOutcome), limits);
    } catch (error) {
      return rejected(error);
    }
  }

  /**
   * Puts of many keys, side by side; not a transaction. Rejects when one failed, after all have ended. There may be any
   * number: items are checked, encoded and sent as there is room, and an iterable is read so, too. The first 1,024 are
   * taken over before the call returns; the bytes and objects of the others must stay as they are until it has ended.
   * What is no item, or an iterable that throws, ends the call with ERR_ARGUMENT: items before it may have been put.
   */
  async putMany(items: Iterable<PutItem<In>>, options?: ReadOptions): Promise<void> {
    await guarded(() => {
      const { operations, changes } = this.#shared;
      operations.checkMayChange();
      const limits = this.#limits(options);
      return this.#many('putMany', undefined, () =>
        putItems(items, limits, {
          codec: this.#codec,
          turn: operations.turn,
          together: (pieces) => changes.put(this.#space, pieces, this.#codec.id, limits),
          alone: (key, value, how) => this.put(key, value, how),
        }),
      );
    });
  }

  /** Whether there was such a key. */
  delete(key: Key, options?: ReadOptions): Promise<boolean> {
    try {
      this.#shared.operations.checkMayChange();
      return this.#submit('delete', new PendingDelete(this.#space, key, deleteOutcome), this.#limits(options));
    } catch (error) {
      return rejected(error);
    }
  }

  /**
   * Deletes of many keys, side by side; not a transaction. Answers how many were there: a key that is named twice counts
   * once. Rejects when one failed, after all have ended: the cause says which, see BatchFailures. Any number, and keys
   * that are bytes: as for getMany.
   */
  async deleteMany(keys: readonly Key[], options?: ReadOptions): Promise<number> {
    return await guarded(() => {
      const { operations, changes } = this.#shared;
      operations.checkMayChange();
      const limits = this.#limits(options);
      checkKeys(keys);
      return this.#many('deleteMany', keys.length, () =>
        deleteKeys(keys, limits, {
          together: (pieces, found) => changes.delete(this.#space, pieces, limits, found),
          alone: (key, how) => this.delete(key, how),
        }),
      );
    });
  }

  /**
   * Adds to the number that the value is in decimal text, and answers with the sum; an absent key is 0. The owner adds:
   * calls side by side all count, a retry counts once. Flags and time to live stay. ERR_NOT_INTEGER: the value, or the
   * sum, is no integer from -2^63 to 2^63 - 1. For the codec "buffer", as append.
   */
  increment(key: Key, by: bigint | number = 1, options?: NewEntryOptions): Promise<bigint> {
    try {
      return this.#derive('increment', options, (ttlMs) => {
        checkRaw(this.#codec, 'increment');
        return new PendingIncrement(this.#space, key, checkBy(by), ttlMs);
      });
    } catch (error) {
      return rejected(error);
    }
  }

  /**
   * Puts bytes, or text, behind the value, and answers with its new length; an absent key is empty. At most 8,192 bytes
   * at a time: ERR_VALUE_TOO_LARGE, as where the whole would have more than 64 MiB. Each call has the owner copy the
   * value. Flags and time to live stay.
   */
  append(key: Key, bytes: BufferValue, options?: NewEntryOptions): Promise<number> {
    try {
      return this.#derive('append', options, (ttlMs) => {
        checkRaw(this.#codec, 'append');
        return new PendingAppend(this.#space, key, encodeWith(bufferCodec, bytes), ttlMs);
      });
    } catch (error) {
      return rejected(error);
    }
  }

  /**
   * Changes when the entry expires, and its version: nothing else of it. Without `ttlMs`, or with null, it expires
   * never. False: there is no such key.
   */
  touch(key: Key, options: TouchOptions = {}): Promise<boolean> {
    try {
      checkOptions(options, NEW_ENTRY_OPTIONS);
      const { ttlMs, ...limits } = options;
      return this.#derive(
        'touch',
        ttlMs == null ? limits : { ...limits, ttlMs },
        (ms) => new PendingTouch(this.#space, key, ms),
      );
    } catch (error) {
      return rejected(error);
    }
  }

  /**
   * Puts the value if the key's version is still `expected`, which getEntry told; 0n: if the key is absent. The entry
   * expires when it would have, unless `ttlMs` says otherwise (null: never).
   */
  compareAndSwap(key: Key, expected: bigint, value: In, options?: SwapOptions): Promise<Swap> {
    try {
      return this.#swap('compareAndSwap', key, expected, encodeWith(this.#codec, value), options);
    } catch (error) {
      return rejected(error);
    }
  }

  /**
   * Changes a value by a function of it: reads, calls `next`, and swaps if nothing else changed the key meanwhile; else
   * it does so again after a random wait. `next` gets the value (undefined: no such key) and its entry, and answers with
   * the next value, or undefined for no change. It may be called several times, so it should do nothing but compute.
   * Time to live and flags stay unless the options say otherwise. All tries together take at most `timeoutMs`:
   * ERR_TIMEOUT when every one lost, or `next` took longer, without effect. ERR_INDETERMINATE: the last try may have
   * taken effect. What `next` throws is thrown. A key that expires between two tries is a new one in the next: without
   * `ttlMs` it then has no end.
   */
  async update(key: Key, next: Update<In, Out>, options: SwapOptions = {}): Promise<Updated> {
    const { limits, stored } = guardedNow(() => {
      this.#shared.operations.checkMayChange();
      const own = this.#limits(options, WRITE_OPTIONS);
      const { ttlMs, flags } = options;
      checkTtlOfSwap(ttlMs);
      checkFlags(flags);
      checkFunction(next);
      return { limits: own, stored: { ttlMs, flags } };
    });
    // Not guarded: what `next` throws is the program's own.
    return await this.#one('update', key, () =>
      update(this, key, next, stored, limits, (end) => this.#shared.operations.whileOpen(end)),
    );
  }

  /** Deletes the key if its version is still `expected`. */
  compareAndDelete(key: Key, expected: bigint, options?: ReadOptions): Promise<Swap> {
    try {
      return this.#swap('compareAndDelete', key, expected, undefined, options);
    } catch (error) {
      return rejected(error);
    }
  }

  /** All keys of the namespace, with their values where asked for; what that promises is said in scan.ts. */
  scan(options: ScanOptions & { readonly values: true }): AsyncGenerator<ScanEntry<Out>, void, undefined>;
  scan(options?: ScanOptions): AsyncGenerator<ScanKey, void, undefined>;
  async *scan(options: ScanOptions = {}): AsyncGenerator<ScanKey, void, undefined> {
    // Not around what the program does with the entries.
    const own = guardedNow(() => {
      checkOptions(options, SCAN_OPTIONS);
      return { ...options };
    });
    let { cursor } = own;
    do {
      const page: ScanPage<ScanKey> = await this.scanPage({ ...own, ...(cursor === undefined ? {} : { cursor }) });
      yield* page.entries;
      ({ cursor } = page);
    } while (cursor !== undefined);
  }

  /** One page of a scan, and the cursor of the next one. */
  scanPage(options: ScanOptions & { readonly values: true }): Promise<ScanPage<ScanEntry<Out>>>;
  scanPage(options?: ScanOptions): Promise<ScanPage<ScanKey>>;
  async scanPage(options: ScanOptions = {}): Promise<ScanPage<ScanKey>> {
    return await guarded<ScanPage<ScanKey>>(() => {
      const { scanner } = this.#shared;
      const limits = this.#limits(options, SCAN_OPTIONS);
      return this.#many('scanPage', undefined, () =>
        options.values === true
          ? scanner.entries(this.#space, options, this.#codec, limits)
          : scanner.keys(this.#space, options, limits),
      );
    });
  }

  /**
   * How many keys the namespace has, or how many with the prefix. The owners count. A key that is there throughout
   * counts; one that is put or deleted meanwhile may count or not, and while an index shrinks, or when the shard
   * changes its owner, one may count twice. `timeoutMs` is for each round trip, as in a scan.
   */
  async count(options: CountOptions = {}): Promise<number> {
    return await guarded(() => {
      const limits = this.#limits(options, COUNT_OPTIONS);
      return this.#many('count', undefined, () => this.#shared.scanner.count(this.#space, options, limits));
    });
  }

  /**
   * A key made ready: encoded and hashed once, for a program that uses it again and again. Every method takes it in the
   * place of the key, in any view and any client; it is of most use in those of this namespace and this cluster. It
   * costs memory as a small buffer does.
   */
  key(key: Key): PreparedKey {
    return guardedNow(() => this.#shared.operations.prepareKey(this.#space, key));
  }

  /** The number of the shard that has the key, for diagnosis: `farkv status` shows which server owns it. */
  shardOf(key: Key): number {
    return guardedNow(() => this.#shared.operations.shardOf(this.#space, key));
  }

  /**
   * The same store seen through another namespace: the same key in two namespaces is two entries. Namespaces are
   * numbers from 0 (the default) to 65535, because they are part of every entry; which number is whose is for the
   * program to say.
   */
  namespace(namespace: number): Keyspace<In, Out> {
    return new Keyspace(this.#shared, checkNamespace(namespace), this.#codec);
  }

  /** The same namespace seen through another codec. */
  withCodec(codec: 'buffer'): Keyspace<BufferValue, Buffer>;
  withCodec<T = unknown>(codec: 'msgpack'): Keyspace<T>;
  withCodec<I, O>(codec: Codec<I, O>): Keyspace<I, O>;
  withCodec(codec: 'buffer' | 'msgpack' | Codec<unknown>): Keyspace<never, unknown> {
    return new Keyspace<never, unknown>(this.#shared, this.#space, resolveCodec(codec));
  }

  // ---------------------------------------------------------------- calls, and who is told of them

  #one<T>(call: string, key: Key, run: () => T): T {
    return isHeard() ? heard(messageOf(call, this.#shared, this.#space, key), run) : run();
  }

  #many<T>(call: string, keys: number | undefined, run: () => T): T {
    return isHeard() ? heard(callOf({ call, namespace: this.#space, keys }, this.#shared.operations), run) : run();
  }

  #read<T>(call: string, key: Key, reader: ValueReader<T>, limits: Limits): Promise<T | undefined> {
    return isHeard()
      ? heardRead(call, this.#shared, this.#space, key, reader, limits)
      : this.#shared.operations.read(this.#space, key, reader, limits);
  }

  #submit<T>(call: string, operation: Pending<T>, limits: Limits): Promise<T> {
    return isHeard() && operation.key !== undefined
      ? heardSubmit(call, this.#shared, this.#space, operation.key, operation, limits)
      : this.#shared.operations.submit(operation, limits);
  }

  #swap(
    call: string,
    key: Key,
    expected: bigint,
    value: Uint8Array | undefined,
    options: SwapOptions | undefined,
  ): Promise<Swap> {
    this.#shared.operations.checkMayChange();
    const limits = this.#limits(options, WRITE_OPTIONS);
    const ttlMs = checkTtlOfSwap(options?.ttlMs);
    const stored = { ttlMs, flags: checkFlags(options?.flags), codec: this.#codec.id };
    const operation = new PendingSwap(this.#space, key, checkVersion(expected), value, stored, swapOutcome);
    return this.#submit(call, operation, limits);
  }

  #derive<T>(call: string, options: NewEntryOptions | undefined, operation: (ttlMs: number) => Pending<T>): Promise<T> {
    this.#shared.operations.checkMayChange();
    const limits = this.#limits(options, NEW_ENTRY_OPTIONS);
    return this.#submit(call, operation(checkTtl(options?.ttlMs)), limits);
  }

  #limits(options: ReadOptions | undefined, known = READ_OPTIONS): Limits {
    const { defaults } = this.#shared;
    if (options === undefined) return defaults;
    checkOptions(options, known);
    if (options.timeoutMs === undefined && options.signal === undefined) return defaults;
    return {
      timeoutMs: options.timeoutMs === undefined ? defaults.timeoutMs : checkTimeout(options.timeoutMs),
      signal: options.signal === undefined ? undefined : checkSignal(options.signal),
    };
  }

  #how(options: WriteOptions | undefined): Stored {
    if (options === undefined || (options.ttlMs === undefined && options.flags === undefined)) return this.#stored;
    return { ttlMs: checkTtl(options.ttlMs), flags: checkFlags(options.flags), codec: this.#codec.id };
  }
}
