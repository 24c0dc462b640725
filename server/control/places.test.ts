import test from 'ava';
import { RecentAddresses, sourceOf } from './addresses.js';
import { Places, type Visitor } from './places.js';

/** Places, and the names of those that lost theirs. */
function places(strangers: number, known: number, isKnown = (source: string): boolean => source === 'home') {
  const evicted: string[] = [];
  const made = new Places({ strangers, known, isKnown });
  const enter = (name: string, source: string): Visitor => {
    const visitor = { source, evict: () => void evicted.push(name) };
    made.enter(visitor);
    return visitor;
  };
  return { made, evicted, enter };
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
