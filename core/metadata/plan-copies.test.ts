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
});

test('many servers in zones of different size, of which hardly any may get a copy, are planned at once', (t) => {
  const members = keepers(64, (i) => (i < 32 ? 'a' : i < 48 ? 'b' : 'c'));
  const id = (i: number): string => members[i]?.id ?? '';
  let light = 0;
  const placed = Array.from({ length: 4096 }, (_, n) => {
    const inC = n % 16 !== 0 || (light += 1) <= 145 ? 48 + (n % 16) : 49 + (n % 15);
    return whole(n, id(inC), id(32 + (n % 16)), id(n % 32));
  });
  const planned = planCopies(placed, members, idsOf(members));
  t.is(planned.length, 47);
  t.true(planned.every(({ to }) => to === id(48)));
});
