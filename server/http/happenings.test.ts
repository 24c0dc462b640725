import test from 'ava';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { Member, MetadataState, Server, Shard } from '../../core/metadata/state.js';
import type { ClusterStatus } from '../status.js';
import { changesOf, Happenings, turnsOf } from './happenings.js';

const shard = (n: number, owner?: string): Shard => ({ shard: n, ...(owner === undefined ? {} : { owner }) }) as Shard;
const state = (more: Partial<MetadataState>): MetadataState => ({ ...EMPTY, clusterId: 'c', ...more });
const members = (...all: readonly (readonly [id: string, incarnation: string])[]): ReadonlyMap<string, Member> =>
  new Map(all.map(([id, incarnation]) => [id, { id, incarnation } as Member]));

test('moves, lost owners and servers that come, go and start again are said', (t) => {
  const before = state({
    members: members(['s1', 'a'], ['s2', 'b']),
    servers: [{ id: 's1', draining: false } as Server, { id: 's2', draining: false } as Server],
    shards: [shard(0, 's1'), shard(1, 's2'), shard(2, 's2'), shard(3)],
  });
  t.deepEqual(changesOf(before, before), []);
  const after = state({
    members: members(['s1', 'z'], ['s3', 'c']),
    servers: [{ id: 's1', draining: true } as Server],
    shards: [shard(0), shard(1, 's1'), shard(2, 's1'), shard(3, 's3')],
    moves: [{ shard: 1, to: 's3', planned: 7 }],
  });
  t.deepEqual(changesOf(before, after), [
    's1 has started again',
    's3 has joined',
    's2 was removed from the cluster',
    's1 is being drained',
    'without an owner; s1 had shard 0',
    'a move to s3 has begun: shard 1',
  ]);
});

test('leaders and servers that stop answering are said', (t) => {
  const status = (leader: string | undefined, s2: string): ClusterStatus =>
    ({ leader, term: 5, members: [{ id: 's2', state: s2 }] }) as unknown as ClusterStatus;
  t.deepEqual(turnsOf(undefined, status('s1', 'up')), []);
  t.deepEqual(turnsOf(status('s2', 'up'), status(undefined, 'unreachable')), ['no server leads', 's2 does not answer']);
  t.deepEqual(turnsOf(status(undefined, 'unreachable'), status('s1', 'up')), [
    's1 leads, in term 5',
    's2 answers again',
  ]);
});

test('the last 200 are kept, under numbers that rise', (t) => {
  const all = new Happenings(() => 42);
  all.add(Array.from({ length: 250 }, (_, i) => `line ${i}`));
  const kept = all.after(0);
  t.is(kept.length, 200);
  t.deepEqual(kept.at(-1), { number: 250, atMs: 42, text: 'line 249' });
  t.deepEqual(all.after(250), []);
});
