import test from 'ava';
import { RecentAddresses, sourceOf } from './addresses.js';
import { Places, type Visitor } from './places.js';

/** Places, and the names of those that lost theirs. */
function places(strangers: number, known: number, waitMs?: number) {
  const isKnown = (source: string): boolean => source === 'home';
  const evicted: string[] = [];
  const clock = { ms: 0 };
  const made = new Places({
    strangers,
    known,
    isKnown,
    now: () => clock.ms,
    ...(waitMs === undefined ? {} : { waitMs }),
  });
  const enter = (name: string, source: string): Visitor => {
    const visitor = { source, evict: () => void evicted.push(name) };
    made.enter(visitor);
    return visitor;
  };
  return { made, evicted, enter, clock };
}

test('a newcomer always has a place: the address with the most loses its oldest', (t) => {
  const { made, evicted, enter } = places(4, 1);
  enter('a1', 'a');
  enter('b1', 'b');
  enter('b2', 'b');
  enter('b3', 'b');
  enter('c1', 'c');
  enter('b4', 'b');
  t.deepEqual(evicted, ['b1', 'b2']);
  t.is(made.taken, 4);
  t.is(made.evicted, 2);
});

test('who lets a server wait goes before those of a full address, whatever address it has', (t) => {
  const { made, evicted, enter, clock } = places(32, 1, 1000);
  // From 30 addresses, one each: they send nothing.
  for (let i = 0; i < 30; i++) enter(`silent ${i}`, `address ${i}`);
  clock.ms = 2000;
  for (let i = 0; i < 26; i++) enter(`client ${i}`, 'office');
  t.deepEqual(
    evicted,
    Array.from({ length: 24 }, (_, i) => `silent ${i}`),
  );
  t.is(made.taken, 32);
});

test('a connection that waits for its turn is not late, and one that has sent something begins to wait anew', (t) => {
  const { made, evicted, enter, clock } = places(32, 1, 1000);
  const all = Array.from({ length: 32 }, (_, i) => enter(`${i}`, `address ${i}`));
  made.heard(all[0]!, true);
  clock.ms = 900;
  made.heard(all[1]!, false);
  clock.ms = 1100;
  enter('a', 'a');
  t.deepEqual(evicted, ['2']);
  clock.ms = 1950;
  for (let i = 0; i < 30; i++) enter(`b${i}`, `b${i}`);
  t.false(evicted.includes('0'));
  t.is(evicted.at(-1), '1');
});

test('an address has a share of a full room, and who came after it does not cost it its place', (t) => {
  const { evicted, enter } = places(32, 1, 1000);
  enter('client 1', 'office');
  enter('client 2', 'office');
  for (let i = 0; i < 29; i++) enter(`flood ${i}`, 'attacker');
  enter('client 3', 'office');
  for (let i = 29; i < 200; i++) enter(`flood ${i}`, 'attacker');
  t.true(evicted.length > 100 && evicted.every((name) => name.startsWith('flood')));
  const scattered = places(32, 1, 1000);
  for (let i = 0; i < 30; i++) scattered.enter(`flood ${i}`, `address ${i}`);
  scattered.enter('client 1', 'office');
  scattered.enter('client 2', 'office');
  for (let i = 30; i < 50; i++) scattered.enter(`flood ${i}`, `address ${i}`);
  t.deepEqual(
    scattered.evicted,
    Array.from({ length: 20 }, (_, i) => `flood ${i}`),
  );
});

test('strangers never cost a known address its place', (t) => {
  const { evicted, enter } = places(2, 2);
  enter('home1', 'home');
  enter('home2', 'home');
  for (let i = 0; i < 10; i++) enter(`x${i}`, `x${i % 3}`);
  t.false(evicted.some((name) => name.startsWith('home')));
  enter('home3', 'home');
  t.is(evicted.at(-1), 'home1');
});

test('who has left, or has shown who it is, is not evicted', (t) => {
  const { made, evicted, enter } = places(2, 1);
  const first = enter('a1', 'a');
  enter('a2', 'a');
  made.leave(first);
  made.leave(first);
  enter('a3', 'a');
  t.deepEqual(evicted, []);
  enter('a4', 'a');
  t.deepEqual(evicted, ['a2']);
});

test('addresses of one IPv6 network are one, and an IPv4 address is itself', (t) => {
  t.is(sourceOf('::ffff:10.0.0.1'), '10.0.0.1');
  t.is(sourceOf('10.0.0.1'), '10.0.0.1');
  t.is(sourceOf('2001:db8:0:7::1'), sourceOf('2001:db8:0:7:ffff::2'));
  t.not(sourceOf('2001:db8:0:7::1'), sourceOf('2001:db8:0:8::1'));
  t.is(sourceOf('fe80::1%eth0'), 'fe80:0:0:0::/64');
  t.is(sourceOf('::1'), '0:0:0:0::/64');
  t.is(sourceOf(undefined), '');
});

test('the addresses that came last are remembered', (t) => {
  const recent = new RecentAddresses(2);
  for (const source of ['a', 'b', 'a', 'c']) recent.add(source);
  t.deepEqual(
    ['a', 'b', 'c'].map((source) => recent.has(source)),
    [true, false, true],
  );
});
