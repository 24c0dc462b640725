import test from 'ava';
import { EMPTY } from '../core/metadata/reduce.js';
import type { Copy, CopySet, Member, MetadataState, Policy, Server, Shard } from '../core/metadata/state.js';
import { unansweredMs } from './answer-watch.js';
import { ownReadiness, type OwnReadiness, type ReadinessAbout, type ReadinessParts } from './own-readiness.js';
import { clusterStatus } from './status.js';

const GIB = 1 << 30;
const member = (id: string, memoryBytes = GIB): [string, Member] => [
  id,
  { id, incarnation: 'a', memoryBytes, fabric: [], control: [] } as unknown as Member,
];
const server = (id: string, more: Partial<Server> = {}): Server => ({
  ...{ id, raftId: 1, instance: 'a', control: [], draining: false },
  ...more,
});
const shard = (n: number, owner?: string): Shard => ({
  ...{ shard: n, worker: 0, epoch: 1, layoutEpoch: 0, buckets: 0, regions: [] },
  ...(owner === undefined ? {} : { owner }),
});
const copySet = (...members: string[]): CopySet => ({
  config: 1,
  copies: members.map((one) => {
    const [id = '', state = 'in-sync'] = one.split(' ');
    return { member: id, start: 'a', id: '1', state } as Copy;
  }),
});
const policy = (level: Policy['level'], replicas: number): Policy => ({
  level,
  replicas,
  minInSync: 1,
  onLoss: 'wait',
});

/** s1 owns 0 and 2, s2 the other two; 2 and 3 are a tenant's. */
const STATE: MetadataState = {
  ...EMPTY,
  clusterId: 'ab'.repeat(16),
  voters: ['s1', 's2', 's3'],
  servers: [server('s1'), server('s2'), server('s3')],
  members: new Map([member('s1'), member('s2'), member('s3', 0)]),
  shards: [shard(0, 's1'), shard(1, 's2'), shard(2, 's1'), shard(3, 's2')],
  tenants: [{ name: 'blue', shards: 2 }],
  policies: [policy('replicated', 3), policy('cache', 1)],
  copySets: [copySet('s1', 's2'), copySet('s2', 's1'), copySet('s1'), copySet('s2')],
};
const PARTS: ReadinessParts = {
  ...{ lease: { held: true }, values: undefined, shards: { serving: [0, 2] }, dataPlane: undefined },
};
const ABOUT: ReadinessAbout = { id: 's1', ids: ['s1', 's2', 's3'], leader: 's2', stopping: false };
const of = (
  state: Partial<MetadataState> = {},
  parts: Partial<ReadinessParts> = {},
  about: Partial<ReadinessAbout> = {},
): OwnReadiness => ownReadiness({ ...STATE, ...state }, { ...PARTS, ...parts }, { ...ABOUT, ...about });

test('a server in order lacks nothing: a witness keeps no copies, and a cache has one', (t) => {
  t.deepEqual(of(), {
    ...{ role: 'follower', hasLeader: true, stopping: false, leaseHeld: true },
    ...{ waiting: [], lacking: [], dataPlaneSilentMs: 0 },
  });
});

test('a data plane that does not answer is told', (t) => {
  const dataPlane = { stats: () => new Promise(() => undefined) };
  t.is(unansweredMs(dataPlane, performance.now() - 3000), 0);
  t.true(of({}, { dataPlane }).dataPlaneSilentMs >= 3000);
});

test('the role in the metadata group is named', (t) => {
  t.is(of({}, {}, { leader: 's1' }).role, 'leader');
  t.is(of({}, {}, { leader: undefined }).role, 'candidate');
  t.false(of({}, {}, { leader: undefined }).hasLeader);
  t.is(of({ voters: ['s2'] }).role, 'learner');
  t.is(of({ servers: [server('s1', { raftId: 0 })] }).role, 'learner', 'only announced');
  t.is(of({}, {}, { ids: ['s2', 's3'] }).role, 'starting');
  t.is(of({ voters: [], servers: [] }, {}, { leader: undefined }).role, 'starting', 'there is no cluster yet');
});

test('what is not served, what is read from the disk and what has no lease is said', (t) => {
  t.deepEqual(of({}, { shards: { serving: [2] } }).waiting, [0]);
  t.deepEqual(of({}, { shards: undefined }).waiting, [0, 2]);
  t.false(of({}, { lease: undefined }).leaseHeld);
  t.false(of({}, { lease: { held: false } }).leaseHeld);
  const recovering = { bytes: 1, all: 2 };
  t.deepEqual(of({}, { values: { watch: { recovering } } }).recovering, recovering);
  t.true(of({}, {}, { stopping: true }).stopping);
});

test('shards that lack copies are those of the status, as far as there are servers for more', (t) => {
  const joining = [copySet('s1', 's2 joining'), ...STATE.copySets.slice(1)];
  t.deepEqual(of({ copySets: joining }).lacking, [0]);
  t.deepEqual(of({ copySets: joining, servers: [server('s2', { draining: true })] }).lacking, []);
  const three = new Map([member('s1'), member('s2'), member('s3')]);
  t.deepEqual(of({ members: three }).lacking, [0, 1]);
  t.deepEqual(of({ members: three, policies: [policy('cache', 1), policy('durable', 2)] }).lacking, [2, 3]);
  // A cache that has had copies lacks none.
  t.deepEqual(of({ policies: [policy('cache', 1), policy('cache', 1)] }).lacking, []);
  const { shards } = clusterStatus({ ...STATE, members: three }, new Map(), ABOUT.ids, { term: 1, answeredBy: 's1' });
  const said = shards.filter(({ copies }) => copies !== undefined && copies.inSync < copies.wanted);
  t.deepEqual(
    said.map((one) => one.shard),
    [0, 1],
  );
});
