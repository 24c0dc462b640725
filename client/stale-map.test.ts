/** When a client leaves a server whose map may be old. */
import test from 'ava';
import { StaleMap } from './stale-map.js';

function open(): { readonly map: StaleMap; readonly left: number[]; readonly clock: { now: number } } {
  const clock = { now: 0 };
  const left: number[] = [];
  const map = new StaleMap(
    () => left.push(clock.now),
    () => clock.now,
  );
  map.taken(true);
  return { map, left, clock };
}

test('a server is left when nobody answers for a shard, not right after its map came', (t) => {
  const { map, left, clock } = open();
  clock.now = 1999;
  map.unavailable();
  t.deepEqual(left, []);
  clock.now = 2000;
  for (let i = 0; i < 100; i++) map.unavailable();
  t.deepEqual(left, [2000]);
});

test('each server that is left in vain doubles the wait, up to a minute, until a newer map comes', (t) => {
  const { map, left, clock } = open();
  for (clock.now = 0; clock.now < 250_000; clock.now += 500) {
    const before = left.length;
    map.unavailable();
    // The next server has the same map.
    if (left.length > before) map.taken(false);
  }
  t.deepEqual(left, [2000, 6000, 14_000, 30_000, 62_000, 122_000, 182_000, 242_000]);
  map.taken(true);
  clock.now += 2000;
  map.unavailable();
  t.is(left.length, 9);
});

test('an owner that refuses what the map gives to it is told by a map that is two seconds old', (t) => {
  const { map, left, clock } = open();
  map.notOwner();
  for (clock.now = 2000; clock.now <= 6000; clock.now += 1000) map.notOwner();
  t.deepEqual(left, [2000, 4000, 6000]);
});
