import test from 'ava';
import { planCopies, type Placed, type ZonedKeeper } from './plan-copies.js';

const keepers = (count: number, zone = (i: number): string => `z${i}`): ZonedKeeper[] =>
  Array.from({ length: count }, (_, i) => ({ id: `s${i + 1}`, memoryBytes: 1 << 30, zone: zone(i) }));
/** The last one is the owner. */
const whole = (shard: number, ...at: readonly string[]): Placed => ({
  ...{ shard, owner: at.at(-1), wanted: at.length, at, isWhole: true },
});
const idsOf = (of: readonly ZonedKeeper[]): string[] => of.map(({ id }) => id);

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
