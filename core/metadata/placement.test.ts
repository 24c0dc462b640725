import test from 'ava';
import { place, raftIdOf, tableMemory } from './placement.js';
import type { Member, Shard } from './state.js';

const member = (id: string): Member => ({ id, raftId: 1, incarnation: '', control: [], fabric: [], memoryBytes: 1 });
const members = (n: number): Map<string, Member> =>
  new Map(Array.from({ length: n }, (_, i) => [`s${i + 1}`, member(`s${i + 1}`)]));
const free = (n: number): Shard[] =>
  Array.from({ length: n }, (_, shard) => ({ shard, worker: 0, epoch: 0, layoutEpoch: 0, buckets: 0, regions: [] }));

test('no member has more than its even share, rounded up', (t) => {
  for (const [shards, count] of [
    [1, 1],
    [4, 1],
    [12, 3],
    [13, 3],
    [64, 5],
    [3, 5],
    [1024, 7],
  ] as const) {
    const load = new Map<string, number>();
    const placed = place({ shards: free(shards), members: members(count) });
    for (const id of placed.values()) load.set(id, (load.get(id) ?? 0) + 1);
    t.is(placed.size, shards);
    t.true(Math.max(...load.values()) <= Math.ceil(shards / count), `${shards} on ${count}`);
  }
});

test('the answer does not depend on the order in which members are known', (t) => {
  const forward = members(5);
  const shards = free(40);
  const backward = new Map([...forward].reverse());
  t.deepEqual(place({ shards, members: backward }), place({ shards, members: forward }));
});

test('owned shards are left where they are and count as load', (t) => {
  const shards = free(6).map((s) => (s.shard < 3 ? { ...s, owner: 's1' } : s));
  const placed = place({ shards, members: members(2) });
  t.deepEqual([...placed.keys()], [3, 4, 5]);
  t.deepEqual(new Set(placed.values()), new Set(['s2']));
});

test('nobody gets a shard when there is no member', (t) => {
  t.is(place({ shards: free(4), members: new Map() }).size, 0);
});

test('raft numbers are positive safe integers and differ for the ids that people choose', (t) => {
  const ids = new Set<string>();
  for (const name of ['s', 'node-', 'cache', 'farkv-server-']) for (let i = 0; i < 2000; i++) ids.add(`${name}${i}`);
  const numbers = [...ids].map(raftIdOf);
  t.is(new Set(numbers).size, ids.size);
  t.true(numbers.every((n) => Number.isSafeInteger(n) && n > 0));
});

test('a table may have the memory of all servers by the number of shards, in whole bytes', (t) => {
  const of = (shards: number, ...bytes: readonly number[]): number =>
    tableMemory({
      shards: free(shards),
      members: new Map(bytes.map((memoryBytes, i) => [`s${i}`, { ...member(`s${i}`), memoryBytes }])),
    });
  t.is(of(4, 100, 200, 0), 75, 'a witness brings none');
  t.is(of(7, 100), 14);
  t.is(of(0, 100), 100);
  t.is(of(2), 0);
  t.is(of(1, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
});
