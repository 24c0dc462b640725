/**
 * The metrics of farkv, one row each: name, meaning, labels, and where its values come from. All are those of the server
 * that is asked; its own status is all that they are made from. docs/monitoring.md lists them.
 *
 * Names end with their unit; counters end with _total and count since the server's start.
 */
import type { Latency } from '../../native/data-plane.js';
import type { ClusterStatus, NodeStatus, ShardStatus } from '../status.js';

export interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Metric {
  readonly name: `farkv_${string}`;
  readonly help: string;
  readonly type: 'gauge' | 'counter';
  readonly labels: readonly string[];
  readonly read: (seen: Seen) => readonly Sample[];
}

type Workers = NonNullable<NodeStatus['dataPlane']>['workers'];
type Tables = NonNullable<NodeStatus['dataPlane']>['shards'];

/** What metrics are read from. */
export interface Seen {
  readonly status: ClusterStatus;
  readonly node: NodeStatus;
  readonly workers: Workers;
  /** Of this server: shards that it owns, and copies. */
  readonly tables: Tables;
  /** Shards that it owns. */
  readonly owned: readonly ShardStatus[];
  /** '' is the default tenant. */
  readonly tenantOf: (shard: number) => string;
  readonly tenants: readonly string[];
  /** Pages that are open. */
  readonly listeners: number;
}

export function seenIn(status: ClusterStatus, id: string, listeners: number): Seen | undefined {
  const node = status.members.find((member) => member.id === id)?.node;
  if (node === undefined) return undefined;
  const tenants = status.tenants ?? [];
  return {
    status,
    node,
    workers: node.dataPlane?.workers ?? [],
    tables: node.dataPlane?.shards ?? [],
    owned: status.shards.filter(({ owner }) => owner === id),
    tenants: ['', ...tenants.map(({ name }) => name)],
    tenantOf: (shard) =>
      tenants.find(({ firstShard, shards }) => shard >= firstShard && shard < firstShard + shards)?.name ?? '',
    listeners,
  };
}

const one = (value: number | boolean | undefined): Sample[] => (value === undefined ? [] : [{ value: Number(value) }]);
const sum = <T>(all: readonly T[], of: (item: T) => number | undefined): number =>
  all.reduce((n, item) => n + (of(item) ?? 0), 0);
const gauge = (name: Metric['name'], help: string, read: (seen: Seen) => readonly Sample[], labels: string[] = []) =>
  ({ name, help, type: 'gauge', labels, read }) as const;
const counter = (name: Metric['name'], help: string, read: (seen: Seen) => readonly Sample[], labels: string[] = []) =>
  ({ name, help, type: 'counter', labels, read }) as const;

/** A sum over the shards that this server owns, by tenant. */
const byTenant =
  (of: (shard: ShardStatus) => number | undefined) =>
  ({ owned, tenants, tenantOf }: Seen): Sample[] =>
    tenants.map((tenant) => ({
      labels: { tenant },
      value: sum(
        owned.filter(({ shard }) => tenantOf(shard) === tenant),
        of,
      ),
    }));

/** Sums by name over several records of counts. */
function named(label: string, records: readonly Readonly<Record<string, number>>[]): Sample[] {
  const names = [...new Set(records.flatMap((record) => Object.keys(record)))];
  return names.map((name) => ({ labels: { [label]: name }, value: sum(records, (record) => record[name]) }));
}

const QUANTILES = { '0.5': 'p50', '0.99': 'p99', '1': 'max' } as const;
/** Of several workers' quantiles the worst; nothing before there is one. */
const worst = (all: readonly Latency[], labels: Readonly<Record<string, string>> = {}): Sample[] =>
  sum(all, ({ count }) => count) === 0
    ? []
    : Object.entries(QUANTILES).map(([quantile, of]) => ({
        labels: { ...labels, quantile },
        value: Math.max(...all.map((latency) => latency[of])) / 1e9,
      }));

const KINDS = ['get', 'put', 'delete', 'cas', 'scan', 'lease', 'layout'] as const;
const logs = ({ workers }: Seen) => workers.flatMap(({ log }) => (log === undefined ? [] : [log]));
const polls = ({ workers }: Seen) => workers.map(({ polling }) => polling as typeof polling | undefined);
const hasLog = (read: (all: ReturnType<typeof logs>) => number) => (seen: Seen) =>
  logs(seen).length === 0 ? [] : one(read(logs(seen)));

export const METRICS: readonly Metric[] = [
  gauge(
    'farkv_build_info',
    '1; its label is the version',
    ({ node }) => [{ labels: { version: node.version }, value: 1 }],
    ['version'],
  ),
  gauge('farkv_uptime_seconds', 'Since the server was started', ({ node }) => one(node.uptimeMs / 1000)),
  gauge('farkv_has_leader', '1: this server knows a leader of the metadata group', ({ status }) =>
    one(status.leader !== undefined),
  ),
  gauge('farkv_is_leader', '1: this server leads the metadata group', ({ status, node }) =>
    one(status.leader === node.id),
  ),
  gauge('farkv_lease_held', '1: the lease from the leader lets this server answer', ({ node }) =>
    one(node.leaseHeld ?? false),
  ),
  gauge('farkv_raft_term', 'Term of the metadata group', ({ node }) => one(node.term)),
  gauge('farkv_raft_commit_index', 'Last entry that is committed', ({ node }) => one(node.commitIndex)),
  gauge('farkv_raft_applied_index', 'Last entry that is applied here', ({ node }) => one(node.appliedIndex)),
  gauge('farkv_raft_log_bytes', 'Raft log on this disk', ({ node }) => one(node.logBytes)),
  gauge('farkv_map_epoch', 'Number of the last change that clients must see', ({ status }) => one(status.mapEpoch)),
  gauge(
    'farkv_members',
    'Servers of the cluster by their role in the metadata group',
    ({ status }) =>
      (['voter', 'learner', 'announced'] as const).map((role) => ({
        labels: { role },
        value: status.members.filter((member) => member.role === role).length,
      })),
    ['role'],
  ),
  gauge('farkv_cluster_shards', 'Shards of the cluster', ({ status }) => one(status.shards.length)),
  gauge('farkv_cluster_shards_unassigned', 'Shards of the cluster without an owner', ({ status }) =>
    one(status.shards.filter(({ state }) => state === 'unassigned').length),
  ),
  gauge('farkv_moves', 'Moves of shards under way, in the cluster', ({ status }) => one(status.moves.length)),
  gauge('farkv_move_errors', 'Shards of this server whose move is delayed or was cancelled', ({ status, node }) =>
    one((status.moveErrors ?? []).filter(({ from }) => from === node.id).length),
  ),
  gauge(
    'farkv_shards',
    'Shards that this server owns, by tenant and state',
    ({ owned, tenants, tenantOf }) =>
      tenants.flatMap((tenant) =>
        (['closed', 'open', 'serving'] as const).map((state) => ({
          labels: { tenant, state },
          value: owned.filter((one) => one.state === state && tenantOf(one.shard) === tenant).length,
        })),
      ),
    ['tenant', 'state'],
  ),
  gauge(
    'farkv_copies_in_sync',
    'Copies in sync of the shards that this server owns, its own included',
    byTenant(({ copies }) => copies?.inSync ?? 1),
    ['tenant'],
  ),
  gauge(
    'farkv_copies_wanted',
    'Copies that these shards are to have',
    byTenant(({ copies }) => copies?.wanted ?? 1),
    ['tenant'],
  ),
  gauge(
    'farkv_shards_degraded',
    'Shards of this server with fewer copies in sync than are wanted',
    byTenant(({ copies }) => Number((copies?.inSync ?? 1) < (copies?.wanted ?? 1))),
    ['tenant'],
  ),
  gauge(
    'farkv_shards_too_few_copies',
    'Shards of this server that take no changes, for lack of copies in sync',
    byTenant(({ copies }) => Number(copies?.trouble === 'too few')),
    ['tenant'],
  ),
  gauge(
    'farkv_copies_lag_changes',
    'Changes that are not at every copy yet',
    byTenant(({ copies }) => copies?.lag),
    ['tenant'],
  ),
  gauge('farkv_copies_held', "Copies of others' shards that this server has", ({ tables }) =>
    one(tables.filter(({ copy }) => copy?.role === 'backup').length),
  ),
  gauge(
    'farkv_copies_held_back',
    'Copies that were late too often, and that this server does not wait for',
    ({ node }) => one(node.heldBack?.length ?? 0),
  ),
  gauge(
    'farkv_entries',
    'Entries of the shards that this server owns',
    byTenant(({ entries }) => entries),
    ['tenant'],
  ),
  gauge(
    'farkv_key_value_bytes',
    'Keys and values of those entries',
    byTenant(({ keyValueBytes }) => keyValueBytes),
    ['tenant'],
  ),
  gauge(
    'farkv_used_bytes',
    'Registered memory that cannot take another entry now',
    byTenant(({ usedBytes }) => usedBytes),
    ['tenant'],
  ),
  gauge('farkv_memory_limit_bytes', '--memory', ({ status, node }) =>
    one(status.members.find(({ id }) => id === node.id)?.memoryBytes),
  ),
  gauge(
    'farkv_memory_bytes',
    'Registered memory of all tables, copies too, by use',
    ({ tables }) =>
      named(
        'use',
        tables.map((s) => ({
          index: s.indexBytes - s.indexFreeBytes,
          index_free: s.indexFreeBytes,
          live: s.liveBytes,
          prepared: s.preparedBytes,
          overflow: s.overflowBytes,
          quarantine: s.quarantineBytes,
          slack: s.slackBytes,
          free: s.freeBytes,
        })),
      ),
    ['use'],
  ),
  gauge(
    'farkv_memory_pages_bytes',
    'The same memory by the pages behind it',
    ({ tables }) =>
      named(
        'pages',
        tables.map((s) => ({
          small: s.smallPageBytes,
          transparent: s.transparentPageBytes,
          reserved: s.reservedPageBytes,
        })),
      ),
    ['pages'],
  ),
  gauge('farkv_memory_retired_bytes', 'Registered beside that until clients forget it', ({ tables }) =>
    one(sum(tables, ({ retiredBytes }) => retiredBytes)),
  ),
  gauge('farkv_memory_private_bytes', 'Not registered: what tables keep for themselves', ({ tables }) =>
    one(sum(tables, ({ privateBytes }) => privateBytes)),
  ),
  gauge('farkv_buckets', 'Buckets of the indexes', ({ tables }) => one(sum(tables, ({ buckets }) => buckets))),
  gauge('farkv_overflow_buckets', 'Buckets that chains have beside those', ({ tables }) =>
    one(sum(tables, ({ overflowBuckets }) => overflowBuckets)),
  ),
  gauge('farkv_longest_chain_buckets', 'The longest chain of buckets', ({ tables }) =>
    one(Math.max(0, ...tables.map(({ longestChain }) => longestChain))),
  ),
  gauge('farkv_workers', 'Threads of the data plane', ({ workers }) => one(workers.length)),
  counter(
    'farkv_requests_total',
    'Requests by kind; a get is a two-sided one, servers do not see the others',
    ({ workers }) =>
      named(
        'kind',
        workers.map(({ requests }) => requests),
      ),
    ['kind'],
  ),
  counter(
    'farkv_refused_total',
    'Requests that were refused, by error',
    ({ workers }) =>
      named(
        'error',
        workers.map(({ refused }) => refused),
      ),
    ['error'],
  ),
  counter('farkv_duplicates_total', 'Requests that had been answered before', ({ workers }) =>
    one(sum(workers, ({ duplicates }) => duplicates)),
  ),
  counter(
    'farkv_reads_served_total',
    'One-sided READs that this process itself served: over tcp alone',
    ({ workers }) => one(sum(workers, ({ readsServed }) => readsServed)),
  ),
  counter('farkv_transfers_total', 'Large values that were taken in by rendezvous', ({ workers }) =>
    one(sum(workers, ({ transfers }) => transfers)),
  ),
  gauge(
    'farkv_request_seconds',
    "In the owner's hands since the start: the worst worker's quantiles; 1 is the longest",
    ({ workers }) =>
      KINDS.flatMap((kind) =>
        worst(
          workers.map(({ latencyNs }) => latencyNs[kind]),
          { kind },
        ),
      ),
    ['kind', 'quantile'],
  ),
  gauge('farkv_data_clients', 'Data connections', ({ workers }) => one(sum(workers, ({ clients }) => clients))),
  gauge('farkv_data_clients_blocked', 'Those that take no replies at present', ({ workers }) =>
    one(sum(workers, ({ blockedClients }) => blockedClients)),
  ),
  gauge('farkv_control_connections', 'Control connections, those of servers too', ({ node }) => one(node.connections)),
  gauge('farkv_control_clients', 'Clients that follow the map', ({ node }) => one(node.clients)),
  gauge('farkv_http_listeners', 'Pages that are open', ({ listeners }) => one(listeners)),
  gauge('farkv_front_stalled_seconds', 'The thread of clients has not answered for so long', ({ node }) =>
    one((node.frontStalledMs ?? 0) / 1000),
  ),
  gauge(
    'farkv_log_bytes',
    'Logs of values that a start would read',
    hasLog((all) => sum(all, ({ bytes }) => bytes)),
  ),
  gauge(
    'farkv_log_disk_full',
    '1: changes are refused, since the disk is full',
    hasLog((all) => Number(all.some(({ diskFull }) => diskFull))),
  ),
  counter(
    'farkv_log_syncs_total',
    'Batches that were written and synced',
    hasLog((all) => sum(all, ({ syncNs }) => syncNs.count)),
  ),
  counter(
    'farkv_log_records_total',
    'Changes in those batches',
    hasLog((all) => sum(all, ({ records }) => records)),
  ),
  gauge(
    'farkv_log_sync_seconds',
    "How long a batch takes since the start: the worst worker's quantiles",
    (seen) => worst(logs(seen).map(({ syncNs }) => syncNs)),
    ['quantile'],
  ),
  gauge('farkv_snapshots', 'Copies that have a snapshot on the disk', ({ node }) => one(node.values?.snapshots)),
  gauge('farkv_snapshot_oldest_seconds', 'Age of the oldest snapshot', ({ node }) =>
    one(node.values?.oldestSnapshotMs === undefined ? undefined : node.values.oldestSnapshotMs / 1000),
  ),
  gauge('farkv_snapshots_failed', 'Shards whose last snapshot failed', ({ tables }) =>
    one(tables.filter(({ snapshotErrno }) => snapshotErrno !== undefined).length),
  ),
  gauge('farkv_recovery_read_bytes', 'While a start reads the disk: how much of it was read', ({ node }) =>
    one(node.values?.recovering?.bytes),
  ),
  gauge('farkv_recovery_bytes', 'While a start reads the disk: how much there is', ({ node }) =>
    one(node.values?.recovering?.all),
  ),
  gauge(
    'farkv_polling_ratio',
    'Of the life of a worker, the part in which it polled without work',
    ({ workers }) =>
      workers.map(({ worker, polling }) => ({ labels: { worker: String(worker) }, value: polling.share })),
    ['worker'],
  ),
  counter('farkv_polling_found_total', 'Waits that were polled and ended with work', (seen) =>
    one(sum(polls(seen), (p) => p?.found)),
  ),
  counter('farkv_polling_vain_total', 'Waits that were polled and ended without', (seen) =>
    one(sum(polls(seen), (p) => p?.vain)),
  ),
  counter('farkv_polling_sleeps_total', 'Times that workers slept', (seen) => one(sum(polls(seen), (p) => p?.sleeps))),
  counter('farkv_polling_yields_total', 'Times that workers offered their processor', (seen) =>
    one(sum(polls(seen), (p) => p?.yields)),
  ),
  counter('farkv_polling_back_offs_total', 'Times that workers stopped polling for a while', (seen) =>
    one(sum(polls(seen), (p) => p?.backOffs)),
  ),
];
