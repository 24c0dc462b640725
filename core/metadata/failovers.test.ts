import test from 'ava';
import { failoverLines } from '../../server/move-lines.js';
import { Failovers } from './failovers.js';
import type { Copy, Member, MetadataState, Shard } from './state.js';

interface World {
  readonly owner?: string;
  readonly epoch: number;
  readonly starts?: Record<string, string>;
  readonly copies?: readonly string[];
  readonly handed?: number;
}

function state({ owner, epoch, starts = {}, copies = [], handed }: World): MetadataState {
  const shard = { shard: 0, epoch, ...(owner === undefined ? {} : { owner }) } as Shard;
  const members = ['s1', 's2', 's3'].map((id): [string, Member] => [
    id,
    { id, incarnation: starts[id] ?? 'a' } as Member,
  ]);
  const set = {
    config: epoch,
    ...(handed === undefined ? {} : { handed }),
    copies: copies.map((name) => {
      const [member = '', start = 'a', state = 'in-sync'] = name.split(' ');
      return { member, start, state, id: `copy of ${member}` } as Copy;
    }),
  };
  return { shards: [shard], members: new Map(members), copySets: [set] } as unknown as MetadataState;
}

function seen(...worlds: World[]): ReturnType<Failovers['all']> {
  const failovers = new Failovers();
  worlds.forEach((world, i) => failovers.observe(state(world), i * 5000));
  return failovers.all(worlds.length * 5000);
}

const both = ['s1', 's2'];

test('an owner that was silent, and one that had started again, are told apart', (t) => {
  const silent = seen({ owner: 's1', epoch: 1, copies: both }, { owner: 's2', epoch: 2, copies: both });
  t.deepEqual(silent, [{ from: 's1', to: 's2', shards: 1, why: 'silent', values: 'all', agoMs: 5000 }]);
  t.deepEqual(failoverLines({ failovers: silent }), [
    'last failover: 1 shard from s1 to s2 5 s ago, since s1 did not answer: with all values, from a copy',
  ]);
  const starts = { s1: 'b' };
  const [restarted] = seen(
    { owner: 's1', epoch: 1, copies: both },
    { epoch: 2, starts, copies: ['s2'] },
    { owner: 's2', epoch: 3, starts, copies: ['s2'] },
  );
  t.is(restarted?.why, 'restarted');
  t.is(restarted?.values, 'all');
});

test('a handover is no failover, and a shard that came without a copy is told as empty', (t) => {
  const before = { owner: 's1', epoch: 1, copies: both };
  t.deepEqual(seen(before, { owner: 's2', epoch: 2, copies: both, handed: 2 }), []);
  t.deepEqual(seen(before, before), []);
  const empty = seen({ ...before, copies: ['s1'] }, { owner: 's3', epoch: 2 });
  t.is(empty[0]?.values, 'none');
  t.regex(failoverLines({ failovers: empty })[0]!, /empty, since s3 had no copy$/);
});

test('a copy of an earlier start is none, and one that was still joining had some values', (t) => {
  const before = { owner: 's1', epoch: 1 };
  const again = { s2: 'b' };
  const old = { ...before, copies: ['s1', 's2 a'], starts: again };
  t.is(seen(old, { owner: 's2', epoch: 2, copies: ['s2 b'], starts: again })[0]?.values, 'none');
  const joining = { ...before, copies: ['s1', 's2 a joining'] };
  const chosen = seen(joining, { owner: 's2', epoch: 2, copies: ['s2'] });
  t.is(chosen[0]?.values, 'some');
  t.regex(failoverLines({ failovers: chosen })[0]!, /: with what the copy at s2 had$/);
});

test('what is past is no failover, and who was the owner then is known', (t) => {
  const failovers = new Failovers();
  const starts = { s1: 'b' };
  failovers.observe(state({ owner: 's1', epoch: 1, copies: both }), 0, true);
  failovers.observe(state({ owner: 's2', epoch: 2, copies: both }), 0, true);
  failovers.observe(state({ owner: 's1', epoch: 3, copies: both }), 0, true);
  failovers.observe(state({ epoch: 4, starts, copies: ['s2'] }), 0, true);
  t.is(failovers.shards, 0);
  failovers.observe(state({ owner: 's2', epoch: 5, starts, copies: ['s2'] }), 0);
  t.is(failovers.shards, 1);
  t.like(failovers.all(0), [{ from: 's1', to: 's2', why: 'restarted', values: 'all' }]);
});
