/**
 * The types and numbers of the client's side of the native boundary: NativeClient (native/node/client_binding.c), its
 * options, its answers and its counters. Used by client/; native/addon.ts loads it.
 */
import type { ErrorCode } from '../core/errors.js';
import type { LogLevel } from '../core/log-level.js';
import type { Polling } from '../core/polling.js';
import type { EndReason } from '../core/protocol/end-reason.js';
import type { Provider } from '../core/providers.js';
import type { NativeRegion } from './data-plane.js';
import type { PollingStats, RequestKind } from './data-plane-stats.js';

export interface NativeClientOptions {
  readonly hashSeed: Uint8Array;
  /** The client's: `shards` of them from `firstShard` on; default 0. */
  readonly shards: number;
  readonly firstShard?: number;
  readonly ticket: Uint8Array;
  /** How long an operation may take that names no other time, milliseconds. */
  readonly timeoutMs: number;
  /** Operations in flight at once; more answer ERR_BUSY synchronously. */
  readonly maxOutstanding: number;
  /**
   * Whether `flush` polls for what it sent before it returns, as long as that helps. It ends as soon as one operation
   * is finished, for a getMany when all are. It pays where the event loop would otherwise sleep and be woken for each
   * reply.
   */
  readonly polling: Polling;
  /** Entries of the location cache, 16 bytes each, memory taken as they are used; 0: no cache. */
  readonly cachedLocations: number;
  /**
   * How long operations wait for a shard that nobody answers for, milliseconds, 1 to 2^32 - 1; then they end with
   * ERR_SHARD_UNAVAILABLE, and those that come later do so at once, until somebody answers. 0: each waits for its whole
   * time.
   */
  readonly unavailableMs: number;
  /** What it does is kept for takeSteps. */
  readonly traced: boolean;
  /**
   * Called on the event loop when `drain` has something (once until drained), never from inside a call to this object:
   * there the result of `flush` says it.
   */
  readonly onReady: () => void;
  /**
   * Called when a connection came, broke, or was refused, or a shard map looks old: on the event loop, never from
   * inside a call to this object.
   */
  readonly onEvent: (event: NativeClientEvent) => void;
}

/** A request or a READ was given to the transport (`sent`, `read`), or its reply came (`answered`, `landed`). */
export type NativeStep = {
  /** On the clock of bootTimeNs, milliseconds. */
  readonly bootMs: number;
  /** Of the message or the READ. */
  readonly bytes: number;
  readonly provider: Provider;
} & (
  | { readonly type: 'sent'; readonly operation: RequestKind }
  | { readonly type: 'answered'; readonly operation: RequestKind; readonly result: string }
  | { readonly type: 'read' }
  /** `result`: 'ok', or why it failed. */
  | { readonly type: 'landed'; readonly result: string }
);

export type NativeClientEvent =
  | {
      readonly type: 'connected';
      readonly owner: number;
      readonly provider: Provider;
      /** Why the owner itself ended the connection before this one. */
      readonly ended?: EndReason;
    }
  | { readonly type: 'disconnected'; readonly owner: number; readonly provider: Provider; readonly reason: ErrorCode }
  | { readonly type: 'refused'; readonly owner: number; readonly provider: Provider; readonly reason: ErrorCode }
  /** What a transport says of itself, in words; 20 in 10 s, and before it `omitted` were left out. */
  | {
      readonly type: 'line';
      readonly level: Exclude<LogLevel, 'debug'>;
      readonly message: string;
      readonly omitted: number;
    }
  | { readonly type: 'not-owner'; readonly shard: number }
  /** It is connected, and what was sent to it has had no answer for a while. */
  | { readonly type: 'silent'; readonly owner: number; readonly provider: Provider };

/** One data-plane thread of one server. `owner` is a number the SDK chooses. */
export interface OwnerAddress {
  readonly owner: number;
  readonly serverIncarnation: bigint;
  /** In order of preference; the first that connects is used. */
  readonly addresses: readonly { readonly provider: Provider; readonly address: string; readonly device?: number }[];
}

export interface ShardRoute {
  readonly shard: number;
  /** -1: nobody. */
  readonly owner: number;
  readonly epoch: number;
  readonly incarnation: bigint;
  readonly layoutEpoch: number;
  readonly buckets: number;
  readonly regions: readonly NativeRegion[];
}

/** Fixed records of a drained completion: see `NativeClient.completions`. */
export const enum CompletionField {
  Id = 0,
  /** fkv_status. */
  Status = 1,
  /** Bytes of the value (GET) or of the entries (SCAN): so a large page can be taken as a large value is. */
  Bytes = 2,
  /**
   * Where the value lies in the slab given to drain (in getMany's target for a key that was answered at once);
   * NO_VALUE: the record has none.
   */
  Offset = 3,
  Codec = 4,
  UserFlags = 5,
  VersionLow = 6,
  VersionHigh = 7,
  /**
   * With ResultHigh 64 bits. GET: wall clock in milliseconds at which the entry ends, 0: never. increment: the sum, a
   * signed number; append: the length of the value; tally: how many; else 0.
   */
  ResultLow = 8,
  ResultHigh = 9,
  Words = 10,
}

/**
 * In the Offset field of a record without a value, as CLIENT_NO_VALUE in native/node/client.h: no place in any memory,
 * and nothing may be computed with it.
 */
export const NO_VALUE = 0xffffffff;

export interface NativeClientStats {
  /** Begun. What failed is neither among hits nor misses. */
  readonly gets: number;
  readonly getHits: number;
  readonly getMisses: number;
  readonly reads: number;
  readonly readBytes: number;
  /**
   * READs of a bucket after which the owner's responder went on to the extent by itself and sent both (tcp): each is
   * one round trip and one in `reads`. `reads + followedReads` is how many places were looked at.
   */
  readonly followedReads: number;
  readonly retries: number;
  readonly twoSidedGets: number;
  readonly leaseRenewals: number;
  readonly lateDiscards: number;
  readonly tornReads: number;
  /** READs of memory that is not the shard's any more. */
  readonly foreignReads: number;
  readonly changes: number;
  /** GETs that were answered by one READ at a cached location. */
  readonly locationHits: number;
  /** READs at a cached location that did not find the key's entry: it had moved, changed, or gone. */
  readonly locationStale: number;
  /** Cached locations that gave way to others. */
  readonly locationEvictions: number;
  /** GETs that went by the index because their key changes too often for its location to be of use. */
  readonly locationBypassed: number;
  /** How GETs, and how changes, were waited for. `sleeps` counts nothing: the event loop sleeps. */
  readonly getPolling: PollingStats;
  readonly changePolling: PollingStats;
  readonly owners: readonly {
    readonly owner: number;
    readonly provider: Provider | undefined;
    readonly connected: boolean;
  }[];
}

/**
 * A synchronous answer of the client's calls:
 *   n >= 0   done; GET: bytes of the value, written at target[offset...]
 *   n < 0    -(status): NOT_FOUND, VERSION_MISMATCH or an error; ERR_BUFFER_TOO_SMALL leaves the needed size in info
 *   PENDING_BASE + id   will come by drain()
 * After a synchronous answer `info` holds what a completion record would: version, codec, user flags, bytes.
 */
export type Answer = number;
export const PENDING_BASE = 2 ** 30;
/**
 * So many low bits of an operation's id are its place in the client's table: no two that are outstanding have the same.
 */
export const PLACE_BITS = 16;
/** In the Status field of getMany's records: the key is pending, its id is in the Id field. */
export const PENDING_STATUS = 255;
/** Bytes of one append, as FKV_APPEND_MAX in native/wire/wire.h. */
export const APPEND_MAX = 8192;
/** In the place of the ttlMs of a compareAndSwap: the entry expires when it would have. */
export const KEEP_TTL = -1;
/** Of one putMany or deleteMany call. */
export const PUTS_MAX = 1024;
/** In the place of the namespace of a scan: all of them; each entry then has its own. */
export const EVERY_NAMESPACE = 65_536;
/** Characters of the keys that a batch call takes as one text, at most. */
export const TEXTS_MAX = 64 << 10;

export interface RedisListener {
  readonly host: string;
  readonly port: number;
  readonly maxConnections: number;
  /** Of database 0; the others are those behind it. */
  readonly namespace: number;
}

declare const preparedKey: unique symbol;
/**
 * A key that was encoded and hashed once (`NativeClient.prepareKey`). To JavaScript it is a thing without properties;
 * the native side knows what it is, and checks it as it checks any argument. With a client of another cluster, or
 * another namespace, it is hashed anew.
 */
export interface PreparedKey {
  readonly [preparedKey]: true;
}
/** UTF-8 of a text, bytes, or prepared. */
export type NativeKey = string | Uint8Array | PreparedKey;

/**
 * One client: its connections, leases, layouts and outstanding operations. It keeps the event loop alive only while
 * operations are outstanding or wait to be drained; an idle connected client does not keep a process from ending. Ids
 * are 30 bits; an id is used again only long after its operation was drained. setOwners and setRoutes replace the whole
 * list: an owner or a shard that is not named any more is dropped, one that is named as before is left alone.
 * Connections are made for owners that a route names, by themselves, again and again until they succeed; operations
 * wait for them until their time is over.
 */
export interface NativeClient {
  setTicket(ticket: Uint8Array): void;
  /** The next owner of a shard knows what was sent to the one before it. False at first. */
  setReplicated(replicated: boolean): void;
  setOwners(owners: readonly OwnerAddress[]): void;
  setRoutes(routes: readonly ShardRoute[]): void;
  /** Uint32Array of CompletionField.Words numbers: the record of the last synchronous answer. */
  readonly info: Uint32Array;
  /** Uint32Array: drain writes its records here, CompletionField.Words each. */
  readonly completions: Uint32Array;
  /**
   * Keys are strings (UTF-8) or bytes. target is written by an answer at once only, and may be undefined; the value of
   * a GET that became pending always comes to drain's slab: a buffer of JavaScript may be detached or moved to another
   * thread before it would be written.
   */
  get(space: number, key: NativeKey, target: Uint8Array | undefined, offset: number, timeoutMs: number): Answer;
  /** Spins until answered; ERR_UNSUPPORTED over tcp. Never returns PENDING. */
  getSync(space: number, key: NativeKey, target: Uint8Array, offset: number, timeoutMs: number): Answer;
  /**
   * Values are packed into target from offset on; records[i * Words ...] is filled for each key, as a completion record
   * whose Id is the index. Returns how many are pending (0: all done); a pending key's record has Status PENDING_STATUS
   * and the operation's id in its Id field; it comes by drain, its value to drain's slab. A value that does not fit in
   * target beside the others has status ERR_BUFFER_TOO_SMALL and its size in Bytes. Values lie side by side without
   * gaps, in any order: a record's Offset, from target's beginning, is the only thing that says where its value lies.
   * Bytes of `info` is where in target they end.
   *
   * `text` may be all keys one behind the other, with the length of each in `lengths`: what it takes to read one
   * string. `keys` is read where there is none, where it is not ASCII, or where it is longer than TEXTS_MAX.
   *
   * `doorbell`: for how many that were posted it is rung within the call; 32 where it is not said.
   */
  getMany(
    space: number,
    keys: readonly NativeKey[],
    target: Uint8Array,
    offset: number,
    records: Uint32Array,
    timeoutMs: number,
    text?: string,
    lengths?: Uint32Array,
    doorbell?: number,
  ): number;
  put(
    space: number,
    key: NativeKey,
    value: Uint8Array,
    ttlMs: number,
    userFlags: number,
    codec: number,
    timeoutMs: number,
  ): Answer;
  /**
   * Up to PUTS_MAX puts, each an operation of its own that lives for ever. answers[i] is PENDING_BASE + id, or the
   * status of a put that was not sent; behind one with ERR_BUSY all have it. Returns how many are pending. None is
   * polled for; their doorbells are rung. `text`: as for getMany.
   */
  putMany(
    space: number,
    keys: readonly NativeKey[],
    values: readonly Uint8Array[],
    codec: number,
    answers: Uint32Array,
    timeoutMs: number,
    text?: string,
    lengths?: Uint32Array,
  ): number;
  /** As putMany, of deletes; the record of each says NOT_FOUND where there was no such key. */
  deleteMany(
    space: number,
    keys: readonly NativeKey[],
    answers: Uint32Array,
    timeoutMs: number,
    text?: string,
    lengths?: Uint32Array,
  ): number;
  /** expected 0n: the key must be absent. value undefined: compare-and-delete. ttlMs may be KEEP_TTL. */
  compareAndSwap(
    space: number,
    key: NativeKey,
    expected: bigint,
    value: Uint8Array | undefined,
    ttlMs: number,
    userFlags: number,
    codec: number,
    timeoutMs: number,
  ): Answer;
  delete(space: number, key: NativeKey, timeoutMs: number): Answer;
  /**
   * by: 64 bits, signed. ttlMs, codec: of a new entry; a present one keeps its own. ERR_NOT_INTEGER; ERR_CODEC: it was
   * written with another codec.
   */
  increment(space: number, key: NativeKey, by: bigint, ttlMs: number, codec: number, timeoutMs: number): Answer;
  /** At most APPEND_MAX bytes, else ERR_VALUE_TOO_LARGE, as where the new value would be too large. */
  append(space: number, key: NativeKey, value: Uint8Array, ttlMs: number, codec: number, timeoutMs: number): Answer;
  /** The entry ends after ttlMs, 0: never. NOT_FOUND. */
  touch(space: number, key: NativeKey, ttlMs: number, timeoutMs: number): Answer;
  /**
   * One SCAN step on one shard, of a namespace or EVERY_NAMESPACE; the reply's body (native/wire/wire.h fkv_scan_entry)
   * comes to drain's slab; next cursor = version. prefix: at most 1,024 bytes; only keys that begin with them.
   */
  scan(
    space: number,
    shard: number,
    cursor: bigint,
    maxEntries: number,
    withValues: boolean,
    timeoutMs: number,
    prefix?: Uint8Array,
  ): Answer;
  /** One step of counting what scan would list; next cursor = version, how many = result. */
  tally(space: number, shard: number, cursor: bigint, timeoutMs: number, prefix?: Uint8Array): Answer;
  shardOf(space: number, key: NativeKey): number;
  /** Under the cluster's seed, as owners write it where they must not write the key; -(status) where the key is none. */
  hashOf(space: number, key: NativeKey): bigint | number;
  /** Throws ERR_KEY_INVALID, ERR_CLOSED. */
  prepareKey(space: number, key: NativeKey): PreparedKey;
  /** Gives up on an operation: it completes with ERR_ABORTED, a change that was sent already with ERR_INDETERMINATE. */
  cancel(id: number): void;
  /**
   * Rings the doorbells of what was posted since the last flush or poll (a call that returned PENDING did not ring
   * them), then may poll for them. Returns how many operations are finished and wait for `drain`; the caller
   * that sees more than 0 may drain at once, and onReady is then not called for them.
   */
  flush(): number;
  /** Polls, then moves finished operations out: values are packed into slab from 0 on, records into `completions`.
   * Returns the number of records; stops early when slab or records are full (`more` is then true in info[0]). Bytes of
   * `info` is how many bytes of the slab were written. A value larger than slab has ERR_BUFFER_TOO_SMALL in its record,
   * stays held, and is fetched by take. */
  drain(slab: Uint8Array): number;
  take(id: number, target: Uint8Array): void;
  /**
   * Serves Redis clients there (native/resp) with this client's connections, until closeRedis or close; port 0: a free
   * one. Returns the port. Throws ERR_ADDRESS_IN_USE and the like. At most one at a time. It keeps the event loop alive.
   */
  listenRedis(options: RedisListener): number;
  /** Accepts and reads nothing more; answers what is under way. Returns how many connections are left. May be repeated. */
  endRedis(): number;
  /** Closes its connections. Idempotent. */
  closeRedis(): void;
  stats(): NativeClientStats;
  /** Of a traced client: the steps since the last time, in their order, at most the latest 256. */
  takeSteps(): NativeStep[];
  /**
   * Fails what is outstanding with ERR_CLOSED, disconnects, frees. What has ended may be drained once more, by the
   * caller itself: onReady is not called any more. Idempotent. An open client is not collected as long as its callbacks
   * refer to it.
   */
  close(): void;
}
