/** What a row of the table of metrics is (metric-table.ts), what it is read from, and how most rows are made. */
import type { Sample } from '../../core/exposition.js';
import type { TenantStats } from '../../native/data-plane-stats.js';
import type { ScrapedNode, ScrapedShard, ScrapeStatus } from './scrape-status.js';

export interface Metric {
  readonly name: `farkv_${string}`;
  readonly help: string;
  readonly type: 'gauge' | 'counter' | 'histogram';
  readonly labels: readonly string[];
  readonly read: (seen: Seen) => readonly Sample[];
}

type Workers = NonNullable<ScrapedNode['dataPlane']>['workers'];
type Tables = NonNullable<ScrapedNode['dataPlane']>['shards'];

/** What metrics are read from. */
export interface Seen {
  readonly status: ScrapeStatus;
  readonly node: ScrapedNode;
  readonly workers: Workers;
  /** Of this server: shards that it owns, and copies. */
  readonly tables: Tables;
  /** Shards that it owns. */
  readonly owned: readonly ScrapedShard[];
  /** '' is the default tenant. */
  readonly tenantOf: (shard: number) => string;
  readonly tenants: readonly string[];
  /** What this server counts of each tenant's clients. Without a label in a cluster that has the default tenant alone. */
  readonly countsOf: readonly { readonly labels: Readonly<Record<string, string>>; readonly counts: TenantStats }[];
  /** Pages that are open. */
  readonly listeners: number;
}

export function seenIn(status: ScrapeStatus, id: string, listeners: number): Seen | undefined {
  const node = status.members.find((member) => member.id === id)?.node;
  if (node === undefined) return undefined;
  const tenants = status.tenants ?? [];
  const nameOf = (number: number): string => (number === 0 ? '' : (tenants[number - 1]?.name ?? ''));
  return {
    status,
    node,
    workers: node.dataPlane?.workers ?? [],
    tables: node.dataPlane?.shards ?? [],
    owned: status.shards.filter(({ owner }) => owner === id),
    tenants: ['', ...tenants.map(({ name }) => name)],
    countsOf: (node.dataPlane?.tenants ?? []).map((counts, number) => ({
      labels: tenants.length === 0 ? {} : { tenant: nameOf(number) },
      counts,
    })),
    tenantOf: (shard) =>
      tenants.find(({ firstShard, shards }) => shard >= firstShard && shard < firstShard + shards)?.name ?? '',
    listeners,
  };
}

export const one = (value: number | boolean | undefined): Sample[] =>
  value === undefined ? [] : [{ value: Number(value) }];
export const sum = <T>(all: readonly T[], of: (item: T) => number | undefined): number =>
  all.reduce((n, item) => n + (of(item) ?? 0), 0);

const row =
  (type: Metric['type']) =>
  (name: Metric['name'], help: string, read: Metric['read'], labels: readonly string[] = []): Metric => ({
    name,
    help,
    type,
    labels,
    read,
  });
export const gauge = row('gauge');
export const counter = row('counter');
/** Its label `le` is not among `labels`. */
export const buckets = row('histogram');

/** A sum over the shards that this server owns, by tenant. */
export const byTenant =
  (of: (shard: ScrapedShard) => number | undefined) =>
  ({ owned, tenants, tenantOf }: Seen): Sample[] =>
    tenants.map((tenant) => ({
      labels: { tenant },
      value: sum(
        owned.filter(({ shard }) => tenantOf(shard) === tenant),
        of,
      ),
    }));

/** Sums by name over several records of counts. */
export function named(
  label: string,
  records: readonly Readonly<Record<string, number>>[],
  more: Readonly<Record<string, string>> = {},
): Sample[] {
  const names = [...new Set(records.flatMap((record) => Object.keys(record)))];
  return names.map((name) => ({ labels: { ...more, [label]: name }, value: sum(records, (record) => record[name]) }));
}
