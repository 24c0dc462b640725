import test from 'ava';
import { HISTOGRAM_BOUNDS } from '../../core/exposition.js';
import type { ClusterStatus } from '../status.js';
import { SAMPLE_MS, SAMPLES } from './bounds.js';
import { comparable, History } from './history.js';
import { CHARTS, type Sample } from './page/figures.js';
import { viewOf } from './view.js';

const NONE = { count: 0, p50: 0, p99: 0, max: 0, below: Array<number>(HISTOGRAM_BOUNDS).fill(0) };
/** One server, after so many PUTs; `shards` of 1 KiB each. */
const status = (put: number, shards = 1): ClusterStatus =>
  ({
    ...{ clusterId: 'ab'.repeat(16), leader: 's1', term: 3, mapEpoch: 1, answeredBy: 's1' },
    ...{ moves: [], moveErrors: [], failovers: [] },
    members: [
      {
        ...{ id: 's1', state: 'up', leader: true, role: 'voter', draining: false, memoryBytes: 1 << 30 },
        node: {
          ...{ group: { diskFull: false }, processId: 1, version: '1', uptimeMs: 1, clients: 0, leaseHeld: true },
          dataPlane: {
            workers: [
              {
                requests: { get: 0, put, delete: 0, cas: 0, scan: 0, increment: 0, append: 0, touch: 0, fields: 0 },
                readsServed: 0,
                reported: { hits: put, misses: 0, reads: 2 * put, readBytes: 0, twoSidedGets: 0 },
                latencyNs: { get: NONE, put: NONE },
              },
            ],
            shards: Array.from({ length: shards }, () => ({ usedBytes: 1 << 9, memoryBytes: 1 << 10 })),
          },
        },
      },
    ],
    shards: Array.from({ length: shards }, (_, shard) => ({ shard, owner: 's1', state: 'serving' })),
  }) as unknown as ClusterStatus;

const figure = (sample: Sample | undefined, name: string): number | undefined =>
  sample?.[1 + Object.values<readonly string[]>(CHARTS).flat().indexOf(name)];
const times = (history: History): number[] => history.samples.map(([atMs]) => atMs);

test('a sample has the rates since the one before, however often there was a look', (t) => {
  const history = new History();
  for (let s = 0; s <= 20; s++) history.take({ atMs: s * 1000, status: status(s <= 5 ? s * 100 : 500) });
  t.deepEqual(times(history), [SAMPLE_MS, 2 * SAMPLE_MS]);
  const [loaded, idle] = history.samples;
  t.is(figure(loaded, 'put'), 50);
  t.is(figure(loaded, 'GETs of clients'), 50);
  t.is(figure(loaded, 'READs per GET'), 2);
  t.is(figure(idle, 'put'), 0);
});

test('an hour is kept, in the order of time, also where the clock was set back', (t) => {
  const history = new History();
  for (let i = 0; i <= SAMPLES + 10; i++) history.take({ atMs: i * SAMPLE_MS, status: status(i) });
  t.is(history.samples.length, SAMPLES);
  t.is(times(history)[0], 11 * SAMPLE_MS);
  t.true(JSON.stringify(history.samples).length < 100 << 10);
  const back = 100.5 * SAMPLE_MS;
  for (const atMs of [back, back + SAMPLE_MS]) history.take({ atMs, status: status(9999) });
  t.is(times(history).at(-2), 100 * SAMPLE_MS);
  t.is(times(history).at(-1), back + SAMPLE_MS);
});

test('what the next look is compared with is all that it needs, and nothing per shard', (t) => {
  const [before, now] = [
    { atMs: 0, status: status(100, 4096) },
    { atMs: 1000, status: status(300, 4096) },
  ];
  t.true(JSON.stringify(comparable(before)).length < 2000);
  t.deepEqual(viewOf(now, comparable(before)), viewOf(now, before));
  t.is(viewOf(now, comparable(before)).rates.put, 200);
});
