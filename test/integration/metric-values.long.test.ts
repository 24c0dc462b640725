/**
 * The values of /metrics, of three durable servers under writes: each family of the table has samples with the labels that
 * docs/metrics.md names, figures that belong together agree, and the death of an owner shows. Not for: who may read them
 * (http.long.test.ts), nor what Prometheus makes of them (prometheus.long.test.ts).
 */
import test from 'ava';
import { METRICS } from '../../server/http/metric-table.js';
import { Cluster, type ServerProcess } from '../support/cluster.js';
import { open, Writing } from '../support/durable-writes.js';
import { ask, samples } from '../support/http.js';
import { copied, leaderOf, statusWhen } from '../support/status.js';

/** Families that may be without a sample, and when. All others have one at every server. */
const CONDITIONAL: Readonly<Record<string, string>> = {
  farkv_certificate_expiry_timestamp_seconds: 'without a certificate',
  farkv_recovery_read_bytes: 'unless a start reads the disk',
  farkv_recovery_bytes: 'unless a start reads the disk',
  farkv_snapshot_oldest_seconds: 'before the first snapshot',
  farkv_refused_total: 'before anything was refused',
};
const SHARDS = 6;

type Seen = ReadonlyMap<string, number>;
const look = async (server: ServerProcess): Promise<Seen> =>
  samples((await ask(server.readyLine?.http[0] ?? '', '/metrics')).text);

/** Looks until it is so. */
async function until(server: ServerProcess, condition: (seen: Seen) => boolean): Promise<Seen> {
  for (;;) {
    const seen = await look(server);
    if (condition(seen)) return seen;
  }
}

/** Samples of one family; of a histogram those of its buckets, sum and count. */
function family(
  seen: Seen,
  name: string,
  isHistogram = false,
): { readonly labels: string[]; readonly value: number }[] {
  const ends = isHistogram ? ['_bucket', '_sum', '_count'] : [''];
  return [...seen].flatMap(([sample, value]) => {
    const [, of = '', labels = ''] = /^([a-z_]+)(?:\{(.*)\})?$/.exec(sample) ?? [];
    if (!ends.some((end) => of === name + end)) return [];
    return [{ labels: [...labels.matchAll(/([a-z_]+)="/g)].map(([, label = '']) => label), value }];
  });
}
const sum = (seen: Seen, name: string): number => family(seen, name).reduce((all, { value }) => all + value, 0);
const sumOf = (all: readonly Seen[], name: string): number => all.reduce((n, seen) => n + sum(seen, name), 0);

test('every family has values, with the labels of the table, and the loss and return of an owner show', async (t) => {
  const cluster = await Cluster.start(t, {
    ...{ servers: 3, shards: SHARDS, level: 'durable' },
    args: ['--http-listen', '127.0.0.1:0', '--lease-ms', '400', '--owner-lease-ms', '1000'],
  });
  const [at = ''] = cluster.addresses;
  const client = await open(t, cluster);
  const writing = new Writing(client);
  await writing.have(200);
  for (let i = 0; i < 100; i++) await client.get(`key-0-${i}`);
  await statusWhen(at, copied);

  for (const server of cluster.servers) {
    const peers = cluster.servers.filter((other) => other !== server).map(({ id }) => id);
    const hasRtt = (seen: Seen): boolean => peers.every((id) => seen.has(`farkv_peer_rtt_seconds{peer="${id}"}`));
    const seen = await until(server, (now) => hasRtt(now) && sum(now, 'farkv_log_records_total') > 0);
    for (const { name, type, labels } of METRICS) {
      const found = family(seen, name, type === 'histogram');
      if (!(name in CONDITIONAL)) t.true(found.length > 0, `${server.id}: no sample of ${name}`);
      for (const { labels: given, value } of found) {
        // Requests and GETs have no tenant in a cluster without tenants.
        const wanted = [...labels, ...(type === 'histogram' && given.includes('le') ? ['le'] : [])];
        const without = given.includes('tenant') ? wanted : wanted.filter((label) => label !== 'tenant');
        t.deepEqual([...given].sort(), without.sort(), name);
        t.true(Number.isFinite(value) && value >= 0, `${name}: ${value}`);
      }
    }
    for (const name of ['farkv_log_fsync_seconds_count', 'farkv_log_bytes', 'farkv_memory_used_bytes'])
      t.true(sum(seen, name) > 0, `${server.id}: ${name}`);
    const use = (name: string): number => seen.get(`farkv_memory_bytes{use="${name}"}`) ?? NaN;
    t.is(sum(seen, 'farkv_memory_bytes'), sum(seen, 'farkv_memory_pages_bytes'), 'the same memory');
    t.is(
      sum(seen, 'farkv_memory_bytes') - use('free') - use('index_free'),
      sum(seen, 'farkv_memory_used_bytes'),
      'all of it but what can take another entry now',
    );
    for (const provider of new Set(server.readyLine?.fabric.map((one) => one.provider)))
      t.is(seen.get(`farkv_transport_info{transport="${provider}"}`), 1);
    t.is(sum(seen, 'farkv_shards_underreplicated'), 0);
  }

  const leader = cluster.server(await leaderOf(cluster));
  const lost = cluster.servers.find((one) => one !== leader)!;
  const stayed = cluster.servers.filter((one) => one !== lost);
  const all = (): Promise<Seen[]> => Promise.all(stayed.map(look));
  const failovers = async (): Promise<number> => Math.max(...(await all()).map((s) => sum(s, 'farkv_failovers_total')));
  const owned = sum(await look(lost), 'farkv_shards');
  const before = await failovers();
  t.true(owned > 0);
  await lost.kill();
  await until(leader, (seen) => sum(seen, 'farkv_failovers_total') >= before + owned);
  let seen = await all();
  while (sumOf(seen, 'farkv_shards_underreplicated') === 0 || sumOf(seen, 'farkv_shards') < SHARDS) seen = await all();
  t.true(sumOf(seen, 'farkv_copies_in_sync') < sumOf(seen, 'farkv_copies_wanted'));

  const atReturn = await failovers();
  await lost.start();
  await statusWhen(at, copied);
  // What this server counts came after its start: those that stayed have counted it too.
  const returned = sum(await look(lost), 'farkv_failovers_total');
  const now = await failovers();
  t.true(returned <= now - atReturn, `${returned} of ${now} after ${atReturn}`);
  t.true(now >= before + owned, 'a counter does not fall');
  while (sumOf([...(await all()), await look(lost)], 'farkv_shards_underreplicated') > 0);
  await writing.stop();
});
