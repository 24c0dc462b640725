/**
 * The types of the owner's side of the native boundary: DataPlane (native/node/server_binding.c), what it is made
 * with, and what it reports by itself. Used by server/ in its worker thread; native/addon.ts loads it. Not for: what it
 * counts (data-plane-stats.ts).
 */
import type { LogLevel } from '../core/log-level.js';
import type { Polling } from '../core/polling.js';
import type { EndReason } from '../core/protocol/end-reason.js';
import type { Provider } from '../core/providers.js';
import type { DataPlaneStats, RequestKind } from './data-plane-stats.js';

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
  readonly listen: readonly Listening[];
  /** Data-plane threads. */
  readonly workers: number;
  readonly maxClients: number;
  /** Requests one client may have at one worker; its welcome tells a client so. */
  readonly clientQuota: number;
  /** Whether data-plane threads and tcp's responders poll before they sleep. */
  readonly polling: Polling;
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
  /** For how long a copy here lets its owner rely on it with each acknowledgement; 50 to 3,600,000, default 250. */
  readonly replicaLeaseMs?: number;
  /** For how long a copy that is waited for may acknowledge nothing before `onCopy` calls it late; default 1,000. */
  readonly backupSlowMs?: number;
  /** Between two looks at all memory of a copy; default 300,000. */
  readonly scrubMs?: number;
  /**
   * Requests that took so long, if they were held over a turn of the thread, are told by `onSlow`; 1: all are. Default:
   * none.
   */
  readonly slowNs?: number;
  /** With 1 there: those that took so long are told as slow ones, within their own bound. Default: none. */
  readonly tracedSlowNs?: number;
  /** Where the records of durable shards go; without it no shard is durable. */
  readonly log?: DataPlaneLog;
}

export interface DataPlaneLog {
  readonly directory: string;
  /** 16 bytes; with `instance` it says whose logs these are: others are refused. */
  readonly cluster: Uint8Array;
  readonly instance: bigint;
  /** Of each copy that is made anew of what is there. */
  readonly shardMemoryBytes: number;
  /** These copies. All of others is removed from the disk. */
  readonly recovers: readonly { readonly shard: number; readonly copy: bigint }[];
  /** A change is answered, and acknowledged, before it is on the disk, and is there after about so long. 0: not. */
  readonly syncMs?: number;
  /** Snapshots are made when a thread's log is longer than this, and than its tables. Default: 256 MiB. */
  readonly snapshotBytes?: number;
}

/** A copy that was found on the disk. A whole one is open, and follows nobody yet (followOwner, leadCopy). */
export interface RecoveredOnDisk {
  readonly shard: number;
  readonly worker: number;
  readonly copy: bigint;
  readonly whole: boolean;
  /** It is not; else empty. */
  readonly why: string;
  /** Of a whole one. */
  readonly epoch: number;
  readonly prepared: number;
  readonly committed: number;
}

/** What a cluster makes tickets with, and which of those it has had it is. */
export interface TicketSecret {
  readonly number: number;
  /** 16 bytes. */
  readonly secret: Uint8Array;
}

export interface DataPlaneAccess {
  /** One or two, the present one first. */
  readonly secrets: readonly TicketSecret[];
  /** Tickets that were made before then are not good: a client's, or (client 0) those of a tenant's clients. */
  readonly revoked: readonly { readonly client: bigint; readonly tenant: number; readonly beforeMs: number }[];
}

/** Where a data-plane thread listens. */
export interface Listening {
  readonly provider: Provider;
  readonly address: string;
  readonly worker: number;
  /** All that listens with the same provider and device has one domain of the fabric: the same rkeys. Absent: 0. */
  readonly device?: number;
}

export interface NativeRegion {
  readonly provider: Provider;
  /** Of the addresses over which it is READ with this rkey; absent: 0. */
  readonly device?: number;
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

/** Where an owner's data-plane thread listens; `device` as in Listening. */
export type OwnerAddress = Omit<Listening, 'worker'>;

/** Where a shard is copied from. */
export interface CopyOptions {
  readonly shard: number;
  /** Of ownership, at the present owner; and the incarnation that the shard has there. */
  readonly epoch: number;
  readonly incarnation: bigint;
  readonly serverIncarnation: bigint;
  /** Id of the copy that is made here: the owner knows it by that once it follows. */
  readonly copy: bigint;
  /** The table here is a base (keepBase): values that it has in the owner's version are not READ. Default: it is empty. */
  readonly base?: boolean;
  /** Of the owner's data-plane thread that has the shard, in order of preference; at most 64. */
  readonly addresses: readonly OwnerAddress[];
}

/** What the metadata says of a shard's copies, seen by its owner. */
export interface CopyConfig {
  readonly shard: number;
  readonly epoch: number;
  /** Number of the shard's entry in the metadata: rises with each change of its owner or its copies. */
  readonly config: number;
  /** Copies that a new change needs, the owner's own included. */
  readonly minInSync: number;
  /** Ids of the copies in sync beside the owner's own; at most 4. */
  readonly inSync: readonly bigint[];
  /**
   * Of copies that were taken away when too few stayed in sync; at most 4. They are kept as copies that join: once they
   * have all that is committed, they may be in sync again.
   */
  readonly eligible: readonly bigint[];
  /** Of copies that join; at most 4. One of them that was in sync in the config before is kept in the same way, for 10 s. */
  readonly joining: readonly bigint[];
  /** The policy wants no copy beside the owner's: with DataPlaneLog.syncMs that one answers early alone. Default: false. */
  readonly alone?: boolean;
}

/** Where the data-plane thread listens that owns the shard of a copy, in order of preference; of more than 8 the first. */
export interface OwnerOfCopy {
  readonly shard: number;
  readonly addresses: readonly OwnerAddress[];
}

/**
 * What an owner notices of a copy. `joined`: it follows, with little lag, and could be required. `late`: it is waited
 * for and has acknowledged nothing for backupSlowMs, or has no connection for so long. `back`: one that was late
 * acknowledges again. `unlinked`: one that is waited for has had no connection for a moment, or for twice as long as when
 * that was said last; its server may have ended.
 * `damaged`, said where the copy is: it is not what its owner has, or its memory has changed by itself; it acknowledges
 * nothing any more. `unknown`, said there too: its owner does not know it, or has not kept what it lacks. `refused`: the
 * same, said at the owner each time that the copy asks. `full`, said where the copy is: it has no room for a change that
 * its owner has; it acknowledges nothing any more.
 */
export type CopyEvent = 'joined' | 'late' | 'back' | 'unlinked' | 'damaged' | 'unknown' | 'refused' | 'full';

/**
 * Entries and bytes taken over, some more than once; entries that were here already; one-sided READs, and values that the
 * owner had to be asked for.
 */
export interface CopyStats {
  readonly entries: number;
  readonly bytes: number;
  readonly kept: number;
  readonly reads: number;
  readonly twoSidedGets: number;
}

/** A request that was slow. */
export interface SlowRequest {
  /** false: it is told since all are. */
  readonly slow: boolean;
  readonly operation: RequestKind;
  readonly result: string;
  /** From its arrival until its answer was handed to the transport. */
  readonly ms: number;
  readonly worker: number;
  readonly shard: number;
  /** Of a request about one key: the hash of that, under the cluster's seed. */
  readonly keyHash?: string;
  /** Absent: its connection is gone. */
  readonly client?: string;
  /**
   * Of a change that copies or the disk had to have: until it was prepared; from then until all had it; and who was the
   * last: the id of a copy, 16 hex digits; `disk`, the owner's own; `log`, its log, where changes are answered before the
   * disk has them; or `config`: the shard's copies were others from then on.
   */
  readonly queuedMs?: number;
  readonly heldMs?: number;
  readonly last?: string;
}

/** A client's connection to a worker that the worker ended. */
export interface EndedConnection {
  /** As its ticket names it. */
  readonly client: bigint;
  readonly worker: number;
  readonly provider: Provider;
  readonly why: EndReason;
  /** Of this connection, at the worker at that moment. */
  readonly requests: number;
}

/** The owner's threads. Made stopped; `start` listens. Methods throw FarkvError-coded errors ({ code: 'ERR_...' }). */
export interface DataPlane {
  /**
   * Listens and starts the threads; answers with the addresses that were really bound. Throws ERR_ADDRESS_IN_USE and
   * the like.
   */
  start(): Listening[];
  /**
   * The same, on another thread, since it reads what logs and snapshots have. Rejects with ERR_CORRUPT and a sentence
   * when a log cannot be gone on with; the data plane can be closed meanwhile.
   */
  recover(): Promise<{
    readonly addresses: ReturnType<DataPlane['start']>;
    readonly copies: readonly RecoveredOnDisk[];
    /** Of logs whose last batch was not written to its end, and is cut off: sentences. */
    readonly torn: readonly string[];
  }>;
  /** How much of what is there `recover` has read. */
  progress(): { readonly bytes: number; readonly all: number };
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
    /** That the index has from the first: as many as that of the table that is copied into it. Default: few. */
    readonly buckets?: number;
    /** Changes are answered when they are in the log, too. */
    readonly durable?: boolean;
  }): Promise<ShardLayout>;
  /**
   * Begins to grant leases and to answer for the shard, at once; of a copy that leads, once no earlier owner can be
   * relied on and all copies in sync have what came with the shard. That may take a lease and longer; it rejects with
   * ERR_ABORTED when leadCopy comes again meanwhile, and as ever when the shard is closed.
   */
  serveShard(shard: number): Promise<void>;
  /** Stops answering, waits until every granted lease has run out, deregisters. What is on the disk of it is gone. */
  closeShard(shard: number): Promise<void>;
  layout(shard: number): Promise<ShardLayout>;
  /**
   * Stops answering and waits until every granted lease has run out and every change that was sent to a copy has taken
   * effect; the shard keeps what is in it, and serveShard goes on with it.
   */
  pauseShard(shard: number): Promise<void>;
  /** Resolves when all that has taken effect by now is in a snapshot on the disk; of a durable shard. */
  snapshot(shard: number): Promise<void>;
  /** What is on the disk of a copy that was not whole may go. */
  discardCopy(shard: number, copy: bigint): Promise<void>;
  /**
   * Copies a shard from its present owner into the one that is open here and is not served (native/client/copy.h).
   * Resolves when all was copied once and little is left; what changes is copied on until followCopy or stopCopy. A copy
   * that fails has no second try: the shard is to be closed and opened anew, or its table is the base of the next copy
   * (keepBase).
   */
  copyShard(o: CopyOptions): Promise<void>;
  /**
   * Ends the copy of a shard, if there is one; what was promised of it rejects with ERR_ABORTED. Returns at once: what
   * the table is taking over just then takes as long as memory for it does. Resolves when nothing of the copy is under
   * way; until then copyShard of the same shard is ERR_BUSY.
   */
  stopCopy(shard: number): Promise<void>;
  /**
   * The copy goes on as a backup; once for each copy. The owner names the place in its log up to which everything was
   * copied; from there its records come over a link to the addresses that copyShard was given. Resolves when the owner
   * has answered the first FOLLOW; nobody waits for the copy yet (requireCopy, at the owner). Rejects with ERR_ABORTED
   * where nothing is copied or the copy is stopped, as copyShard does where it fails, and with ERR_BUSY where the owner
   * has as many copies as it can have. Afterwards there is no copy to stop.
   */
  followCopy(shard: number): Promise<CopyStats>;
  /**
   * The copy here is none any more, nor on the disk, and what it has committed stays in the table: copyShard begins with
   * that, for the copy of this id. Also after a copy that failed and was stopped. Rejects with ERR_CORRUPT where it is
   * damaged, and with ERR_BUSY where it leads.
   */
  keepBase(shard: number, id: bigint): Promise<void>;
  /** The owner of the copy is another server or data-plane thread now. Any time after followCopy. */
  followOwner(o: OwnerOfCopy): Promise<void>;
  /**
   * The copy is the owner's table from now on, in this epoch and under this incarnation. Resolves at once; serveShard
   * follows, and waits for what is in the way of it. `handed`: the owner before has handed the shard over in this epoch, so
   * nothing is.
   */
  leadCopy(o: CopyConfig & { readonly incarnation: bigint; readonly handed: boolean }): Promise<ShardLayout>;
  /** A later config of the same epoch was applied, at the owner; also the first one of a shard that was opened empty. */
  configureCopies(o: CopyConfig): Promise<void>;
  /**
   * The copy, which joins, is waited for from now on, by changes and by leases. Resolves when the metadata may be asked
   * to make it a copy in sync: `lsn` is what is committed then. It is waited for until a config was applied after that.
   * Called once more, as in a later config, it ends the call before, and resolves at once where that has resolved in the
   * config of now. Rejects with ERR_ABORTED when it is called once more, the copy is dropped or in sync, or the shard
   * closes; with ERR_NOT_OWNER where it is unknown, and ERR_BUSY where it has not joined, or is in sync.
   */
  requireCopy(shard: number, id: bigint): Promise<{ readonly lsn: number }>;
  /**
   * A copy that joins, or is required, is not wanted any more; OK too where it is unknown. Of one that is proposed or in
   * sync only configureCopies lets go: ERR_BUSY.
   */
  dropCopy(shard: number, id: bigint): Promise<void>;
  /**
   * In the config that the owner has now it answers from now on only what its own log has on the disk. Resolves when all
   * that it has answered is there: in that config the metadata may be asked to take a copy away. Rejects with
   * ERR_NOT_OWNER, with ERR_ABORTED when the next config comes before, and with ERR_BUSY or ERR_ABORTED where the shard
   * closes or steps down.
   */
  relyOnDisk(shard: number): Promise<void>;
  /**
   * The shard, which is served, is to be given to this copy in sync. Its leases get short; then it answers nothing and
   * changes wait. Resolves when every lease is over and the copy has all: the metadata may be asked. serveShard goes on
   * with it. Rejects with ERR_NOT_OWNER where the copy is not in sync, ERR_TIMEOUT when it took too long, ERR_BUSY where
   * the shard is not served: it is served as before.
   */
  handOver(shard: number, id: bigint): Promise<void>;
  /**
   * What was handed over becomes a copy with all that is in it, under this id if it had none; followOwner comes next.
   * Changes that wait here go to the next owner.
   */
  stepDown(shard: number, id: bigint): Promise<void>;
  stats(): Promise<DataPlaneStats>;
  /**
   * The owner's own lease from the metadata group, as bootTimeNs counts: no lease is granted beyond it, and after it
   * requests are answered ERR_SHARD_UNAVAILABLE. 2n ** 64n - 1n, as at first: no end. 0n: this server has had none yet,
   * and does not know which shards are its own: copies at other servers get no answer. Takes effect at once.
   */
  setGrantUntil(bootNs: bigint): void;
  /** Which tickets are good from soon after; copies of shards are asked for under the first secret. */
  setAccess(access: DataPlaneAccess): void;
  /**
   * What each owner's table may register from now on, in bytes: those that are open, and those that are being opened,
   * with whatever limit. One that has more keeps it, and refuses changes that need more. Copies are bounded by
   * `memoryBytes` of all tables alone.
   */
  setTableMemory(bytes: number): void;
  /** Called on the owning event loop when a shard's segments changed. */
  onLayout: ((shard: number, layoutEpoch: number) => void) | undefined;
  /** The same, at an owner: a copy of one of its shards has joined, is late, or is back. */
  onCopy: ((shard: number, id: bigint, what: CopyEvent) => void) | undefined;
  /**
   * The same, where a copy is: its owner is gone, or was silent until the last lease that this copy gave it was over.
   * A suspicion, told once until followOwner was called, and with `gone` false when the copy acknowledges again.
   * `prepared`: the last record that it has.
   */
  onSuspicion: ((shard: number, id: bigint, gone: boolean, prepared: number) => void) | undefined;
  /**
   * The same: a device of a transport is gone, and no client will come over it again in the life of this data plane.
   * More than once, possibly.
   */
  onUnreachable: ((provider: Provider, device: number) => void) | undefined;
  /** The same: it has ended a client's connection to one of its workers, for a reason that is told to the client too. */
  onEnded: ((end: EndedConnection) => void) | undefined;
  /**
   * The same: a request was slow, or is traced. Of 10 s the first 20 that were slow are told, and 1,000 others; `omitted`:
   * how many of its kind before this one were not.
   */
  onSlow: ((slow: SlowRequest, omitted: number) => void) | undefined;
  /**
   * The same: what a transport reports, as often as peers cause it. Of 10 s the first 20 are passed on; `omitted`: how
   * many before this one were not.
   */
  onFabricLog: ((level: LogLevel, text: string, omitted: number) => void) | undefined;
  /** The same: an operation on a log failed. Nothing that would have to be there is acknowledged any more. */
  onLogFailed: ((operation: string, file: string, errno: number) => void) | undefined;
  /** The same, of a snapshot: nothing is lost, and it is tried again. */
  onSnapshotFailed: ((shard: number, operation: string, file: string, errno: number) => void) | undefined;
  /**
   * Drains, disconnects, deregisters, unmaps, joins the threads. Idempotent. Resolves with whether the disk has all that
   * was answered.
   */
  close(): Promise<boolean>;
}
