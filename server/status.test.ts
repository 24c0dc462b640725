import test from 'ava';
import { EMPTY } from '../core/metadata/reduce.js';
import type { MetadataState, Region, Shard } from '../core/metadata/state.js';
import type { DataPlaneStats } from '../native/data-plane-stats.js';
import { renderStatus } from './cli/commands/status.js';
import { topScreen } from './cli/top-screen.js';
import { seenIn } from './http/metric-row.js';
import { METRICS } from './http/metric-table.js';
import { viewOf } from './http/view.js';
import { checkNodeStatus, clusterStatus, type NodeStatus } from './status.js';

const region = (segment: number, kind: Region['kind']): Region => ({
  provider: 'shm',
  kind,
  segment,
  tag: 1,
  bytes: 1 << 20,
  remoteAddress: '77777777',
  rkey: '999999999999',
});
const shard = (n: number, more: Partial<Shard>): Shard => ({
  shard: n,
  worker: 0,
  epoch: 1,
  layoutEpoch: 0,
  buckets: 0,
  regions: [],
  ...more,
});
const member = (id: string) =>
  ({
    id,
    raftId: 1,
    incarnation: '00'.repeat(8),
    control: ['127.0.0.1:7400'],
    fabric: [{ provider: 'shm', address: 'unix:/x', worker: 0, host: 'h' }],
    memoryBytes: 1 << 30,
  }) as const;
const open = {
  incarnation: '00'.repeat(8),
  layoutEpoch: 2,
  buckets: 64,
  regions: [region(0, 'index'), region(0, 'heap'), region(1, 'heap')],
};
const state: MetadataState = {
  ...EMPTY,
  clusterId: 'ab'.repeat(16),
  mapEpoch: 9,
  hashSeed: '5eed'.repeat(8),
  ticketSecret: '5ec2e7'.repeat(5) + '00',
  voters: ['s1', 's2', 's3'],
  members: new Map([
    ['s1', member('s1')],
    ['s2', member('s2')],
  ]),
  shards: [
    shard(0, { owner: 's1', ...open }),
    shard(1, { owner: 's1', ...open }),
    shard(2, { owner: 's1' }),
    shard(3, { owner: 's2', ...open }),
    shard(4, {}),
  ],
};
const own = (n: number, serving: boolean): DataPlaneStats['shards'][number] => ({
  shard: n,
  worker: 0,
  serving,
  usedBytes: 1 << 20,
  privateBytes: 0,
  evacuated: 0,
  prepared: 0,
  entries: 7,
  keyValueBytes: 100,
  indexBytes: 1 << 20,
  heapBytes: 2 << 20,
  memoryBytes: 1 << 28,
  buckets: 64,
  smallPageBytes: 1 << 20,
  transparentPageBytes: 2 << 20,
  reservedPageBytes: 0,
  retiredBytes: 4096,
  heldBytes: 0,
  indexFreeBytes: 1000,
  liveBytes: 500,
  preparedBytes: 30,
  overflowBytes: 128,
  quarantineBytes: 7,
  slackBytes: 5,
  freeBytes: (2 << 20) - 670,
  overflowBuckets: 0,
  longestChain: 1,
  splits: 0,
  expired: 0,
});
const NO_COUNTS = { pages: 'small', descriptorsMissed: 0, tenants: [] } as const;
const node: NodeStatus = {
  id: 's1',
  version: '1.2.3',
  processId: 5,
  uptimeMs: 1000,
  role: 'leader',
  term: 4,
  commitIndex: 10,
  appliedIndex: 10,
  logBytes: 100,
  connections: 3,
  clients: 2,
  leaseHeld: true,
  moveErrors: [],
  heldBack: [],
  fullCopies: [],
  movedVotes: [],
  failovers: [],
  group: {
    leaderChanges: 0,
    failedProposals: 0,
    activeMs: 0,
    failedOver: 0,
    syncNs: { count: 0, sum: 0, below: [] },
    diskFull: false,
    peers: [],
  },
  dataPlane: { ...NO_COUNTS, workers: [], shards: [own(0, true), own(1, false)] },
};
const status = clusterStatus(state, new Map([['s1', node]]), state.voters, { term: 4, answeredBy: 's1', leader: 's1' });

test('failovers are those of the server that runs longest, and those that it came too late for', (t) => {
  const failover = (from: string, agoMs: number) =>
    ({ from, to: 's1', shards: 1, why: 'silent', values: 'all', agoMs }) as const;
  const of = (id: string, uptimeMs: number, ...failovers: NodeStatus['failovers']): [string, NodeStatus] => [
    id,
    { ...node, id, uptimeMs, failovers },
  ];
  const nodes = new Map([of('s1', 10, failover('s3', 5), failover('s2', 7)), of('s2', 1000, failover('s3', 900))]);
  const { failovers } = clusterStatus(state, nodes, state.voters, { term: 4, answeredBy: 's1', leader: 's1' });
  t.deepEqual(failovers, [failover('s2', 7), failover('s3', 900)]);
});

test('every member is shown, also one that does not answer and one that never came', (t) => {
  t.deepEqual(
    status.members.map((m) => [m.id, m.state, m.leader]),
    [
      ['s1', 'up', true],
      ['s2', 'unreachable', false],
      ['s3', 'absent', false],
    ],
  );
});

test("a shard is served, open, closed, out of reach or nobody's", (t) => {
  t.deepEqual(
    status.shards.map((s) => s.state),
    ['serving', 'open', 'closed', 'unreachable', 'unassigned'],
  );
  t.deepEqual(status.shards[0]?.regions, [
    { provider: 'shm', kind: 'index', count: 1, bytes: 1 << 20 },
    { provider: 'shm', kind: 'heap', count: 2, bytes: 2 << 20 },
  ]);
  t.like(status.shards[0], { entries: 7, memoryBytes: 3 << 20, memoryLimitBytes: 1 << 28 });
});

test('a shard whose owner has no lease is not said to be served', (t) => {
  const { leaseHeld: _, ...unasked } = node;
  for (const owner of [{ ...node, leaseHeld: false }, unasked]) {
    const without = clusterStatus(state, new Map([['s1', owner]]), state.voters, { term: 4, answeredBy: 's1' });
    t.deepEqual(
      without.shards.map((s) => s.state),
      ['open', 'open', 'closed', 'unreachable', 'unassigned'],
    );
    const gauge = METRICS.find(({ name }) => name === 'farkv_shards')?.read(seenIn(without, 's1', 0)!);
    t.deepEqual(
      gauge?.map(({ value }) => value),
      [1, 2, 0],
      'closed, open, serving',
    );
    t.regex(renderStatus(without), /^ +0 +s1 +open/m);
    const view = viewOf({ atMs: 0, status: without });
    t.regex(topScreen(view, { columns: Infinity, rows: 9 }), / 0 of 5 shards served /);
  }
});

test('the figures of a shard are not looked for among those of all', (t) => {
  const shards = Array.from({ length: 512 }, (_, n) => shard(n, { owner: 's1', ...open }));
  let reads = 0;
  const counted = shards.map(({ shard: n }) =>
    Object.defineProperty(own(n, true), 'shard', {
      get: () => {
        reads += 1;
        return n;
      },
    }),
  );
  const of = { ...node, dataPlane: { ...NO_COUNTS, workers: [], shards: counted } };
  const about = { term: 4, answeredBy: 's1', leader: 's1' };
  const many = clusterStatus({ ...state, shards }, new Map([['s1', of]]), state.voters, about);
  t.true(many.shards.every((s) => s.state === 'serving'));
  t.true(reads < 4 * shards.length, `${reads} reads`);
});

test('the parts of the memory add up to what is registered', (t) => {
  const { memory, memoryBytes } = status.shards[0] ?? {};
  t.deepEqual(memory, {
    index: (1 << 20) - 1000,
    indexFree: 1000,
    live: 500,
    prepared: 30,
    overflow: 128,
    quarantine: 7,
    slack: 5,
    free: (2 << 20) - 670,
  });
  t.is(
    Object.values({ ...memory }).reduce((sum, part) => sum + part, 0),
    memoryBytes ?? 0,
  );
});

test('neither the document nor the table has a secret', (t) => {
  const shown = JSON.stringify(status) + renderStatus(status);
  for (const secret of ['999999999999', '77777777', '5eed', '5ec2e7', 'rkey']) t.false(shown.includes(secret), secret);
});

test('the table is readable where nothing is known yet', (t) => {
  const nothing = clusterStatus(EMPTY, new Map(), ['s1'], { term: 0, answeredBy: 's1' });
  t.regex(renderStatus(nothing), /^cluster \(not made yet\), map epoch 0, leader none in term 0/);
  t.regex(
    renderStatus(status),
    /^s1 +up, leader +127\.0\.0\.1:7400 +shm +3 +14 +2\.0 MiB +6\.0 MiB +4\.0 MiB transparent +1\.0 GiB +2$/m,
  );
  t.regex(renderStatus(status), /^ +4 +- +unassigned/m);
});

test('memory of a server is of its copies too, in the table as in farkv top', (t) => {
  const { dataPlane } = node;
  const withCopy = {
    ...node,
    dataPlane: { ...NO_COUNTS, ...dataPlane!, shards: [...dataPlane!.shards, own(3, false)] },
  };
  const shown = clusterStatus(state, new Map([['s1', withCopy]]), state.voters, { term: 4, answeredBy: 's1' });
  t.regex(
    renderStatus(shown),
    /^s1 +up +127\.0\.0\.1:7400 +shm +3 +14 +3\.0 MiB +9\.0 MiB +6\.0 MiB transparent +1\.0 GiB +2$/m,
  );
  t.like(viewOf({ atMs: 0, status: shown }).servers[0], { entries: 14, usedBytes: 3 << 20, memoryBytes: 9 << 20 });
});

test('durable values are said to be on disks before answers only where no server answers before', (t) => {
  const policy = { level: 'durable', replicas: 2, minInSync: 1, onLoss: 'wait' } as const;
  const of = (values: NodeStatus['values']): string =>
    renderStatus({
      ...status,
      members: status.members.map((member) => ({
        ...member,
        ...(member.node === undefined || values === undefined ? {} : { node: { ...member.node, values } }),
      })),
      replication: [policy],
    });
  t.regex(of({ snapshots: 0 }), /^level durable: .* disks of 2 servers before it is answered, /m);
  t.regex(of({ snapshots: 0, syncMs: 50 }), /^level durable: .* disks of 2 servers, and found again/m);
});

test('advice is printed, and is no line that needs attention', (t) => {
  t.notRegex(renderStatus(status), /^advice/m, 'three voters');
  const voters = ['s1', 's2'];
  const about = { term: 4, answeredBy: 's1', leader: 's1' };
  const two = renderStatus(clusterStatus({ ...state, voters }, new Map([['s1', node]]), voters, about));
  t.regex(two, /^advice: the metadata group has two voters/m);
  t.notRegex(two, /^needs attention: the metadata group/m);
});

test('a server that is being drained is shown', (t) => {
  const servers = [{ id: 's2', raftId: 2, control: ['127.0.0.1:7401'], draining: true }];
  const draining = clusterStatus({ ...state, servers }, new Map([['s1', node]]), state.voters, {
    term: 4,
    answeredBy: 's1',
  });
  t.regex(renderStatus(draining), /^s2 +unreachable, draining +127/m);
  t.false(renderStatus(status).includes('draining'));
});

test('a server whose thread of clients and operators stands still is shown', (t) => {
  const of = (more: Partial<typeof node>): string =>
    renderStatus(
      clusterStatus(state, new Map([['s1', { ...node, ...more }]]), state.voters, { term: 4, answeredBy: 's2' }),
    );
  t.regex(
    of({ frontStalledMs: 3500 }),
    /^needs attention: s1 has not answered its clients and operators for 4 s: look at/m,
  );
  t.notRegex(of({}), /has not answered/);
});

test('what another server says about itself is checked', (t) => {
  t.deepEqual(checkNodeStatus(node, 's1'), node);
  const stalled = { ...node, frontStalledMs: 3500, changesRefusedAgoMs: 7 };
  t.deepEqual(checkNodeStatus(stalled, 's1'), stalled);
  for (const bad of [null, {}, { ...node, term: -1 }, { ...node, id: 5 }, { ...node, version: 'a\u001b[2J' }])
    t.throws(() => checkNodeStatus(bad, 's1'), { code: 'ERR_PROTOCOL' });
});
