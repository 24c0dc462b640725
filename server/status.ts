/**
 * What `farkv status` and a handle's status() show. Counts, sizes and addresses only: no rkeys, seeds, secrets, tickets
 * or client ids.
 */
import type { DataPlaneStats } from '../native/data-plane-stats.js';
import { boolean, list, maybe, oneOf, record, text, uint, type Check } from '../core/protocol/check.js';
import { HISTOGRAM_BOUNDS, type Counted } from '../core/exposition.js';
import { memberId, MEMBERS_MAX, shardNumber, SHARDS_MAX } from '../core/metadata/check-state.js';
import { zoneOf } from '../core/metadata/copy-plan.js';
import type { Failover } from '../core/metadata/failovers.js';
import { isWitness } from '../core/metadata/placement.js';
import type { FabricAddress, MetadataState, Move, Provider } from '../core/metadata/state.js';
import { tenantRanges } from '../core/metadata/tenants.js';
import type { RaftStatus } from '../core/raft/index.js';
import type { RejoinBackoff } from '../core/shards/index.js';
import type { GroupFigures } from './metadata/group.js';
import type { PeerFigures } from './metadata/peer-link.js';
import { checkMoveErrors, type MoveError } from './shards/move-errors.js';
import { copiesStatus, replicationStatus, type CopiesStatus, type ReplicationStatus } from './status-copies.js';
import { checkValuesStatus, type ValuesStatus } from './values-watch.js';

export interface FailoverStatus extends Failover {
  readonly agoMs: number;
}

/** Of one server, by itself. */
export interface NodeStatus {
  readonly id: string;
  readonly version: string;
  readonly processId: number;
  readonly uptimeMs: number;
  /** Of the metadata group. */
  readonly role: string;
  readonly term: number;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  readonly logBytes: number;
  readonly connections: number;
  readonly clients: number;
  /** For about so long its thread of clients and operators has not answered; absent: it does. */
  readonly frontStalledMs?: number;
  /** Whether the leader's lease lets it answer; absent: it has not asked for one yet. */
  readonly leaseHeld?: boolean;
  /** It was told to stop, and gives its shards away; absent: it was not. */
  readonly stopping?: boolean;
  /** Of moves from or to it. */
  readonly moveErrors: readonly MoveError[];
  /** Copies of its shards that were late too often, and that it does not wait for yet. */
  readonly heldBack: readonly RejoinBackoff[];
  /** Shards of which its copy lacks memory for what their owners have. */
  readonly fullCopies: readonly number[];
  /** Voters whose votes went to others, as it has seen since its start. */
  readonly movedVotes: readonly { readonly from: string; readonly to: string }[];
  /** The last from each owner to each, newest first, as it has seen since its start. */
  readonly failovers: readonly FailoverStatus[];
  /** Counts since its start, and the ways to the others. */
  readonly group: GroupFigures;
  /** Of the lease from the leader; 0: it is over. */
  readonly leaseLeftMs?: number;
  /** When its certificate ends, milliseconds since 1970; absent: it has none. */
  readonly certificateEndsMs?: number;
  /** Since changes were last refused for want of room, here or at a copy; absent: five minutes or more. */
  readonly changesRefusedAgoMs?: number;
  /** Undefined until the data plane has been started. */
  readonly dataPlane?: DataPlaneStats;
  /** Where shards are durable, from when its start begins to read them. */
  readonly values?: ValuesStatus;
}

export interface MemberStatus {
  readonly id: string;
  /** absent: has never joined. unreachable: the server that was asked has no answer from it. */
  readonly state: 'up' | 'unreachable' | 'absent';
  readonly leader: boolean;
  /** In the metadata group. A learner follows it without a vote; one that is only announced has not come yet. */
  readonly role: 'voter' | 'learner' | 'announced';
  /** It was silent for too long, and this server votes in its place; absent: not that any server has seen it. */
  readonly replacedBy?: string;
  /** The server gives its shards away and gets none. */
  readonly draining: boolean;
  readonly control: readonly string[];
  /** Addresses of the port between servers. */
  readonly peer: readonly string[];
  readonly fabric: readonly Pick<FabricAddress, 'provider' | 'address' | 'worker'>[];
  readonly memoryBytes: number;
  /** It votes, and keeps no values. */
  readonly witness?: true;
  /** By --zone; absent: none was given, or not all servers know zones. */
  readonly zone?: string;
  /** Servers with the same one are taken to fail together: that zone, else the host. Absent: it has never come. */
  readonly failureDomain?: string;
  readonly node?: NodeStatus;
}

/** Registered bytes of a shard, by what they are for. */
export interface MemoryParts {
  /** Buckets. */
  readonly index: number;
  readonly indexFree: number;
  /** Entries: keys, values, headers, and what is lost to the next size class. */
  readonly live: number;
  readonly prepared: number;
  readonly overflow: number;
  /** Left as it is until no GET can be reading it. */
  readonly quarantine: number;
  /** Ends of pages that nothing fits in. */
  readonly slack: number;
  readonly free: number;
}

/**
 * Registered bytes of a shard by the pages behind them: small ones, huge ones that the kernel made, huge ones that were
 * reserved.
 */
export interface PageParts {
  readonly small: number;
  readonly transparent: number;
  readonly reserved: number;
}

export interface ShardStatus {
  readonly shard: number;
  readonly owner?: string;
  readonly worker: number;
  readonly epoch: number;
  /**
   * unassigned, closed (its owner has not opened it), open (regions are known, and it is not served: not yet, or while
   * its owner has no lease), serving, unreachable (its owner does not answer).
   */
  readonly state: 'unassigned' | 'closed' | 'open' | 'serving' | 'unreachable';
  readonly layoutEpoch: number;
  readonly buckets: number;
  readonly regions: readonly {
    readonly provider: Provider;
    readonly kind: 'index' | 'heap';
    readonly count: number;
    readonly bytes: number;
  }[];
  readonly entries?: number;
  readonly keyValueBytes?: number;
  /** Registered with the transports: index and heap. */
  readonly memoryBytes?: number;
  /** The part of it that is taken. */
  readonly usedBytes?: number;
  /** What the registered memory is: the sum of these is memoryBytes. */
  readonly memory?: MemoryParts;
  /** The sum of these is memoryBytes too. */
  readonly pages?: PageParts;
  /** Registered beside memoryBytes: regions given back that clients may know of until their leases are over. */
  readonly retiredBytes?: number;
  /** Not registered, and not the system's yet: it is so with the last region of the same memory file. */
  readonly heldBytes?: number;
  /** What its table may register: changes that would need more are refused. */
  readonly memoryLimitBytes?: number;
  /** Absent of shards that have one copy and are to have no other. */
  readonly copies?: CopiesStatus;
}

export interface ClusterStatus {
  readonly clusterId: string;
  /** Of the metadata (core/metadata/format.ts). */
  readonly formatVersion: number;
  readonly mapEpoch: number;
  /** Id of the metadata leader; undefined while there is none. */
  readonly leader?: string;
  readonly term: number;
  /** Who answered. */
  readonly answeredBy: string;
  readonly members: readonly MemberStatus[];
  readonly shards: readonly ShardStatus[];
  /** Moves in progress. */
  readonly moves: readonly Pick<Move, 'shard' | 'to' | 'planned'>[];
  /**
   * What is in the way of those, and why others were called off: the last of each shard, until it has moved, is copied
   * anew or has another owner.
   */
  readonly moveErrors: readonly MoveError[];
  /** Owners that were replaced unplanned, newest first: as the server knows them that has run for longest. */
  readonly failovers: readonly FailoverStatus[];
  /** Beside the default one, which has the shards before theirs; absent where there are none. */
  readonly tenants?: readonly { readonly name: string; readonly firstShard: number; readonly shards: number }[];
  /** The default tenant's first. */
  readonly replication: readonly ReplicationStatus[];
}

export function raftPart(
  status: RaftStatus,
): Pick<NodeStatus, 'role' | 'term' | 'commitIndex' | 'appliedIndex' | 'logBytes'> {
  return {
    role: status.role,
    term: status.term,
    commitIndex: status.commit,
    appliedIndex: status.applied,
    logBytes: status.logBytes,
  };
}

function regionSums(state: MetadataState, shard: number): ShardStatus['regions'] {
  const sums = new Map<string, { provider: Provider; kind: 'index' | 'heap'; count: number; bytes: number }>();
  for (const r of state.shards[shard]?.regions ?? []) {
    const key = `${r.provider}/${r.kind}`;
    const sum = sums.get(key) ?? { provider: r.provider, kind: r.kind, count: 0, bytes: 0 };
    sum.count += 1;
    sum.bytes += r.bytes;
    sums.set(key, sum);
  }
  return [...sums.values()];
}

type Table = DataPlaneStats['shards'][number];
type MemoryFields =
  `${'index' | 'indexFree' | 'live' | 'prepared' | 'overflow' | 'quarantine' | 'slack' | 'free'}Bytes`;
type PageFields = `${'small' | 'transparent' | 'reserved'}PageBytes`;

/** Of a table's registered memory, what is used how. */
export function memoryParts(s: Pick<Table, MemoryFields>): MemoryParts {
  return {
    index: s.indexBytes - s.indexFreeBytes,
    indexFree: s.indexFreeBytes,
    live: s.liveBytes,
    prepared: s.preparedBytes,
    overflow: s.overflowBytes,
    quarantine: s.quarantineBytes,
    slack: s.slackBytes,
    free: s.freeBytes,
  };
}

/** Of all tables of a server, copies of others' shards too: they share its --memory. */
export function memoryOf(node: NodeStatus | undefined): Record<'usedBytes' | 'memoryBytes', number> {
  const tables = node?.dataPlane?.shards ?? [];
  return {
    usedBytes: tables.reduce((sum, table) => sum + table.usedBytes, 0),
    memoryBytes: tables.reduce((sum, { indexBytes, heapBytes }) => sum + indexBytes + heapBytes, 0),
  };
}

const NEARLY_FULL = 0.9;

/** As the alerts FarkvMemoryNearlyFull and FarkvShardsNearlyFull (docs/dashboards/alerts.yml). */
export function isNearlyFull(usedBytes = 0, limitBytes = 0): boolean {
  return limitBytes > 0 && usedBytes > NEARLY_FULL * limitBytes;
}

/** The same memory by the pages behind it. */
export function pageParts(s: Pick<Table, PageFields>): PageParts {
  return { small: s.smallPageBytes, transparent: s.transparentPageBytes, reserved: s.reservedPageBytes };
}

/** Puts together what the metadata says and what each server answered. */
export function clusterStatus(
  state: MetadataState,
  nodes: ReadonlyMap<string, NodeStatus>,
  ids: readonly string[],
  about: Pick<ClusterStatus, 'term' | 'answeredBy' | 'leader'>,
): ClusterStatus {
  const announced = state.servers.filter((s) => s.raftId === 0).map((s) => s.id);
  const movedVotes = [...nodes.values()].flatMap((node) => node.movedVotes);
  const members = [...new Set([...ids, ...announced])].sort().map((id): MemberStatus => {
    const member = state.members.get(id);
    const server = state.servers.find((s) => s.id === id);
    const node = nodes.get(id);
    const moved = movedVotes.find(({ from }) => from === id && !state.voters.includes(id));
    return {
      id,
      state: node !== undefined ? 'up' : member === undefined ? 'absent' : 'unreachable',
      leader: about.leader === id,
      role: announced.includes(id) ? 'announced' : state.voters.includes(id) ? 'voter' : 'learner',
      ...(moved === undefined ? {} : { replacedBy: moved.to }),
      draining: server?.draining ?? false,
      control: member?.control ?? server?.control ?? [],
      peer: member?.peer ?? server?.peer ?? [],
      fabric: (member?.fabric ?? []).map(({ provider, address, worker }) => ({ provider, address, worker })),
      memoryBytes: member?.memoryBytes ?? 0,
      ...(member !== undefined && isWitness(member) ? { witness: true } : {}),
      ...(member?.zone === undefined ? {} : { zone: member.zone }),
      ...(member === undefined ? {} : { failureDomain: zoneOf(member) }),
      ...(node === undefined ? {} : { node }),
    };
  });
  // Once per server: a cluster may have thousands of shards, and this is done once per second for a page.
  const served = new Map(
    [...nodes].map(([id, { dataPlane }]) => [id, new Map((dataPlane?.shards ?? []).map((one) => [one.shard, one]))]),
  );
  const fullCopies = new Map([...nodes].map(([id, node]) => [id, new Set(node.fullCopies)]));
  const shards = state.shards.map((s): ShardStatus => {
    const node = s.owner === undefined ? undefined : nodes.get(s.owner);
    const own = s.owner === undefined ? undefined : served.get(s.owner)?.get(s.shard);
    const open = s.incarnation !== undefined;
    const late = (node?.heldBack ?? []).filter(({ shard }) => shard === s.shard).map(({ member }) => member);
    const full = (id: string): boolean => fullCopies.get(id)?.has(s.shard) === true;
    const copies = copiesStatus(state, s.shard, own?.copy?.lag, (id) => nodes.has(id), late, full);
    return {
      shard: s.shard,
      ...(s.owner === undefined ? {} : { owner: s.owner }),
      worker: s.worker,
      epoch: s.epoch,
      state:
        s.owner === undefined
          ? 'unassigned'
          : node === undefined
            ? 'unreachable'
            : !open
              ? 'closed'
              : own?.serving === true && node.leaseHeld === true
                ? 'serving'
                : 'open',
      layoutEpoch: s.layoutEpoch,
      buckets: s.buckets,
      regions: regionSums(state, s.shard),
      ...(own === undefined
        ? {}
        : {
            entries: own.entries,
            keyValueBytes: own.keyValueBytes,
            memoryBytes: own.indexBytes + own.heapBytes,
            usedBytes: own.usedBytes,
            memory: memoryParts(own),
            pages: pageParts(own),
            retiredBytes: own.retiredBytes,
            heldBytes: own.heldBytes,
            memoryLimitBytes: own.memoryBytes,
          }),
      ...(copies === undefined ? {} : { copies }),
    };
  });
  const ranges = tenantRanges(state);
  const tenants = state.tenants.map(({ name, shards: count }, i) => ({
    name,
    firstShard: ranges[i + 1]?.first ?? 0,
    shards: count,
  }));
  return {
    clusterId: state.clusterId,
    formatVersion: state.formatVersion,
    mapEpoch: state.mapEpoch,
    ...about,
    members,
    shards,
    moves: state.moves,
    moveErrors: moveErrorsOf(state, nodes),
    failovers: failoversOf(nodes),
    ...(tenants.length === 0 ? {} : { tenants }),
    replication: replicationStatus(state),
  };
}

/**
 * As the server that runs longest has seen them; and those that it has not, since it came to the cluster after them: a
 * server whose disk was read for long.
 */
function failoversOf(nodes: ReadonlyMap<string, NodeStatus>): FailoverStatus[] {
  const found = new Map<string, FailoverStatus>();
  for (const { failovers } of [...nodes.values()].sort((a, b) => b.uptimeMs - a.uptimeMs))
    for (const one of failovers) {
      const pair = JSON.stringify([one.from, one.to]);
      if (!found.has(pair)) found.set(pair, one);
    }
  return [...found.values()].sort((a, b) => a.agoMs - b.agoMs);
}

/** One of a shard: of two servers the one that knows of it last. */
function moveErrorsOf(state: MetadataState, nodes: ReadonlyMap<string, NodeStatus>): MoveError[] {
  const last = new Map<number, MoveError>();
  for (const trouble of [...nodes.values()].flatMap((node) => node.moveErrors)) {
    const known = last.get(trouble.shard);
    if (state.shards[trouble.shard]?.owner === trouble.from && (known === undefined || trouble.agoMs < known.agoMs))
      last.set(trouble.shard, trouble);
  }
  return [...last.values()].sort((a, b) => a.shard - b.shard);
}

const checkFailover = record<FailoverStatus>({
  from: memberId,
  to: memberId,
  shards: uint(),
  why: oneOf('restarted', 'silent'),
  values: oneOf('all', 'some', 'none'),
  agoMs: uint(),
});

const checkGroup = record<GroupFigures>({
  leaderChanges: uint(),
  failedProposals: uint(),
  failedOver: uint(),
  syncNs: record<Counted>({ count: uint(), sum: uint(), below: list(uint(), HISTOGRAM_BOUNDS) }),
  diskFull: boolean,
  activeMs: uint(),
  peers: list(
    record<PeerFigures>({ id: memberId, connected: boolean, rttUs: maybe(uint()), lostMessages: uint() }),
    MEMBERS_MAX,
  ),
});

const checkRejoinBackoff = record<RejoinBackoff>({ shard: shardNumber, member: memberId, times: uint() });

/** The part of a peer's answer that is relied on; the statistics are shown as they come. */
export const checkNodeStatus: Check<NodeStatus> = (value, at) => {
  const known = record<Omit<NodeStatus, 'dataPlane'>>({
    id: text(63),
    version: text(64),
    processId: uint(),
    uptimeMs: uint(),
    role: text(32),
    term: uint(),
    commitIndex: uint(),
    appliedIndex: uint(),
    logBytes: uint(),
    connections: uint(),
    clients: uint(),
    frontStalledMs: maybe(uint()),
    leaseHeld: maybe(boolean),
    stopping: maybe(boolean),
    moveErrors: checkMoveErrors,
    heldBack: list(checkRejoinBackoff, SHARDS_MAX),
    fullCopies: list(shardNumber, SHARDS_MAX),
    values: maybe(checkValuesStatus),
    // From each to each, of each kind.
    failovers: list(checkFailover, 6 * MEMBERS_MAX ** 2),
    group: checkGroup,
    leaseLeftMs: maybe(uint()),
    certificateEndsMs: maybe(uint()),
    changesRefusedAgoMs: maybe(uint()),
    movedVotes: list(record<{ from: string; to: string }>({ from: text(63), to: text(63) }), MEMBERS_MAX),
  })(value, at);
  const dataPlane = (value as { readonly dataPlane?: unknown }).dataPlane;
  return dataPlane === undefined || dataPlane === null ? known : { ...known, dataPlane: checkStats(dataPlane, at) };
};

function checkStats(value: unknown, at: string): DataPlaneStats {
  const { pages, descriptorsMissed, tenants, workers, shards } = value as {
    readonly pages?: unknown;
    readonly descriptorsMissed?: unknown;
    readonly tenants?: unknown;
    readonly workers?: unknown;
    readonly shards?: unknown;
  };
  return {
    pages: oneOf('small', 'transparent', 'reserved')(pages, at),
    descriptorsMissed: uint()(descriptorsMissed, at),
    tenants: (Array.isArray(tenants) ? tenants : []) as DataPlaneStats['tenants'],
    workers: (Array.isArray(workers) ? workers : []) as DataPlaneStats['workers'],
    shards: (Array.isArray(shards) ? shards : []) as DataPlaneStats['shards'],
  };
}
