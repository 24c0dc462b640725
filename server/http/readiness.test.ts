import test from 'ava';
import type { ClusterStatus } from '../status.js';
import { notReady, Readiness, roleOf } from './readiness.js';

const node = (more: object): object => ({ id: 's1', node: { id: 's1', leaseHeld: true, ...more } });
const status = (more: object): ClusterStatus =>
  ({
    leader: 's2',
    members: [node({})],
    shards: [
      { shard: 0, owner: 's1', state: 'serving' },
      { shard: 1, owner: 's2', state: 'closed' },
    ],
    ...more,
  }) as unknown as ClusterStatus;

test('a server is ready when it has a lease, knows a leader and serves what it owns', (t) => {
  t.is(notReady(status({}), 's1'), undefined);
  t.is(notReady(status({ members: [] }), 's1'), 'this server is starting');
  t.is(notReady(status({ members: [node({ stopping: true })] }), 's1'), 'this server is stopping');
  t.regex(notReady(status({ leader: undefined }), 's1') ?? '', /no leader/);
  for (const leaseHeld of [false, undefined])
    t.regex(notReady(status({ members: [node({ leaseHeld })] }), 's1') ?? '', /no lease/);
  const values = { recovering: { bytes: 1, all: 2 } };
  t.regex(notReady(status({ members: [node({ values })] }), 's1') ?? '', /1 of 2 bytes/);
  const shard = (n: number, state: string): object => ({ shard: n, owner: 's1', state });
  t.is(notReady(status({ shards: [shard(3, 'open')] }), 's1'), 'shard 3 of this server is not served');
  const both = [shard(3, 'open'), shard(4, 'closed'), shard(5, 'serving')];
  t.is(notReady(status({ shards: both }), 's1'), 'shards 3, 4 of this server are not served');
});

test('a start is over when every shard has the copies that it is to have, or after a minute; later a lack is no matter', (t) => {
  const of = (inSync: number): ClusterStatus =>
    status({
      members: [node({}), { id: 's2' }, { id: 's3', witness: true }],
      shards: [{ shard: 7, owner: 's2', state: 'serving', copies: { inSync, wanted: 3 } }],
    });
  let now = 0;
  const begun = new Readiness('s1', () => now);
  t.regex(begun.why(of(1)) ?? '', /shard 7 has fewer copies/);
  t.is(begun.why(of(2)), undefined, 'two servers keep values');
  t.is(begun.why(of(1)), undefined);
  t.is(begun.why(status({ members: [] })), 'this server is starting');
  const lonely = new Readiness('s1', () => now);
  t.regex(lonely.why(of(1)) ?? '', /another server should not be stopped/);
  now = 59_999;
  t.regex(lonely.why(of(1)) ?? '', /fewer copies/);
  now = 60_000;
  t.is(lonely.why(of(1)), undefined);
});

test('the role in the metadata group is named', (t) => {
  const seen = (role: string, leader?: string): ClusterStatus =>
    ({
      leader,
      members: [
        { id: 's1', role, node: {} },
        { id: 's2', role: 'voter' },
      ],
    }) as unknown as ClusterStatus;
  t.is(roleOf(seen('voter', 's1'), 's1'), 'leader');
  t.is(roleOf(seen('voter', 's2'), 's1'), 'follower');
  t.is(roleOf(seen('voter'), 's1'), 'candidate');
  t.is(roleOf(seen('learner', 's2'), 's1'), 'learner');
  t.is(roleOf(seen('voter', 's1'), 's2'), 'starting');
});
