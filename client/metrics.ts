/** What `client.metrics()` gives: a client's counters as Prometheus's families, under the names that servers use. */
import { histogram, type Counted, type Family } from '../core/exposition.js';
import { argumentError } from './errors.js';
import type { ClientStats } from './transport.js';

/** Of a name, as Prometheus has them. */
const LABEL = /^[a-z_][a-z0-9_]*$/i;

type Labels = Readonly<Record<string, string>>;

export function checkLabels(labels: unknown): Labels {
  const pairs = typeof labels === 'object' && labels !== null ? Object.entries(labels) : undefined;
  if (pairs?.every(([name, text]) => LABEL.test(name) && typeof text === 'string') !== true)
    throw argumentError("labels are an object of texts, with names as Prometheus's: { cluster: 'a' }");
  return Object.fromEntries(pairs);
}

/** Of its timed calls, by method; undefined: none is timed. */
type Times = ReadonlyMap<string, Counted> | undefined;

export function metricsOf(stats: ClientStats, times: Times, labels: Labels = {}): Family[] {
  return familiesOf(stats, times).map((family) => ({
    ...family,
    samples: family.samples.map((sample) => ({ ...sample, labels: { ...labels, ...sample.labels } })),
  }));
}

function familiesOf(stats: ClientStats, times: Times): Family[] {
  const counter = (name: string, help: string, value: number): Family => ({
    name,
    help,
    type: 'counter',
    samples: [{ value }],
  });
  const by = (name: string, help: string, label: string, counts: Readonly<Record<string, number>>): Family => ({
    name,
    help,
    type: 'counter',
    samples: Object.entries(counts).map(([of, value]) => ({ labels: { [label]: of }, value })),
  });
  const over = new Map<string, number>();
  for (const { provider, connected } of stats.transports)
    if (connected && provider !== undefined) over.set(provider, (over.get(provider) ?? 0) + 1);
  return [
    by('farkv_gets_total', 'GETs by result', 'result', { hit: stats.getHits, miss: stats.getMisses }),
    counter('farkv_get_reads_total', 'READs that those GETs took', stats.reads),
    counter('farkv_get_read_bytes_total', 'Bytes of those READs', stats.readBytes),
    by('farkv_get_retries_total', 'READs that did not count, by the check that they failed', 'check', {
      torn: stats.tornReads,
      late: stats.lateDiscards,
      foreign: stats.foreignReads,
    }),
    counter('farkv_get_two_sided_total', 'GETs that the owner was asked for', stats.twoSidedGets),
    counter('farkv_changes_total', 'Changes that were asked for', stats.changes),
    counter('farkv_lease_renewals_total', 'Leases that were asked for', stats.leaseRenewals),
    by('farkv_location_cache_total', 'GETs with a cached location, by how it was', 'result', {
      hit: stats.locationHits,
      stale: stats.locationStale,
    }),
    ...(times === undefined ? [] : [callSeconds(times)]),
    {
      name: 'farkv_connections',
      help: 'Connections to threads of servers, by transport',
      type: 'gauge',
      samples: [...over].map(([transport, value]) => ({ labels: { transport }, value })),
    },
  ];
}

const callSeconds = (times: ReadonlyMap<string, Counted>): Family => ({
  name: 'farkv_call_seconds',
  help: 'How long calls took, one in 1,024; with `latencies` in connect()',
  type: 'histogram',
  samples: [...times].flatMap(([call, counted]) => histogram([counted], { call })),
});
