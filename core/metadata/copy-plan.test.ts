import test from 'ava';
import { CopyLog } from '../../test/support/copy-log.js';
import { copyBounds, placeCopies, zoneOf } from './copy-plan.js';
import type { Member } from './state.js';

const member = (id: string, more: Partial<Member> = {}): Member => ({
  id,
  raftId: 1,
  incarnation: '01'.repeat(8),
  control: [`${id}.example:7400`],
  fabric: [],
  memoryBytes: 2 ** 30,
  ...more,
});
const ids = (members: readonly Member[]): string[] => members.map((m) => m.id);
const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

test('a zone is the label, else the host of the data plane, else that of the control port', (t) => {
  const host = { provider: 'shm', address: 'unix:/a', worker: 0, host: 'h1' } as const;
  t.is(zoneOf(member('s1', { zone: 'r1', fabric: [host] })), 'zone r1');
  t.is(zoneOf(member('s1', { fabric: [host] })), 'host h1');
  t.is(zoneOf(member('s1')), zoneOf(member('s2', { control: ['s1.example:7999'] })));
  t.not(zoneOf(member('s1')), zoneOf(member('s2')));
});

test('copies lie in different zones as long as there are any, then in those with the fewest', (t) => {
  const members = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map((id) => member(id, { zone: id[0]! }));
  for (const shard of range(50)) {
    const owner = members[shard % members.length]!;
    const chosen = [owner, ...placeCopies(shard, [owner], members, 4)];
    t.is(new Set(ids(chosen)).size, 5);
    t.is(new Set(chosen.slice(0, 3).map(zoneOf)).size, 3);
    t.is(chosen.filter((m) => m.zone === 'c').length, 1);
    t.is(chosen.filter((m) => m.zone === 'a').length, 2);
  }
});

test('a member more changes copies only for itself', (t) => {
  const members = range(5).map((i) => member(`s${i}`));
  const more = [...members, member('s5')];
  for (const shard of range(200)) {
    const [owner] = members;
    const before = ids(placeCopies(shard, [owner!], members, 2));
    const after = ids(placeCopies(shard, [owner!], more, 2));
    t.true(after.filter((id) => !before.includes(id)).every((id) => id === 's5'));
  }
});

test('a member with twice the memory has about twice the copies', (t) => {
  const members = [member('s1'), member('s2'), member('s3'), member('s4', { memoryBytes: 2 ** 31 })];
  const count = new Map<string, number>();
  for (const shard of range(2000))
    for (const { id } of placeCopies(shard, [], members, 1)) count.set(id, (count.get(id) ?? 0) + 1);
  t.true(Math.abs((count.get('s4') ?? 0) - 800) < 100, String(count.get('s4')));
});

test('members without room come last, and are taken rather than none', (t) => {
  const members = range(4).map((i) => member(`s${i}`));
  for (const shard of range(20)) {
    const hasRoom = (id: string): boolean => id === 's2';
    t.is(ids(placeCopies(shard, [], members, 4, hasRoom))[0], 's2');
    t.is(placeCopies(shard, [], members, 9, hasRoom).length, 4);
  }
});

test('bounds are parts of all copies that the policies ask for', (t) => {
  const { state } = new CopyLog({ replicas: 3 });
  t.deepEqual(new Set(copyBounds(state, [...state.members.values()]).values()), new Set([1]));
});
