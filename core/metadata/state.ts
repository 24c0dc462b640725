/**
 * What the servers agree on: who is a member, who owns each shard, and where its memory lies. This state is the same on
 * every server after the same log entries; it is changed by core/metadata/machine.ts only.
 *
 * rkeys are credentials: they are in this state because clients need them, and are shown to authenticated clients only,
 * never in logs or `farkv status`.
 */

import type { Provider } from '../providers.js';

export type { Provider };

/** Where a server's data plane can be reached. `worker` is the data-plane thread that answers there. */
export interface FabricAddress {
  readonly provider: Provider;
  /** As native/fabric/fabric.h writes addresses: `unix:/path`, `192.0.2.1:7000`, `[2001:db8::1]:7000`. */
  readonly address: string;
  readonly worker: number;
  /**
   * Position of the RDMA device among those that the server listens on, below DEVICES_MAX; absent: 0. The rkeys of a
   * region are good over the addresses of the same provider and device.
   */
  readonly device?: number;
  /** For shm: shmHost() of native/host.ts at the server, so that a client knows whether it is on the same host. */
  readonly host?: string;
}

/** The field `device`, where there is one. */
export const ofDevice = ({ device }: { readonly device?: number | undefined }): Pick<FabricAddress, 'device'> =>
  device === undefined ? {} : { device };

export interface Member {
  /** Chosen once by the operator, or taken from the data directory; `s1`, `cache-7`. */
  readonly id: string;
  /** Raft node number: derived from the id, never 0. */
  readonly raftId: number;
  /** 64 random bits, new at every start of the process; hex. */
  readonly incarnation: string;
  /** `host:port` of the control port, several where the server has several. */
  readonly control: readonly string[];
  /** `host:port` of the port between servers. Servers only; not in a client's map. */
  readonly peer?: readonly string[];
  readonly fabric: readonly FabricAddress[];
  /** For values; 0: it is a witness, which votes and keeps none (`--witness`). */
  readonly memoryBytes: number;
  /** 64 random bits of its data directory, hex. Servers only; not in a client's map. */
  readonly instance?: string;
  /** What fails together, as the operator names it: a rack, a room. Servers only; not in a client's map. */
  readonly zone?: string;
}

/** One registered segment of a shard's table. Numbers that need 64 bits are decimal strings of unsigned integers. */
export interface Region {
  readonly provider: Provider;
  /** As of FabricAddress. */
  readonly device?: number;
  readonly kind: 'index' | 'heap';
  readonly segment: number;
  readonly tag: number;
  readonly bytes: number;
  readonly remoteAddress: string;
  readonly rkey: string;
}

export interface Shard {
  readonly shard: number;
  /** Member id; undefined while nobody owns it. */
  readonly owner?: string;
  /** Data-plane worker at the owner. */
  readonly worker: number;
  /** Rises by one with every new owner or restart of the owner: the high bits of versions. */
  readonly epoch: number;
  /**
   * 64 random bits for each time an owner opens the shard; hex. Undefined until the owner has registered its regions.
   */
  readonly incarnation?: string;
  readonly layoutEpoch: number;
  readonly buckets: number;
  readonly regions: readonly Region[];
}

/** A server of the cluster, whether it has come yet or not. */
export interface Server {
  readonly id: string;
  /**
   * Its number in the Raft group; 0 while it is only announced. A server that comes back without its data directory is
   * another member and has another number.
   */
  readonly raftId: number;
  /** 64 random bits of its data directory, hex; undefined until it has come. */
  readonly instance?: string;
  readonly control: readonly string[];
  /** As Member's; undefined until it has come. */
  readonly peer?: readonly string[];
  /** It is to own no shards: the operator is about to take it away. */
  readonly draining: boolean;
}

/**
 * The owner of `shard` is to give it to member `to`: that one gets a copy, and the owner hands over to it when it is in sync
 * (docs/handover.md).
 */
export interface Move {
  readonly shard: number;
  readonly to: string;
  /** The map epoch at which it was planned: a move that is called off and planned again is another move. */
  readonly planned: number;
}

/**
 * How far a copy of a shard is (docs/copy-sets.md). `joining`: the owner is copying the shard to it. `in-sync`: no
 * change is acknowledged, or READ, that it has not prepared. `eligible`: was in sync, and has all that was ever
 * acknowledged, since its removal left too few copies for new changes.
 */
export type CopyState = 'joining' | 'in-sync' | 'eligible';

/** One server's table of a shard. */
export interface Copy {
  readonly member: string;
  /** Incarnation of the member's start that has it: a later start has nothing of it in memory, but may find it on its disk. */
  readonly start: string;
  /** 64 random bits, hex, that the table keeps through all roles; undefined until its member has begun to follow. */
  readonly id?: string;
  /** Data-plane worker that has it; 0 while it has no id. */
  readonly worker: number;
  readonly state: CopyState;
  /** Its place among those that may be promoted: lower goes first. */
  readonly rank: number;
  /**
   * No table has this id: its member has given up what it had, and makes the copy anew, under another id. Only of a copy
   * that joins.
   */
  readonly renounced?: true;
  /** It came back from its member's disk, which has its log up to there; until the shard has another owner. */
  readonly recovered?: Recovered;
}

/** What the disk of a member that has started again has of its copy. */
export interface Recovered extends Barrier {
  /**
   * The copy is marked: an earlier start acknowledged what its disk did not have yet, and did not end in order. So it may
   * lack the last that it acknowledged.
   */
  readonly early?: true;
}

/** The copies of one shard. The owner's copy is one of them, from when the shard is open. */
export interface CopySet {
  /** Rises with every change of the shard's copies, epoch, or policy, and never falls. */
  readonly config: number;
  /** The last record, and its epoch, that every copy in sync had committed by what owners have reported. */
  readonly barrier?: Barrier;
  /**
   * The epoch that the owner before has handed over, if one did: nobody relied on it any more, and the copy that became
   * the owner's had all that was committed (docs/handover.md). It is about that epoch and no later one.
   */
  readonly handed?: number;
  /** At most one for each member. */
  readonly copies: readonly Copy[];
  /** Joins that did not succeed though both servers were there, at most one for each member. Missing: none. */
  readonly failed?: readonly FailedJoin[];
}

/** A copy could not be made by this start of the member, of the owner in this epoch. */
export interface FailedJoin {
  readonly member: string;
  readonly start: string;
  readonly epoch: number;
  /** So often it was called off, one after the other, after several attempts each. */
  readonly times: number;
}

export interface Barrier {
  readonly epoch: number;
  readonly lsn: number;
}

/** How a tenant's values are kept. */
export interface Policy {
  /**
   * `cache`: by the owner alone, lost with it. `replicated`: in the memory of as many servers as there are copies.
   * `durable`: and on their disks, before a change is answered.
   */
  readonly level: 'cache' | 'replicated' | 'durable';
  /** Copies of each shard, the owner's included. */
  readonly replicas: number;
  /** New changes are taken while so many copies are in sync, the owner's included. */
  readonly minInSync: number;
  /** When no copy is left: the shard waits for an operator, or is served empty. */
  readonly onLoss: 'wait' | 'empty';
}

/**
 * How long an owner may grant leases to clients after it asked the leader, and what two machines' clocks may differ by
 * in rate.
 */
export interface LeaseTerms {
  readonly leaseMs: number;
  readonly driftPpm: number;
}

/** A tenant beside the default one, and how many shards it has; which is said in tenants.ts. */
export interface Tenant {
  readonly name: string;
  readonly shards: number;
}

/** Tickets that were made before then are not good: a client's, by its id (64 bits, hex), or a tenant's, by its number. */
export interface Revocation {
  readonly client?: string;
  readonly tenant?: number;
  readonly beforeMs: number;
}

export interface TicketRules {
  /** How often the secret was exchanged. */
  readonly number: number;
  /** The secret before `ticketSecret`: its tickets are still good. */
  readonly previous?: string;
  /** By the wall clock of whoever proposed it. */
  readonly rotatedMs: number;
  readonly revoked: readonly Revocation[];
}

/** One join of a server is allowed to whoever has the token of this SHA-256, hex. */
export interface JoinToken {
  readonly hash: string;
  /** By the wall clock of whoever proposed it. */
  readonly expiresMs: number;
}

export interface MetadataState {
  /** See format.ts. */
  readonly formatVersion: number;
  readonly clusterId: string;
  /** Rises with every change that a client must see. */
  readonly mapEpoch: number;
  /** 16 bytes, hex: the seed of the hash of keys (native/base/hash.h). For authenticated clients only. */
  readonly hashSeed: string;
  /** 16 bytes, hex: makes the keys of tickets (native/wire/wire.h). Servers only. */
  readonly ticketSecret: string;
  /** Ids of the servers that are to vote in the metadata group, sorted; the Raft configuration follows. */
  readonly voters: readonly string[];
  readonly members: ReadonlyMap<string, Member>;
  readonly shards: readonly Shard[];
  /**
   * The servers that the cluster was made with, sorted. One of them that has not come yet must have been started with
   * the same list (--peers).
   */
  readonly firstServers: readonly string[];
  /** Sorted by id. */
  readonly servers: readonly Server[];
  /** Servers become voters until there are so many. */
  readonly votersMax: number;
  /** One for the whole cluster, because a new leader must wait as long as an earlier one may have granted. */
  readonly ownerLease: LeaseTerms;
  /** At most one for each shard, in their order. */
  readonly moves: readonly Move[];
  /** Missing: the secret is the first one, and no ticket is revoked. */
  readonly tickets?: TicketRules;
  /** Missing: none. Servers only. */
  readonly joinTokens?: readonly JoinToken[];
  /** Fixed when the cluster is made; their numbers are their places (tenants.ts). */
  readonly tenants: readonly Tenant[];
  /** One for each shard, in their order. Servers only. */
  readonly copySets: readonly CopySet[];
  /** By number of the tenant, as far as one was set; the others are `cache`. */
  readonly policies: readonly Policy[];
}
