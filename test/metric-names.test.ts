/** docs/metrics.md names the metrics of servers and of clients; a family that both have is one. */
import test from 'ava';
import { readFileSync } from 'node:fs';
import { inRepository } from '../bench/repository.js';
import { metricsOf } from '../client/metrics.js';
import type { ClientStats } from '../client/transport.js';
import { METRICS } from '../server/http/metric-table.js';
import { FakeNativeClient } from './support/fake-native-client.js';

const STATS: ClientStats = { ...new FakeNativeClient().stats(), readsPerGet: 0, transports: [] };

test('docs/metrics.md lists each metric of servers and of clients, and no other', (t) => {
  const markdown = readFileSync(inRepository('docs/metrics.md'), 'utf8');
  const rows = [...markdown.matchAll(/^\| `(farkv_[a-z_]+)` \|/gm)].map(([, name = '']) => name);
  t.deepEqual(
    rows,
    [...METRICS, ...metricsOf(STATS, new Map())].map(({ name }) => name),
  );
});

test('docs/metrics.md gives each metric of servers its type and its labels', (t) => {
  const markdown = readFileSync(inRepository('docs/metrics.md'), 'utf8');
  const rows = new Map(
    [...markdown.split('\n## Of clients')[0]!.matchAll(/^\| `(farkv_[a-z_]+)` \| ([a-z]+) \| ([a-z, ]*) \| /gm)].map(
      ([, name = '', type = '', labels = '']) => [
        name,
        { type, labels: labels.split(', ').filter((one) => one !== '') },
      ],
    ),
  );
  for (const { name, type, labels } of METRICS) t.deepEqual(rows.get(name), { type, labels: [...labels] }, name);
});

test('a family of both has the same type at both, and the same labels but for the tenant, of which a client has one', (t) => {
  for (const { name, type, samples } of metricsOf(STATS, new Map())) {
    const server = METRICS.find((metric) => metric.name === name);
    if (server === undefined) continue;
    t.is(server.type, type, name);
    for (const { labels = {} } of samples)
      t.deepEqual(
        Object.keys(labels),
        server.labels.filter((label) => label !== 'tenant'),
        name,
      );
  }
});
