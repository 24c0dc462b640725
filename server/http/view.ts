/**
 * The figures of a cluster as the page and `farkv top` show them: those of `farkv status`, summed up, and with the rates
 * between two looks. Plain values, without anything that a monitor may not see.
 */
import { CHANGES, type DataPlaneStats, type Latency, type ReportedGets } from '../../native/data-plane-stats.js';
import { advice } from '../advice.js';
import { attention, underWay } from '../attention.js';
import { errorLines, moveLines } from '../move-lines.js';
import { memoryOf, type ClusterStatus, type MemberStatus, type ShardStatus } from '../status.js';
import { inSyncAndThere, placesOf, type Place } from '../status-copies.js';
import { latencyBetween } from './latency-between.js';

type Worker = DataPlaneStats['workers'][number];

export const KINDS = ['get', ...CHANGES, 'scan', 'read'] as const;
/** `read`: one-sided READs that the process itself serves, over tcp alone. `get`: two-sided ones. */
export type Kind = (typeof KINDS)[number];
export type Rates = Readonly<Record<Kind, number>>;

/** Changes that are no PUTs. */
export const otherChanges = (rates: Rates): number =>
  CHANGES.reduce((n, kind) => (kind === 'put' ? n : n + rates[kind]), 0);

export interface ServerView {
  readonly id: string;
  readonly state: MemberStatus['state'];
  readonly leader: boolean;
  readonly role: MemberStatus['role'];
  readonly witness: boolean;
  readonly draining: boolean;
  readonly zone: string;
  readonly version: string;
  readonly uptimeMs: number;
  readonly shards: number;
  readonly copies: number;
  readonly entries: number;
  /** Of all tables, copies too, as `memoryBytes`. */
  readonly usedBytes: number;
  readonly memoryBytes: number;
  readonly limitBytes: number;
  readonly clients: number;
  readonly leaseHeld: boolean;
  /** Per second since the look before. */
  readonly rates: Rates;
  /** Of requests since the look before, microseconds; 0: there were none. */
  readonly getUsP99: number;
  readonly putUsP50: number;
  readonly putUsP99: number;
  /** Of synced batches since then, microseconds; 0: there were none. */
  readonly syncUsP99: number;
}

export interface ShardView {
  readonly shard: number;
  readonly tenant: string;
  readonly owner: string;
  readonly state: ShardStatus['state'];
  readonly entries: number;
  readonly memoryBytes: number;
  readonly inSync: number;
  readonly wanted: number;
  readonly lag: number;
  readonly trouble: string;
  /** The owner's first. */
  readonly copies: readonly Place[];
}

/** What clients have reported of their GETs since the look before, one-sided ones too. */
export interface GetsView {
  readonly perSecond: number;
  /** 0 to 1; 0: none were reported. */
  readonly hitRatio: number;
  readonly readsPerGet: number;
}

export interface View {
  readonly atMs: number;
  readonly clusterId: string;
  readonly leader: string;
  readonly term: number;
  readonly mapEpoch: number;
  readonly answeredBy: string;
  readonly servers: readonly ServerView[];
  readonly shards: readonly ShardView[];
  /** Registered bytes of all owned shards, by use and by pages. */
  readonly memory: Readonly<Record<string, number>>;
  readonly pages: Readonly<Record<string, number>>;
  readonly rates: Rates;
  readonly gets: GetsView;
  readonly moves: readonly string[];
  /** What mends itself, as `farkv status` says it. */
  readonly underWay: readonly string[];
  /** What needs a person, as `farkv status` says it. */
  readonly attention: readonly string[];
  /** What works and could be safer, as `farkv status` says it. */
  readonly advice: readonly string[];
}

export interface Look {
  readonly atMs: number;
  readonly status: ClusterStatus;
}

const NONE = Object.fromEntries(KINDS.map((kind) => [kind, 0])) as unknown as Rates;
const sum = (all: readonly number[]): number => all.reduce((n, one) => n + one, 0);
const add = (all: readonly Rates[]): Rates =>
  all.reduce((a, b) => Object.fromEntries(KINDS.map((kind) => [kind, a[kind] + b[kind]])) as unknown as Rates, NONE);

function counts({ node }: MemberStatus): Rates {
  const workers = node?.dataPlane?.workers ?? [];
  return add(workers.map(({ requests, readsServed }) => ({ ...NONE, ...requests, read: readsServed })));
}

const millisecondsBetween = (now: Look, before: Look | undefined): number => now.atMs - (before?.atMs ?? now.atMs);
const secondsBetween = (now: Look, before: Look | undefined): number => millisecondsBetween(now, before) / 1000;

/**
 * The same start of the server at the look before; of a server that has started again, or had not answered, nothing is
 * known yet. In a container each start has process id 1, so the start must also be as old as the look before.
 */
function earlierOf({ id, node }: MemberStatus, now: Look, before: Look | undefined): MemberStatus | undefined {
  const earlier = before?.status.members.find((member) => member.id === id);
  if (node === undefined || earlier?.node === undefined) return undefined;
  const isOldEnough = node.uptimeMs >= Math.max(earlier.node.uptimeMs, millisecondsBetween(now, before));
  return earlier.node.processId === node.processId && isOldEnough ? earlier : undefined;
}

function getsView(now: Look, before: Look | undefined): GetsView {
  const seconds = secondsBetween(now, before);
  const pairs = now.status.members.flatMap((member) => {
    const earlier = earlierOf(member, now, before);
    return earlier === undefined ? [] : [[member, earlier] as const];
  });
  const since = (of: (one: ReportedGets) => number): number => {
    const all = ({ node }: MemberStatus): number =>
      sum((node?.dataPlane?.workers ?? []).map(({ reported }) => of(reported)));
    // What one server has lost takes nothing from what others count.
    return sum(pairs.map(([member, earlier]) => Math.max(0, all(member) - all(earlier))));
  };
  const hits = since((one) => one.hits);
  const gets = hits + since((one) => one.misses);
  const reads = since((one) => one.reads);
  return {
    perSecond: seconds <= 0 ? 0 : gets / seconds,
    hitRatio: gets === 0 ? 0 : hits / gets,
    readsPerGet: gets === 0 ? 0 : reads / gets,
  };
}

function ratesOf(member: MemberStatus, now: Look, before: Look | undefined): Rates {
  const earlier = earlierOf(member, now, before);
  const seconds = secondsBetween(now, before);
  if (earlier === undefined || seconds <= 0) return NONE;
  const [last, first] = [counts(member), counts(earlier)];
  return Object.fromEntries(
    KINDS.map((kind) => [kind, Math.max(0, (last[kind] - first[kind]) / seconds)]),
  ) as unknown as Rates;
}

function parts(shards: readonly ShardStatus[], of: 'memory' | 'pages'): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const shard of shards)
    for (const [name, bytes] of Object.entries(shard[of] ?? {})) sums[name] = (sums[name] ?? 0) + Number(bytes);
  return sums;
}

function serverView(member: MemberStatus, now: Look, before: Look | undefined): ServerView {
  const { id, state, leader, role, witness, draining, zone, node, memoryBytes: limitBytes } = member;
  const owned = now.status.shards.filter(({ owner }) => owner === id);
  const workers = node?.dataPlane?.workers ?? [];
  const earlier = earlierOf(member, now, before);
  const micros = (of: (worker: Worker) => Latency | undefined, quantile: number): number => {
    if (earlier === undefined) return 0;
    const [last, first] = [workers, earlier.node?.dataPlane?.workers ?? []].map((all) =>
      all.flatMap((worker) => of(worker) ?? []),
    );
    return (latencyBetween(last ?? [], first ?? [], quantile) ?? 0) / 1000;
  };
  return {
    id,
    state,
    leader,
    role,
    witness: witness ?? false,
    draining,
    zone: zone ?? '',
    version: node?.version ?? '',
    uptimeMs: node?.uptimeMs ?? 0,
    shards: owned.length,
    copies: now.status.shards.filter(
      ({ owner, copies }) => owner !== id && copies?.copies.some(({ member: at }) => at === id) === true,
    ).length,
    entries: sum(owned.map(({ entries }) => entries ?? 0)),
    ...memoryOf(node),
    limitBytes,
    clients: node?.clients ?? 0,
    leaseHeld: node?.leaseHeld ?? false,
    rates: ratesOf(member, now, before),
    getUsP99: micros(({ latencyNs }) => latencyNs.get, 0.99),
    putUsP50: micros(({ latencyNs }) => latencyNs.put, 0.5),
    putUsP99: micros(({ latencyNs }) => latencyNs.put, 0.99),
    syncUsP99: micros(({ log }) => log?.syncNs, 0.99),
  };
}

export function viewOf(now: Look, before?: Look): View {
  const { status, atMs } = now;
  const servers = status.members.map((member) => serverView(member, now, before));
  const tenantOf = (shard: number): string =>
    status.tenants?.find((one) => shard >= one.firstShard && shard < one.firstShard + one.shards)?.name ?? '';
  return {
    atMs,
    clusterId: status.clusterId,
    leader: status.leader ?? '',
    term: status.term,
    mapEpoch: status.mapEpoch,
    answeredBy: status.answeredBy,
    servers,
    shards: status.shards.map((one) => ({
      shard: one.shard,
      tenant: tenantOf(one.shard),
      owner: one.owner ?? '',
      state: one.state,
      entries: one.entries ?? 0,
      memoryBytes: one.memoryBytes ?? 0,
      inSync: one.copies === undefined ? Number(one.state === 'serving') : inSyncAndThere(one.copies),
      wanted: one.copies?.wanted ?? 1,
      lag: one.copies?.lag ?? 0,
      trouble: one.copies?.trouble ?? '',
      copies: one.copies === undefined ? [] : placesOf(one.copies),
    })),
    memory: parts(status.shards, 'memory'),
    pages: parts(status.shards, 'pages'),
    rates: add(servers.map(({ rates }) => rates)),
    gets: getsView(now, before),
    moves: [...moveLines(status), ...errorLines(status)],
    underWay: underWay(status),
    attention: attention(status),
    advice: advice(status),
  };
}
