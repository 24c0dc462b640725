/**
 * What a program holds: a Keyspace is one namespace seen through one codec; the Client that connect() gives is a
 * Keyspace that also has the connection. Views (`namespace`, `withCodec`) share the connection, cost nothing, and end
 * with it.
 *
 * Promises: GET, PUT, DELETE and compare-and-swap are linearizable per key. A change that ended with ERR_INDETERMINATE
 * may have taken effect, one that ended with ERR_ABORTED, ERR_CLOSED or ERR_TIMEOUT had no effect. Operations that are
 * not awaited may take effect in any order.
 */
import {
  checkFlags,
  checkItems,
  checkKeys,
  checkNamespace,
  checkOptions,
  checkSignal,
  checkSpans,
  checkTarget,
  checkTimeout,
  checkTtl,
  checkVersion,
  READ_OPTIONS,
  SYNC_OPTIONS,
  WRITE_OPTIONS,
  type ReadOptions,
  type WriteOptions,
} from './arguments.js';
import type { BatchFailure } from './batch.js';
import type { BatchPuts } from './batch-puts.js';
import { batchError, type BatchReads } from './batch-reads.js';
import { bufferCodec, checkCodec, encodeWith, msgpackCodec, type BufferValue, type Codec } from './codec.js';
import { argumentError, rejected, Status, statusError } from './errors.js';
import type { Limits, Operations } from './operations.js';
import { PendingDelete, PendingPut, PendingSwap, type ChangeOutcome, type Key, type Stored } from './pending.js';
import {
  SCAN_OPTIONS,
  type ScanEntry,
  type ScanKey,
  type Scanner,
  type ScanOfShard,
  type ScanOptions,
  type ScanPage,
  type ScanStep,
} from './scan.js';
import type { Settings } from './options.js';
import type { Cluster, Origin, Parts } from './cluster.js';
import type { PreparedKey } from '../native/native-client.js';
import type { ClientStats, Transport } from './transport.js';
import { EntryReader, PlainReader, versionOf, type Entry } from './value-reader.js';

/** What became of a compare-and-swap. */
export type Swap =
  | { readonly swapped: true; readonly version: bigint }
  /** version: the one that the key has now; 0n: it is absent. */
  | { readonly swapped: false; readonly version: bigint };

/** One item of putMany. */
export interface PutItem<In> {
  readonly key: Key;
  readonly value: In;
  readonly ttlMs?: number;
  readonly flags?: number;
}

/** What all views of a client share. */
export interface Shared {
  readonly operations: Operations;
  readonly batches: BatchReads;
  readonly puts: BatchPuts;
  readonly scanner: Scanner;
  readonly defaults: Limits;
}

const putOutcome: ChangeOutcome<void> = (status) => {
  if (status !== Status.ok) throw statusError(status);
};
const deleteOutcome: ChangeOutcome<boolean> = (status) => {
  if (status !== Status.ok && status !== Status.notFound) throw statusError(status);
  return status === Status.ok;
};
const swapOutcome: ChangeOutcome<Swap> = (status, words, at) => {
  if (status === Status.ok) return { swapped: true, version: versionOf(words, at) };
  if (status === Status.versionMismatch) return { swapped: false, version: versionOf(words, at) };
  if (status === Status.notFound) return { swapped: false, version: 0n };
  throw statusError(status);
};

export class Keyspace<In, Out = In> {
  readonly #shared: Shared;
  readonly #space: number;
  readonly #codec: Codec<In, Out>;
  readonly #plain: PlainReader<Out>;
  readonly #entry: EntryReader<Out>;
  /** How put stores when it is told nothing else. */
  readonly #stored: Stored;

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
      return this.#shared.operations.read(this.#space, key, this.#plain, this.#limits(options));
    } catch (error) {
      return rejected(error);
    }
  }

  /** The value with its version and flags. */
  getEntry(key: Key, options?: ReadOptions): Promise<Entry<Out> | undefined> {
    try {
      return this.#shared.operations.read(this.#space, key, this.#entry, this.#limits(options));
    } catch (error) {
      return rejected(error);
    }
  }

  /** The values of many keys, in their order. Rejects when a key failed, after all have ended (see batchError). */
  async getMany(keys: readonly Key[], options?: ReadOptions): Promise<(Out | undefined)[]> {
    checkKeys(keys);
    return await this.#shared.batches.read(this.#space, keys, this.#plain, this.#limits(options));
  }

  /**
   * The values of many keys, undecoded, side by side in `target`, the caller's own memory: nothing is allocated for a
   * key, and a view of a value is `target.subarray(spans[2 * i], spans[2 * i] + spans[2 * i + 1])`, without a copy, for
   * as long as the caller leaves that memory as it is. spans[2 * i] is ABSENT (4294967295) where keys[i] is not there.
   * Which value lies where is told by `spans` only. Answers with the bytes used; at once where the transport can (shm),
   * with a promise where it cannot: until then both arrays are being written to. ERR_BUFFER_TOO_SMALL, when all have
   * ended, says how many bytes they need together; a value that did not fit is ABSENT in `spans`.
   */
  getManyInto(
    keys: readonly Key[],
    target: Uint8Array,
    spans: Uint32Array,
    options?: ReadOptions,
  ): number | Promise<number> {
    checkKeys(keys);
    checkTarget(target, 0);
    checkSpans(spans, keys.length);
    const memory = Buffer.from(target.buffer, target.byteOffset, target.length);
    return this.#shared.batches.readInto(this.#space, keys, memory, spans, this.#limits(options));
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
    checkTarget(target, offset);
    return this.#shared.operations.readInto(this.#space, key, target, offset, this.#limits(options));
  }

  /** As get, but spins until the answer is there: shm and verbs only, ERR_UNSUPPORTED over tcp. */
  getSync(key: Key, options?: Omit<ReadOptions, 'signal'>): Out | undefined {
    return this.#shared.operations.readSync(
      this.#space,
      key,
      this.#plain,
      this.#limits(options, SYNC_OPTIONS).timeoutMs,
    );
  }

  /** As getInto, but spins until the answer is there: shm and verbs only. */
  getIntoSync(key: Key, target: Uint8Array, offset = 0, options?: Omit<ReadOptions, 'signal'>): number | undefined {
    checkTarget(target, offset);
    return this.#shared.operations.readIntoSync(
      this.#space,
      key,
      target,
      offset,
      this.#limits(options, SYNC_OPTIONS).timeoutMs,
    );
  }

  put(key: Key, value: In, options?: WriteOptions): Promise<void> {
    try {
      this.#shared.operations.checkMayChange();
      const limits = this.#limits(options, WRITE_OPTIONS);
      const bytes = encodeWith(this.#codec, value);
      return this.#shared.operations.submit(
        new PendingPut(this.#space, key, bytes, this.#how(options), putOutcome),
        limits,
      );
    } catch (error) {
      return rejected(error);
    }
  }

  /** Puts of many keys, side by side; not a transaction. Rejects when one failed, after all have ended. */
  async putMany(items: Iterable<PutItem<In>>, options?: ReadOptions): Promise<void> {
    this.#shared.operations.checkMayChange();
    const limits = this.#limits(options);
    checkItems(items);
    const all = Array.isArray(items) ? (items as readonly PutItem<In>[]) : [...items];
    const failures: BatchFailure[] = [];
    const singles: Promise<unknown>[] = [];
    const single = (index: number): void => {
      const item = all[index];
      if (typeof item !== 'object') throw argumentError('putMany takes objects { key, value }');
      const put = this.put(item.key, item.value, { ...limitsOf(limits), ...storedOf(item) });
      singles.push(put.catch((error: unknown) => failures.push({ index, error })));
    };
    if (limits.signal === undefined && all.every(isPlain)) {
      const { keys, values, places } = this.#encodeAll(all, failures);
      const batch = this.#shared.puts.put(this.#space, { keys, values }, this.#codec.id, limits.timeoutMs, (i) =>
        single(places[i] ?? -1),
      );
      for (const { index, error } of await batch) failures.push({ index: places[index] ?? -1, error });
    } else {
      for (let i = 0; i < all.length; i++) single(i);
    }
    await Promise.all(singles);
    if (failures.length > 0) throw batchError(failures, all.length);
  }

  /** Whether there was such a key. */
  delete(key: Key, options?: ReadOptions): Promise<boolean> {
    try {
      this.#shared.operations.checkMayChange();
      return this.#shared.operations.submit(new PendingDelete(this.#space, key, deleteOutcome), this.#limits(options));
    } catch (error) {
      return rejected(error);
    }
  }

  /** Puts the value if the key's version is still `expected`, which getEntry told; 0n: if the key is absent. */
  compareAndSwap(key: Key, expected: bigint, value: In, options?: WriteOptions): Promise<Swap> {
    try {
      return this.#swap(key, expected, encodeWith(this.#codec, value), options);
    } catch (error) {
      return rejected(error);
    }
  }

  /** Deletes the key if its version is still `expected`. */
  compareAndDelete(key: Key, expected: bigint, options?: ReadOptions): Promise<Swap> {
    try {
      return this.#swap(key, expected, undefined, options);
    } catch (error) {
      return rejected(error);
    }
  }

  /** All keys of the namespace, with their values where asked for; what that promises is said in scan.ts. */
  scan(options: ScanOptions & { readonly values: true }): AsyncGenerator<ScanEntry<Out>, void, undefined>;
  scan(options?: ScanOptions): AsyncGenerator<ScanKey, void, undefined>;
  async *scan(options: ScanOptions = {}): AsyncGenerator<ScanKey, void, undefined> {
    let { cursor } = options;
    do {
      const page: ScanPage<ScanKey> = await this.scanPage({ ...options, ...(cursor === undefined ? {} : { cursor }) });
      yield* page.entries;
      ({ cursor } = page);
    } while (cursor !== undefined);
  }

  /** One page of a scan, and the cursor of the next one. */
  scanPage(options: ScanOptions & { readonly values: true }): Promise<ScanPage<ScanEntry<Out>>>;
  scanPage(options?: ScanOptions): Promise<ScanPage<ScanKey>>;
  async scanPage(options: ScanOptions = {}): Promise<ScanPage<ScanKey>> {
    const { scanner } = this.#shared;
    const limits = this.#limits(options, SCAN_OPTIONS);
    if (options.values === true) return await scanner.entries(this.#space, options, this.#codec, limits);
    return await scanner.keys(this.#space, options, limits);
  }

  /**
   * A key made ready: encoded and hashed once, for a program that uses it again and again. Every method takes it in the
   * place of the key, in any view and any client; it is of most use in those of this namespace and this cluster. It
   * costs memory as a small buffer does.
   */
  key(key: Key): PreparedKey {
    return this.#shared.operations.prepareKey(this.#space, key);
  }

  /** The number of the shard that has the key, for diagnosis: `farkv status` shows which server owns it. */
  shardOf(key: Key): number {
    return this.#shared.operations.shardOf(this.#space, key);
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

  /** What cannot be encoded is a failure; places[i] is the item of keys[i]. */
  #encodeAll(
    items: readonly PutItem<In>[],
    failures: BatchFailure[],
  ): { keys: Key[]; values: Uint8Array[]; places: number[] } {
    const keys: Key[] = [];
    const values: Uint8Array[] = [];
    const places: number[] = [];
    for (const [index, { key, value }] of items.entries()) {
      try {
        values.push(encodeWith(this.#codec, value));
        keys.push(key);
        places.push(index);
      } catch (error) {
        failures.push({ index, error });
      }
    }
    return { keys, values, places };
  }

  #swap(key: Key, expected: bigint, value: Uint8Array | undefined, options: WriteOptions | undefined): Promise<Swap> {
    this.#shared.operations.checkMayChange();
    const limits = this.#limits(options, WRITE_OPTIONS);
    const operation = new PendingSwap(this.#space, key, checkVersion(expected), value, this.#how(options), swapOutcome);
    return this.#shared.operations.submit(operation, limits);
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

/** True if the item has only `key` and `value`. Throws if it is not an object. */
function isPlain(item: unknown): boolean {
  if (typeof item !== 'object' || item === null) throw argumentError('putMany takes objects { key, value }');
  return !('ttlMs' in item && item.ttlMs !== undefined) && !('flags' in item && item.flags !== undefined);
}

function limitsOf({ timeoutMs, signal }: Limits): ReadOptions {
  return signal === undefined ? { timeoutMs } : { timeoutMs, signal };
}

function storedOf<In>({ ttlMs, flags }: PutItem<In>): Pick<WriteOptions, 'ttlMs' | 'flags'> {
  return { ...(ttlMs === undefined ? {} : { ttlMs }), ...(flags === undefined ? {} : { flags }) };
}

/** What backups see of a connection: no method of a client, since a program has no use for it. */
export interface ShardAccess {
  /** Which cluster this is, and the part of it that is the client's. */
  origin(): Origin;
  /**
   * One step of a scan of one shard, of all namespaces too: with what else is stored with each value, undecoded. The
   * step after the last has the cursor 0n.
   */
  scanShard(what: ScanOfShard): Promise<ScanStep>;
}

export let shardAccessOf: (client: Client<never, unknown>) => ShardAccess;

/** A connected client. It does not keep a process alive while nothing is under way. */
export class Client<In, Out = In> extends Keyspace<In, Out> {
  readonly #cluster: Cluster;
  readonly #scanner: Scanner;
  readonly #timeoutMs: number;

  static {
    shardAccessOf = (client) => ({
      origin: () => client.#cluster.origin(),
      scanShard: (what) => client.#scanner.step(what, { timeoutMs: client.#timeoutMs }),
    });
  }

  /** @internal connect() makes clients. */
  constructor(cluster: Cluster, parts: Parts, settings: Settings, codec: Codec<In, Out>) {
    super({ ...parts, defaults: { timeoutMs: settings.timeoutMs } }, settings.namespace, codec);
    this.#cluster = cluster;
    this.#scanner = parts.scanner;
    this.#timeoutMs = settings.timeoutMs;
  }

  /** Which transport reaches which server, and why that one. */
  transports(): readonly Transport[] {
    return this.#cluster.transports();
  }

  /** Counters since connect. */
  stats(): ClientStats {
    return this.#cluster.stats();
  }

  /** Ends what is under way with ERR_CLOSED, and disconnects. May be called again. */
  close(): Promise<void> {
    this.#cluster.close();
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** A codec by its name, or one of the program's own. */
export function resolveCodec(codec: 'buffer' | 'msgpack' | Codec<never, unknown> | undefined): Codec<never, unknown> {
  if (codec === undefined || codec === 'buffer') return bufferCodec;
  if (codec === 'msgpack') return msgpackCodec<unknown>();
  if (typeof codec !== 'object')
    throw argumentError('codec is "buffer", "msgpack" or an object { id, name, encode, decode }');
  return checkCodec(codec);
}
