/**
 * The native boundary: the types of what the Node-API addon (native/node/) offers, and its loading.
 *
 * One crossing per call or per batch; results that come later are fetched with `drain`, many at a time. Two classes:
 * DataPlane is the owner's side (used by server/ in its worker thread), NativeClient the client's (used by client/).
 * Neither is for users. 64-bit numbers are bigint where every bit counts (versions), Number where 2^53 is enough
 * (bytes, milliseconds).
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { FarkvError, type ErrorCode } from '../core/errors.js';
import type { Provider } from '../core/providers.js';

/** Constants that exist once, in C. */
export interface Constants {
  /** Index: fkv_status. Members are 'OK', 'NOT_FOUND', 'VERSION_MISMATCH' or an ErrorCode. */
  readonly statusNames: readonly string[];
  readonly statusTexts: readonly string[];
  readonly keyMax: number;
  readonly valueMax: number;
  readonly dedupWindow: number;
  readonly wireVersionMin: number;
  readonly wireVersionMax: number;
  readonly layoutVersion: number;
  readonly memoryMin: number;
  /** Providers that this build has and whose libraries are here. */
  readonly providers: readonly Provider[];
  /** Those that there are, whether or not they can be used here: core/providers.ts has the same list. */
  readonly allProviders: readonly Provider[];
}

// ---------------------------------------------------------------- owner's side

export type HugePages = 'off' | 'auto' | 'require';

export interface DataPlaneOptions {
  readonly serverIncarnation: bigint;
  /** 16 bytes each. */
  readonly hashSeed: Uint8Array;
  readonly ticketSecret: Uint8Array;
  readonly shards: number;
  /**
   * Whose shards follow each other and are all there are (native/dataplane/dataplane.h). maxClients 0: as many as of
   * all. Default: one domain of all shards.
   */
  readonly tenants?: readonly { readonly shards: number; readonly maxClients: number }[];
  readonly leaseMs: number;
  readonly driftPpm: number;
  readonly listen: readonly { readonly provider: Provider; readonly address: string; readonly worker: number }[];
  /** Data-plane threads. */
  readonly workers: number;
  readonly maxClients: number;
  /** Requests one client may have in the owner's hands; more push back. */
  readonly clientQuota: number;
  /** How long an idle data-plane thread polls before it sleeps, microseconds. */
  readonly spinUs: number;
  /** How long tcp's responder polls before it sleeps, and the kernel at its sockets (SO_BUSY_POLL). */
  readonly tcpBusyPollUs: number;
  /**
   * Of what pages tables' memory is; `require` fails the start where the system has no huge ones, and makes every
   * segment of them.
   */
  readonly hugePages: HugePages;
  /**
   * Registered by all shards together; a shard's first segments are given also beyond it. Default: no bound but the
   * shards' own.
   */
  readonly memoryBytes?: number;
}

export interface NativeRegion {
  readonly provider: Provider;
  readonly kind: 'index' | 'heap';
  readonly segment: number;
  readonly tag: number;
  readonly bytes: number;
  readonly remoteAddress: bigint;
  readonly rkey: bigint;
}

export interface ShardLayout {
  readonly shard: number;
  readonly epoch: number;
  readonly incarnation: bigint;
  readonly layoutEpoch: number;
  readonly buckets: number;
  readonly regions: readonly NativeRegion[];
}

/** Where a shard is copied from. */
export interface CopyOptions {
  readonly shard: number;
  /** Of ownership, at the present owner; and the incarnation that the shard has there. */
  readonly epoch: number;
  readonly incarnation: bigint;
  readonly serverIncarnation: bigint;
  /** That of the shard here: for it the owner is to be sealed. */
  readonly copy: bigint;
  /** Of the owner's data-plane thread that has the shard, in order of preference; at most 64. */
  readonly addresses: readonly { readonly provider: Provider; readonly address: string }[];
}

/**
 * Entries and bytes taken over, some more than once; one-sided READs, and values that the old owner had to be asked
 * for.
 */
export interface CopyStats {
  readonly entries: number;
  readonly bytes: number;
  readonly reads: number;
  readonly twoSidedGets: number;
}

/** What an owner is asked by SEND; `cas` is compare-and-swap and compare-and-delete. */
export type RequestKind = 'lease' | 'layout' | 'get' | 'put' | 'delete' | 'cas' | 'scan';

/** Nanoseconds; p50 and p99 are at most 3.2 % too high, count and max are exact. */
export interface Latency {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Counters since start; bytes, counts, nanoseconds. Names are stable: they are shown by `farkv status --json`. */
export interface DataPlaneStats {
  /** What segments of whole huge pages are given, as it was found at start; servers of earlier versions do not say. */
  readonly pages?: 'small' | 'transparent' | 'reserved';
  readonly workers: readonly {
    readonly worker: number;
    readonly threadId: number;
    readonly clients: number;
    /** Clients that take no replies at present. */
    readonly blockedClients: number;
    readonly requests: Readonly<Record<RequestKind, number>>;
    readonly refused: Readonly<Record<string, number>>;
    readonly duplicates: number;
    /**
     * How long requests were in the owner's hands: from the turn of its thread in which one came to the end of the one
     * that handed the last of its answer to the transport. `get` is of GETs that the owner was asked for; one-sided
     * ones it does not see. Refused requests do not count.
     */
    readonly latencyNs: Readonly<Record<RequestKind, Latency>>;
    /** READs of peers that this process itself served: only tcp does; 0 where memory or a NIC does it alone. */
    readonly readsServed: number;
    /** Large values taken in by rendezvous. */
    readonly transfers: number;
    /** Times the thread went to sleep. */
    readonly sleeps: number;
  }[];
  readonly shards: readonly {
    readonly shard: number;
    readonly worker: number;
    readonly serving: boolean;
    readonly entries: number;
    readonly keyValueBytes: number;
    readonly indexBytes: number;
    readonly heapBytes: number;
    readonly memoryBytes: number;
    /**
     * Registered bytes that cannot take another entry now: all but indexFreeBytes and freeBytes. All of it is accounted
     * for: heapBytes = liveBytes + preparedBytes + overflowBytes + quarantineBytes + slackBytes + freeBytes.
     */
    readonly usedBytes: number;
    /** Index memory that no bucket has yet. */
    readonly indexFreeBytes: number;
    /** Entries: keys, values, headers, and what is lost to the next size class. */
    readonly liveBytes: number;
    /** Of changes that are prepared. */
    readonly preparedBytes: number;
    /** Buckets that chains of the index have in the heap. */
    readonly overflowBytes: number;
    /** Ends of pages that no extent fits in. */
    readonly slackBytes: number;
    /**
     * Registered bytes by the pages behind them; the sum is indexBytes + heapBytes. Huge ones are `transparent` or
     * `reserved`.
     */
    readonly smallPageBytes: number;
    readonly transparentPageBytes: number;
    readonly reservedPageBytes: number;
    /**
     * Registered beside those: segments that the table has given back and that clients may know of until their leases
     * are over.
     */
    readonly retiredBytes: number;
    /** Not registered: what the owner keeps for itself. */
    readonly privateBytes: number;
    readonly quarantineBytes: number;
    readonly freeBytes: number;
    readonly buckets: number;
    readonly overflowBuckets: number;
    readonly longestChain: number;
    readonly splits: number;
    readonly expired: number;
    readonly evacuated: number;
    readonly prepared: number;
  }[];
}

/** The owner's threads. Made stopped; `start` listens. Methods throw FarkvError-coded errors ({ code: 'ERR_...' }). */
export interface DataPlane {
  /**
   * Listens and starts the threads; answers with the addresses that were really bound. Throws ERR_ADDRESS_IN_USE and
   * the like.
   */
  start(): { readonly provider: Provider; readonly address: string; readonly worker: number }[];
  /**
   * Allocates, prefaults and registers a shard's first segments off the data-plane thread. The shard answers
   * ERR_SHARD_UNAVAILABLE until served.
   */
  openShard(o: {
    readonly shard: number;
    readonly worker: number;
    readonly epoch: number;
    readonly incarnation: bigint;
    readonly memoryBytes: number;
  }): Promise<ShardLayout>;
  /** Begins to grant leases and to answer for the shard, at once. */
  serveShard(shard: number): Promise<void>;
  /** Stops answering, waits until every granted lease has run out, deregisters. */
  closeShard(shard: number): Promise<void>;
  layout(shard: number): Promise<ShardLayout>;
  /**
   * Sealed, a shard takes no changes (clients ask again by themselves) and goes on to be read: the last of it is being
   * copied. `copy` is the incarnation of the copy for which it is, and no other copy may rely on it; 0n: changes are
   * taken again.
   */
  sealShard(shard: number, copy: bigint): Promise<void>;
  /**
   * Stops answering and waits until every granted lease has run out; the shard keeps what is in it, and serveShard goes
   * on with it.
   */
  pauseShard(shard: number): Promise<void>;
  /**
   * Copies a shard from its present owner into the one that is open here and is not served (native/client/copy.h).
   * Resolves when all was copied once and little is left; what changes is followed until stopCopy. A copy that fails
   * has no second try: the shard is to be closed and opened anew.
   */
  copyShard(o: CopyOptions): Promise<void>;
  /** Resolves when the old owner is sealed and both have the same; once for each copy. */
  finishCopy(shard: number): Promise<CopyStats>;
  /**
   * Ends the copy of a shard, if there is one; what was promised of it rejects with ERR_ABORTED. Returns at once: what
   * the table is taking over just then takes as long as memory for it does. Resolves when nothing of the copy is under
   * way; until then copyShard of the same shard is ERR_BUSY.
   */
  stopCopy(shard: number): Promise<void>;
  stats(): Promise<DataPlaneStats>;
  /**
   * The owner's own lease from the metadata group, as bootTimeNs counts: no lease is granted beyond it, and after it
   * requests are answered ERR_SHARD_UNAVAILABLE. 2n ** 64n - 1n, as at first: no end. Takes effect at once.
   */
  setGrantUntil(bootNs: bigint): void;
  /** How long the leases are that are granted from now on; never longer than the options say. */
  setLeaseMs(ms: number): void;
  /** Called on the owning event loop when a shard's segments changed. */
  onLayout: ((shard: number, layoutEpoch: number) => void) | undefined;
  /**
   * The same: the device of a transport is gone, and no client will come over it again in the life of this data plane.
   * More than once, possibly.
   */
  onUnreachable: ((provider: Provider) => void) | undefined;
  /** Drains, disconnects, deregisters, unmaps, joins the threads. Idempotent. */
  close(): Promise<void>;
}

// ---------------------------------------------------------------- client's side

export interface NativeClientOptions {
  readonly hashSeed: Uint8Array;
  /** The client's: `shards` of them from `firstShard` on; default 0. */
  readonly shards: number;
  readonly firstShard?: number;
  readonly ticket: Uint8Array;
  /** Providers in order of preference; the addresses given to setOwner are tried in it. */
  readonly timeoutMs: number;
  /** Operations in flight at once; more answer ERR_BUSY synchronously. */
  readonly maxOutstanding: number;
  /**
   * How long `flush` may poll for the changes, and for the GETs, that it sent before it returns, microseconds. 0:
   * never. Polling ends as soon as one operation is finished, for a getMany when all are. It pays where the event loop
   * would otherwise sleep and be woken for each reply (a sequential `await get` over tcp, `await put` over any).
   */
  readonly putSpinUs: number;
  readonly getSpinUs: number;
  /** SO_BUSY_POLL of tcp's sockets; 0: as the system has it. */
  readonly busyPollUs: number;
  /** Entries of the location cache, 16 bytes each, memory taken as they are used; 0: no cache. */
  readonly cachedLocations: number;
  /**
   * How long operations wait for a shard that nobody answers for, milliseconds, 1 to 2^32 - 1; then they end with
   * ERR_SHARD_UNAVAILABLE, and those that come later do so at once, until somebody answers. 0: each waits for its whole
   * time.
   */
  readonly unavailableMs: number;
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

export type NativeClientEvent =
  | { readonly type: 'connected'; readonly owner: number; readonly provider: Provider }
  | { readonly type: 'disconnected'; readonly owner: number; readonly provider: Provider; readonly reason: ErrorCode }
  | { readonly type: 'refused'; readonly owner: number; readonly provider: Provider; readonly reason: ErrorCode }
  | { readonly type: 'not-owner'; readonly shard: number };

/** One data-plane thread of one server. `owner` is a number the SDK chooses. */
export interface OwnerAddress {
  readonly owner: number;
  readonly serverIncarnation: bigint;
  /** In order of preference; the first that connects is used. */
  readonly addresses: readonly { readonly provider: Provider; readonly address: string }[];
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
  Words = 8,
}

/**
 * In the Offset field of a record without a value, as CLIENT_NO_VALUE in native/node/client.h: no place in any memory,
 * and nothing may be computed with it.
 */
export const NO_VALUE = 0xffffffff;

export interface NativeClientStats {
  readonly gets: number;
  readonly getHits: number;
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
  readonly changes: number;
  /** GETs that were answered by one READ at a cached location. */
  readonly locationHits: number;
  /** READs at a cached location that did not find the key's entry: it had moved, changed, or gone. */
  readonly locationStale: number;
  /** Cached locations that gave way to others. */
  readonly locationEvictions: number;
  /** GETs that went by the index because their key changes too often for its location to be of use. */
  readonly locationBypassed: number;
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
/** Of one putMany call. */
export const PUTS_MAX = 1024;
/** Characters of the keys that a batch call takes as one text, at most. */
export const TEXTS_MAX = 64 << 10;

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
  get(ns: number, key: NativeKey, target: Uint8Array | undefined, offset: number, timeoutMs: number): Answer;
  /** Spins until answered; ERR_UNSUPPORTED over tcp. Never returns PENDING. */
  getSync(ns: number, key: NativeKey, target: Uint8Array, offset: number, timeoutMs: number): Answer;
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
    ns: number,
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
    ns: number,
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
    ns: number,
    keys: readonly NativeKey[],
    values: readonly Uint8Array[],
    codec: number,
    answers: Uint32Array,
    timeoutMs: number,
    text?: string,
    lengths?: Uint32Array,
  ): number;
  /** expected 0n: the key must be absent. value undefined: compare-and-delete. */
  compareAndSwap(
    ns: number,
    key: NativeKey,
    expected: bigint,
    value: Uint8Array | undefined,
    ttlMs: number,
    userFlags: number,
    codec: number,
    timeoutMs: number,
  ): Answer;
  delete(ns: number, key: NativeKey, timeoutMs: number): Answer;
  /**
   * One SCAN step on one shard; the reply's body (native/wire/wire.h fkv_scan_entry) comes to drain's slab; next cursor
   * = version.
   */
  scan(ns: number, shard: number, cursor: bigint, maxEntries: number, withValues: boolean, timeoutMs: number): Answer;
  shardOf(ns: number, key: NativeKey): number;
  /** Throws ERR_KEY_INVALID, ERR_CLOSED. */
  prepareKey(ns: number, key: NativeKey): PreparedKey;
  /** Gives up on an operation: it completes with ERR_ABORTED, a change that was sent already with ERR_INDETERMINATE. */
  cancel(id: number): void;
  /**
   * Rings the doorbells of what was posted since the last flush or poll (a call that returned PENDING did not ring
   * them), then may poll for up to getSpinUs. Returns how many operations are finished and wait for `drain`; the caller
   * that sees more than 0 may drain at once, and onReady is then not called for them.
   */
  flush(): number;
  /** Polls, then moves finished operations out: values are packed into slab from 0 on, records into `completions`.
   * Returns the number of records; stops early when slab or records are full (`more` is then true in info[0]). Bytes of
   * `info` is how many bytes of the slab were written. A value larger than slab has ERR_BUFFER_TOO_SMALL in its record,
   * stays held, and is fetched by take. */
  drain(slab: Uint8Array): number;
  take(id: number, target: Uint8Array): void;
  stats(): NativeClientStats;
  /**
   * Fails what is outstanding with ERR_CLOSED, disconnects, frees. What has ended may be drained once more, by the
   * caller itself: onReady is not called any more. Idempotent. An open client is not collected as long as its callbacks
   * refer to it.
   */
  close(): void;
}

/** An address that leads to an RDMA device, and which. */
export interface RdmaAddress {
  readonly device: string;
  readonly networkInterface: string;
  readonly address: string;
  readonly iwarp: boolean;
}

/** What native/node/ exports. */
export interface Addon {
  readonly constants: Constants;
  readonly DataPlane: new (options: DataPlaneOptions) => DataPlane;
  readonly NativeClient: new (options: NativeClientOptions) => NativeClient;
  /** A fkv_ticket of 40 bytes. */
  makeTicket(secret: Uint8Array, client: bigint, expiresMs: number, tenant: number, flags: number): Uint8Array;
  hashKey(seed: Uint8Array, ns: number, key: string | Uint8Array): bigint;
  crc32c(bytes: Uint8Array, crc?: number): number;
  /** fdatasync-free helpers that Node.js lacks. */
  bootTimeNs(): bigint;
  /** flock(LOCK_EX | LOCK_NB) on an open descriptor; false when another process holds it. */
  tryLock(fd: number): boolean;
  /**
   * Why this provider cannot be used here (not built, or a library is missing), or undefined. A device is not looked
   * for.
   */
  providerMissing(provider: Provider): string | undefined;
  /** Addresses of this host that lead to an RDMA device. Empty where there is none, or no library. */
  rdmaAddresses(): RdmaAddress[];
}

function packageRoot(): string {
  let dir = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(dir, 'package.json'))) dir = dirname(dir);
  return dir;
}

function load(): Addon {
  const require = createRequire(import.meta.url);
  try {
    const build = require('node-gyp-build') as (dir: string) => unknown;
    return build(packageRoot()) as Addon;
  } catch (cause) {
    throw new FarkvError(
      'ERR_ADDON',
      `farkv's native addon could not be loaded on ${process.platform}-${process.arch}. ` +
        'Prebuilt binaries are for linux-x64 (glibc); elsewhere install gcc, make and python3, then run: npm rebuild farkv',
      { cause },
    );
  }
}

export const addon: Addon = load();
