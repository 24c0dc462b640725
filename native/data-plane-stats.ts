/**
 * The counts of the owner's side of the native boundary: what DataPlane's `stats` answers with
 * (native/node/server_result.c). Each is a sum since the start, or what is so at that moment. Not for: what the data plane
 * is made with and called for, and what it reports by itself (data-plane.ts).
 */
import type { Provider } from '../core/providers.js';

/**
 * Of a copy at its owner. `joins`: gets what is changed, and nobody waits for it; `required`: is waited for, by the
 * owner's own wish; `proposed`: the same, and the metadata has been asked to make it a copy in sync.
 */
export type CopyStanding = 'joins' | 'required' | 'proposed' | 'in-sync';

/** A place in the log of a shard's changes; records are counted from 1 through all owners. */
export interface ReplicaStats {
  readonly role: 'backup' | 'owner';
  /** As the metadata names it, 16 hex digits; zeros: the shard was opened as the owner's. */
  readonly id: string;
  readonly epoch: number;
  /** Of an owner; else 0. */
  readonly config: number;
  readonly prepared: number;
  readonly committed: number;
  /** Records that are prepared here and not committed. */
  readonly lag: number;
  /** Of a backup: whether it is connected to its owner and was answered. */
  readonly follows: boolean;
  /** Of a backup that can take no more records: why. */
  readonly failed?: string;
  /** Of an owner: the copies that it knows. */
  readonly peers: readonly {
    readonly id: string;
    readonly standing: CopyStanding;
    readonly prepared: number;
    /** For how long the owner may still rely on it; 0: not now. */
    readonly leaseLeftMs: number;
    /** Over what it is connected. */
    readonly linked?: Provider;
  }[];
}

/** Requests that change an entry; `cas` is compare-and-swap and compare-and-delete. */
export const CHANGES = ['put', 'delete', 'cas', 'increment', 'append', 'touch', 'fields'] as const;
/** What an owner is asked by SEND. */
export type RequestKind = 'lease' | 'layout' | 'get' | 'scan' | (typeof CHANGES)[number];

/** Nanoseconds; p50 and p99 are at most 3.2 % too high, count and max are exact. */
export interface Latency {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly sum: number;
  /** How many were less than 2^(10 + i) ns, for i from 0 to 23; the last: all. Empty where there are none. */
  readonly below: readonly number[];
}

/** One-sided GETs, which servers do not see, as clients report them with their leases: sums since the start. */
export interface ReportedGets {
  readonly hits: number;
  readonly misses: number;
  readonly reads: number;
  readonly readBytes: number;
  readonly followedReads: number;
  readonly tornReads: number;
  readonly lateDiscards: number;
  readonly foreignReads: number;
  readonly twoSidedGets: number;
}

/** Counts of one tenant's clients, over all workers, since the start. */
export interface TenantStats {
  /** Requests that were answered, not refused: those that `latencyNs` counts. */
  readonly answered: Readonly<Record<RequestKind, number>>;
  /** Kinds without any are absent. */
  readonly refusedOf: Readonly<Partial<Record<RequestKind, Readonly<Record<string, number>>>>>;
  readonly reported: ReportedGets;
}

/** Of a worker's write-ahead log; counts since its start. */
export interface LogStats {
  /** That a start would read. */
  readonly bytes: number;
  /** Files without records that it may go on in. */
  readonly freeFiles: number;
  /** The disk has no space for another file: changes are refused until it has. */
  readonly diskFull: boolean;
  /** Of batches: how long each took to be written and synced. */
  readonly syncNs: Latency;
  /** In those batches. */
  readonly records: number;
}

/** What a thread did that looked for work and found none (native/base/poller.h). Counts since it began. */
export interface PollingStats {
  /** Of its life, the part in which it polled without work. */
  readonly share: number;
  /** Waits that were polled and ended with work; that ended without. */
  readonly found: number;
  readonly vain: number;
  /** Times it offered its processor to others; of them, those in which somebody took it. */
  readonly yields: number;
  readonly lateYields: number;
  readonly sleeps: number;
  /** Times it stopped polling for a while, since somebody who took its processor kept it. */
  readonly backOffs: number;
}

/** Counters since start; bytes, counts, nanoseconds. Names are stable: they are shown by `farkv status --json`. */
export interface DataPlaneStats {
  /** What segments of whole huge pages are given, as it was found at start. */
  readonly pages: 'small' | 'transparent' | 'reserved';
  /** Segments that were not made since the process has no more descriptors. */
  readonly descriptorsMissed: number;
  /** By the tenants' numbers, the default tenant's first. */
  readonly tenants: readonly TenantStats[];
  readonly workers: readonly {
    readonly worker: number;
    readonly threadId: number;
    readonly clients: number;
    /** Clients that take no replies at present. */
    readonly blockedClients: number;
    readonly requests: Readonly<Record<RequestKind, number>>;
    readonly refused: Readonly<Record<string, number>>;
    /** Of those the ones whose kind is known; kinds without any are absent. */
    readonly refusedOf: Readonly<Partial<Record<RequestKind, Readonly<Record<string, number>>>>>;
    /** Of `clients`, by transport; those without any are absent. */
    readonly clientsOver: Readonly<Partial<Record<Provider, number>>>;
    readonly reported: ReportedGets;
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
    readonly polling: PollingStats;
    /** Of the thread that answers READs over tcp. */
    readonly responderPolling?: PollingStats;
    /** Where shards are durable. */
    readonly log?: LogStats;
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
    /** Not registered any more: parts of memory files that the system gets back with the last segment of each. */
    readonly heldBytes: number;
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
    /** Of a shard that has copies elsewhere, or is one. */
    readonly copy?: ReplicaStats;
    /** The last snapshot failed, and is tried again each minute. */
    readonly snapshotErrno?: number;
  }[];
}
