/** Metrics of the data plane: requests, what clients report of their GETs, logs of values, polling. */
import { histogram, type Sample } from '../../core/exposition.js';
import type { Provider } from '../../core/providers.js';
import { CHANGES, type ReportedGets, type RequestKind } from '../../native/data-plane-stats.js';
import { buckets, counter, gauge, named, one, sum, type Metric, type Seen } from './metric-row.js';

/** Why a server refuses changes that others could take: they are counted from 0 on, so that a rate sees the first one. */
const OWN_REASONS = { ERR_TABLE_FULL: 0, ERR_TOO_FEW_COPIES: 0, ERR_NO_MEMORY: 0 };

type Workers = Seen['workers'];
const operations = (workers: Workers): RequestKind[] =>
  [...new Set(workers.flatMap(({ latencyNs }) => Object.keys(latencyNs)))] as RequestKind[];

/** Ended with an answer: `ok`, also for a missing key and another version. */
function endings({ labels, counts }: Seen['countsOf'][number]): Sample[] {
  return (Object.keys(counts.answered) as RequestKind[]).flatMap((op) => [
    { labels: { ...labels, op, code: 'ok' }, value: counts.answered[op] },
    ...Object.entries(counts.refusedOf[op] ?? {}).map(([code, value]) => ({ labels: { ...labels, op, code }, value })),
  ]);
}

/** One figure of the GETs that clients report, by tenant. */
const reported =
  (of: (gets: ReportedGets) => number, more: Readonly<Record<string, string>> = {}) =>
  ({ countsOf }: Seen): Sample[] =>
    countsOf.map(({ labels, counts }) => ({ labels: { ...labels, ...more }, value: of(counts.reported) }));

const transports = ({ status, node }: Seen): Provider[] => [
  ...new Set((status.members.find(({ id }) => id === node.id)?.fabric ?? []).map(({ provider }) => provider)),
];
const logs = ({ workers }: Seen) => workers.flatMap(({ log }) => (log === undefined ? [] : [log]));
const polls = ({ workers }: Seen) => workers.map(({ polling }) => polling as typeof polling | undefined);
const hasLog = (read: (all: ReturnType<typeof logs>) => number) => (seen: Seen) =>
  logs(seen).length === 0 ? [] : one(read(logs(seen)));

export const OF_DATA: readonly Metric[] = [
  gauge('farkv_workers', 'Threads of the data plane', ({ workers }) => one(workers.length)),
  counter(
    'farkv_ops_total',
    'Requests by operation and how they ended, as servers see them: a get is a two-sided one',
    ({ countsOf }) => countsOf.flatMap(endings),
    ['tenant', 'op', 'code'],
  ),
  buckets(
    'farkv_op_seconds',
    "In the owner's hands: from the arrival until the answer is handed to the transport; of those that were not refused",
    ({ workers }) =>
      operations(workers).flatMap((op) =>
        histogram(
          workers.map(({ latencyNs }) => latencyNs[op]),
          { op },
        ),
      ),
    ['op'],
  ),
  counter(
    'farkv_put_rejected_total',
    'Changes that were refused, by error',
    ({ countsOf }) =>
      countsOf.flatMap(({ labels, counts: { refusedOf } }) =>
        named('reason', [OWN_REASONS, ...CHANGES.map((op) => refusedOf[op] ?? {})], labels),
      ),
    ['tenant', 'reason'],
  ),
  counter(
    'farkv_refused_total',
    'Requests and connections that were refused, by error',
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
  counter(
    'farkv_gets_total',
    'GETs of clients by result, one-sided ones too, as clients report them with their leases',
    (seen) => [
      ...reported((gets) => gets.hits, { result: 'hit' })(seen),
      ...reported((gets) => gets.misses, { result: 'miss' })(seen),
    ],
    ['tenant', 'result'],
  ),
  counter(
    'farkv_get_reads_total',
    'READs that those GETs took',
    reported((gets) => gets.reads),
    ['tenant'],
  ),
  counter(
    'farkv_get_read_bytes_total',
    'Bytes of those READs',
    reported((gets) => gets.readBytes),
    ['tenant'],
  ),
  counter(
    'farkv_get_retries_total',
    'READs that did not count: torn by a change, late for lease or life, or of memory of another life',
    (seen) => [
      ...reported((gets) => gets.tornReads, { check: 'torn' })(seen),
      ...reported((gets) => gets.lateDiscards, { check: 'late' })(seen),
      ...reported((gets) => gets.foreignReads, { check: 'foreign' })(seen),
    ],
    ['tenant', 'check'],
  ),
  counter(
    'farkv_get_two_sided_total',
    'Of those GETs the ones that the owner was asked for',
    reported((gets) => gets.twoSidedGets),
    ['tenant'],
  ),
  gauge(
    'farkv_clients',
    'Data connections by transport',
    (seen) =>
      transports(seen).map((transport) => ({
        labels: { transport },
        value: sum(seen.workers, ({ clientsOver }) => clientsOver[transport]),
      })),
    ['transport'],
  ),
  gauge('farkv_clients_blocked', 'Those that take no replies at present', ({ workers }) =>
    one(sum(workers, ({ blockedClients }) => blockedClients)),
  ),
  gauge(
    'farkv_transport_info',
    '1 for each transport that this server offers',
    (seen) => transports(seen).map((transport) => ({ labels: { transport }, value: 1 })),
    ['transport'],
  ),
  gauge(
    'farkv_log_bytes',
    'Files of the logs of values that a start would read',
    hasLog((all) => sum(all, ({ bytes }) => bytes)),
  ),
  gauge(
    'farkv_log_disk_full',
    '1: changes are refused, since the disk is full',
    hasLog((all) => Number(all.some(({ diskFull }) => diskFull))),
  ),
  counter(
    'farkv_log_records_total',
    'Changes in the batches of logs of values',
    hasLog((all) => sum(all, ({ records }) => records)),
  ),
  buckets('farkv_log_fsync_seconds', 'How long batches of the logs of values took to be written and synced', (seen) =>
    histogram(logs(seen).map(({ syncNs }) => syncNs)),
  ),
  gauge('farkv_snapshots', 'Copies that have a snapshot on the disk', ({ node }) => one(node.values?.snapshots)),
  gauge('farkv_snapshot_oldest_seconds', 'Age of the oldest snapshot', ({ node }) =>
    one(node.values?.oldestSnapshotMs === undefined ? undefined : node.values.oldestSnapshotMs / 1000),
  ),
  gauge('farkv_snapshots_failed', 'Shards whose last snapshot failed', ({ tables }) =>
    one(tables.filter(({ snapshotErrno }) => snapshotErrno !== undefined).length),
  ),
  gauge('farkv_values_put_aside', '1: a start found the write-ahead log damaged, and has put it aside', ({ node }) =>
    one(node.values === undefined ? undefined : Number(node.values.aside === true)),
  ),
  gauge('farkv_recovery_read_bytes', 'While a start reads the disk: how much of it was read', ({ node }) =>
    one(node.values?.recovering?.bytes),
  ),
  gauge('farkv_recovery_bytes', 'While a start reads the disk: how much it will read, as far as is known', ({ node }) =>
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
