import test from 'ava';
import { seeded } from '../../test/support/random.js';
import { planCopies, type Placed, type ZonedKeeper } from './plan-copies.js';
import { parts, planRebalance, type PlannedMove } from './plan.js';

const keepers = (count: number, zone = (i: number): string => `z${i}`): ZonedKeeper[] =>
  Array.from({ length: count }, (_, i) => ({ id: `s${i + 1}`, memoryBytes: 1 << 30, zone: zone(i) }));
const whole = (shard: number, ...at: readonly string[]): Placed => ({
  ...{ shard, owner: at[0], wanted: at.length, at, isWhole: true },
});
const idsOf = (of: readonly ZonedKeeper[]): string[] => of.map(({ id }) => id);

/** Shards as the metadata's leader moves them: a new owner gets a copy, and the backup with most above its part goes. */
class Cluster {
  readonly at: string[][];
  /** What was copied. */
  copied = 0;

  constructor(
    readonly members: readonly ZonedKeeper[],
    at: readonly (readonly string[])[],
  ) {
    this.at = at.map((one) => [...one]);
  }

  get copies(): Map<string, number> {
    return new Map(this.members.map(({ id }) => [id, this.at.flat().filter((x) => x === id).length]));
  }

  owned(id: string): number {
    return this.at.filter(([owner]) => owner === id).length;
  }

  get bounds(): Map<string, number> {
    return new Map([...parts(this.at.flat().length, this.members)].map(([id, n]) => [id, Math.ceil(n - 1e-6)]));
  }

  #plan(): PlannedMove[] {
    const shards = this.at.map(([owner = ''], shard) => ({ shard, owner }));
    const copySets = this.at.map((at) => ({ copies: at.map((member) => ({ member, state: 'in-sync' }) as const) }));
    const owners = planRebalance({ shards, moves: [], copySets }, this.members);
    if (owners.length > 0) return owners;
    return planCopies(
      this.at.map((at, shard) => whole(shard, ...at)),
      this.members,
      idsOf(this.members),
    );
  }

  #move({ shard, to }: PlannedMove): void {
    const before = this.at[shard] ?? [];
    const at = [to, ...before.filter((id) => id !== to)];
    this.at[shard] = at;
    if (at.length === before.length) return;
    this.copied++;
    const crowd = (id: string): number => (this.copies.get(id) ?? 0) - (this.bounds.get(id) ?? 0);
    const most = Math.max(...before.map(crowd));
    const gone = before.findLast((id) => crowd(id) === most);
    this.at[shard] = at.filter((id) => id !== gone);
  }

  /** As `farkv shard rebalance` does. */
  spread(): void {
    const forCopies = new Set<string>();
    for (;;) {
      const plan = this.#plan().filter(
        ({ shard, to, gives }) => gives === undefined || !forCopies.has(`${shard} ${to}`),
      );
      if (plan.length === 0) return;
      for (const move of plan) {
        if (move.gives !== undefined) forCopies.add(`${move.shard} ${move.to}`);
        this.#move(move);
      }
    }
  }
}

test('a server that joins gets its part of the copies too, and what is above a part goes there once', (t) => {
  const three = ['s1', 's2', 's3'];
  const at = Array.from({ length: 12 }, (_, i) => [three[i % 3] ?? '', three[(i + 1) % 3] ?? '']);
  const cluster = new Cluster(keepers(4), at);
  cluster.spread();
  t.deepEqual([...cluster.copies.values()], [6, 6, 6, 6]);
  for (const { id } of cluster.members) t.is(cluster.owned(id), 3);
  t.is(cluster.copied, 6, 'nothing else was copied');
});

test('random places: in the end nobody has more copies than its part, and no more owners than before', (t) => {
  const random = seeded(t, import.meta.filename);
  for (let i = 0; i < 100; i++) {
    const members = keepers(3 + random.below(4));
    const replicas = 2 + random.below(2);
    const at = Array.from({ length: 1 + random.below(40) }, () => {
      const open = idsOf(members).slice(0, Math.max(replicas, 1 + random.below(members.length)));
      return Array.from({ length: replicas }, () => open.splice(random.below(open.length), 1)[0] ?? '');
    });
    const cluster = new Cluster(members, at);
    cluster.spread();
    for (const { id } of members)
      t.true((cluster.copies.get(id) ?? 0) <= (cluster.bounds.get(id) ?? 0), JSON.stringify(at));
    const owned = members.map(({ id }) => cluster.owned(id));
    t.true(Math.max(...owned) - Math.min(...owned) <= 1, String(owned));
    t.true(cluster.at.every((one) => new Set(one).size === replicas));
  }
});

test('copies stay apart: no zone gets a second one of a shard', (t) => {
  // s1 and s4 in one zone.
  const members = keepers(4, (i) => `z${i % 3}`);
  const placed = [whole(0, 's2', 's1'), whole(1, 's3', 's1'), whole(2, 's1', 's2'), whole(3, 's1', 's3')];
  const all = idsOf(members);
  for (const { shard, to, gives } of planCopies(placed, members, all)) {
    const at = [...(placed[shard]?.at ?? []).filter((id) => id !== gives), to];
    const zones = at.map((id) => members.find((m) => m.id === id)?.zone);
    t.is(new Set(zones).size, at.length, `shard ${shard}: ${at.join()}`);
  }
  // What s1 has too much may go to s4 alone, beside it.
  t.deepEqual(
    planCopies(placed, members, all).map(({ to, gives }) => [to, gives]),
    [
      ['s4', 's1'],
      ['s4', 's1'],
    ],
  );
});

test('shards that are not whole, and servers that may get none, are left alone', (t) => {
  const members = keepers(4);
  const placed = Array.from({ length: 8 }, (_, i) => whole(i, i % 2 === 0 ? 's1' : 's2', i % 2 === 0 ? 's2' : 's1'));
  t.true(planCopies(placed, members, idsOf(members)).length > 0);
  t.deepEqual(
    planCopies(
      placed.map((one) => ({ ...one, isWhole: false })),
      members,
      idsOf(members),
    ),
    [],
  );
  t.deepEqual(planCopies(placed, members, ['s1', 's2']), []);
  t.is(planCopies(placed, members, idsOf(members), 1).length, 1);
});
