import test from 'ava';
import { serialize } from 'node:v8';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { Copy, Member, MetadataState, Region } from '../../core/metadata/state.js';
import type { DataPlaneStats } from '../../native/data-plane-stats.js';
import { clusterStatus, type NodeStatus } from '../status.js';
import { seenIn } from './metric-row.js';
import { METRICS } from './metric-table.js';
import { scrapeStatus } from './scrape-status.js';

type Table = DataPlaneStats['shards'][number];
const SHARDS = 64;
const IDS = ['s1', 's2', 's3'];

/** Each figure is another one, so that none is taken for another. */
const tableOf = (shard: number, role: 'owner' | 'backup'): Table => {
  const names = [
    ...['entries', 'keyValueBytes', 'indexBytes', 'heapBytes', 'memoryBytes', 'usedBytes', 'indexFreeBytes'],
    ...['liveBytes', 'preparedBytes', 'overflowBytes', 'slackBytes', 'smallPageBytes', 'transparentPageBytes'],
    ...['reservedPageBytes', 'retiredBytes', 'heldBytes', 'privateBytes', 'quarantineBytes', 'freeBytes', 'buckets'],
    ...['overflowBuckets', 'longestChain', 'splits', 'expired', 'evacuated', 'prepared'],
  ];
  const figures = Object.fromEntries(names.map((name, i) => [name, 1000 * (i + 1) + shard]));
  const peers = [{ id: '2'.repeat(16), standing: 'in-sync', prepared: 5, leaseLeftMs: 100, linked: 'shm' }];
  const copy = {
    role,
    id: '1'.repeat(16),
    epoch: 1,
    config: 1,
    prepared: 5,
    committed: 2,
    lag: 3,
    follows: false,
    peers,
  };
  const failed = shard === 3 ? { snapshotErrno: 28 } : {};
  return { shard, worker: 0, serving: shard !== 0, ...figures, copy, ...failed } as unknown as Table;
};
const regions: Region[] = (['shm', 'tcp'] as const).flatMap((provider) =>
  (['index', 'heap'] as const).map((kind) => ({
    ...{ provider, kind, segment: 0, tag: 1, bytes: 1 << 20, remoteAddress: '7', rkey: '9' },
  })),
);
const ownerOf = (n: number): string => IDS[n % 3] ?? '';
const copyOf = (member: string): Copy => ({ member, start: 'a', id: '1', state: 'in-sync' }) as unknown as Copy;
const STATE: MetadataState = {
  ...EMPTY,
  clusterId: 'ab'.repeat(16),
  voters: IDS,
  members: new Map(
    IDS.map((id): [string, Member] => [
      id,
      { id, incarnation: 'a', control: [], memoryBytes: 1 << 30, fabric: [{ provider: 'tcp' }] } as unknown as Member,
    ]),
  ),
  policies: [{ level: 'replicated', replicas: 3, minInSync: 2, onLoss: 'wait' }],
  copySets: Array.from({ length: SHARDS }, (_, n) => {
    const copies = [ownerOf(n), ...(n % 2 === 0 ? [ownerOf(n + 1)] : [])].map(copyOf);
    return { config: 1, copies };
  }),
  shards: Array.from({ length: SHARDS }, (_, n) => ({
    ...{ shard: n, worker: 0, epoch: 1, layoutEpoch: 1, buckets: 64, regions, incarnation: 'a' },
    ...(n === SHARDS - 1 ? {} : { owner: ownerOf(n) }),
  })),
};
const NODE = {
  ...{ id: 's1', version: '1', processId: 1, uptimeMs: 1, role: 'leader', term: 1, commitIndex: 1, appliedIndex: 1 },
  ...{ logBytes: 1, connections: 1, clients: 1, moveErrors: [], heldBack: [], fullCopies: [], movedVotes: [] },
  ...{ failovers: [], leaseHeld: true },
  group: {
    ...{ leaderChanges: 1, failedProposals: 0, failedOver: 0, syncNs: { count: 0, sum: 0, below: [] } },
    ...{ diskFull: false, activeMs: 0, peers: [] },
  },
  dataPlane: {
    ...{ pages: 'small', descriptorsMissed: 0, tenants: [], workers: [] },
    shards: STATE.shards
      .filter(({ shard }) => shard % 3 !== 1)
      .map(({ shard }) => tableOf(shard, shard % 3 === 0 ? 'owner' : 'backup')),
  },
} as unknown as NodeStatus;
const whole = clusterStatus(STATE, new Map([['s1', NODE]]), IDS, { term: 1, answeredBy: 's1', leader: 's1' });

test('a scrape shows the same as the whole status would', (t) => {
  const picked = seenIn(scrapeStatus(whole, 's1'), 's1', 2);
  const all = seenIn(whole, 's1', 2);
  t.truthy(picked);
  for (const { name, read } of METRICS) t.deepEqual(read(picked!), read(all!), name);
  const value = (name: string): unknown => METRICS.find((row) => row.name === name)?.read(picked!)[0]?.value;
  t.is(value('farkv_shards_too_few_copies'), 10);
  t.is(value('farkv_snapshots_failed'), 1);
  t.true((value('farkv_replica_lag_records') as number) > 0);
});

test('what goes from one thread to the other is a fraction of the status', (t) => {
  const bytes = serialize(scrapeStatus(whole, 's1')).length;
  t.true(2.5 * bytes < serialize(whole).length, `${bytes} of ${serialize(whole).length}`);
});
