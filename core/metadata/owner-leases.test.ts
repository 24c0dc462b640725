import test from 'ava';
import { GrantedLeases, heldMs, HeldLease } from './owner-leases.js';

const terms = { leaseMs: 1000, driftPpm: 10_000 };

test('a leader counts on a lease for longer than its owner does, by what two clocks may differ', (t) => {
  t.is(heldMs(terms), 1030);
  // The slowest owner's clock and the fastest leader's, each off by the bound.
  const trueMsAtOwner = terms.leaseMs / (1 - 0.01);
  const leaderMs = trueMsAtOwner * (1 + 0.01);
  t.true(heldMs(terms) > leaderMs);
});

test('a new leader waits one full lease before it takes anything from anybody', (t) => {
  const leases = new GrantedLeases(terms, 5000);
  t.false(leases.over('s1', 5000));
  t.false(leases.over('s1', 6029));
  t.true(leases.over('s1', 6030));
  t.false(leases.alive('s1', 5000));
});

test('a grant counts from when it was confirmed, and the next one adds to it', (t) => {
  const leases = new GrantedLeases(terms, 0);
  t.true(leases.grant('s1', 2000));
  t.true(leases.alive('s1', 3000));
  t.false(leases.over('s1', 3029));
  t.true(leases.over('s1', 3030));
  t.true(leases.over('s2', 2000));
  t.true(leases.grant('s1', 3020));
  t.false(leases.over('s1', 4000));
});

test('an owner that is to lose its shards is granted nothing until that is settled', (t) => {
  const leases = new GrantedLeases(terms, 0);
  leases.withhold('s1');
  t.false(leases.grant('s1', 100));
  t.false(leases.alive('s1', 100));
  leases.release('s1');
  t.true(leases.grant('s1', 100));
});

test('an owner counts from when it asked, and a late answer to an early question takes nothing back', (t) => {
  const lease = new HeldLease();
  t.false(lease.held(0));
  lease.granted(100, 1000);
  t.true(lease.held(1099));
  t.false(lease.held(1100));
  lease.granted(50, 1000);
  t.is(lease.untilMs, 1100);
});

test('what an owner gives back need not be waited for, also when an earlier leader granted it', (t) => {
  const leases = new GrantedLeases(terms, 0);
  leases.end('s1', 10);
  t.true(leases.over('s1', 10));
  t.false(leases.alive('s1', 10));
  t.true(leases.grant('s1', 20));
  t.false(leases.over('s1', 900));
});

test('a server that has started again is heard of by its join, whatever was known of its earlier start', (t) => {
  const HELD = heldMs(terms);
  const started = (incarnation: string) => [
    { id: 's1', incarnation },
    { id: 's2', incarnation: '01' },
  ];
  for (const ended of [false, true]) {
    const leases = new GrantedLeases(terms, 0);
    leases.observe(started('01'), 0);
    const hear = (from: number, to: number): void => {
      for (let at = from; at <= to; at += 10) leases.confirmed(at);
    };
    hear(0, HELD);
    if (ended) leases.end('s1', HELD);
    t.true(leases.dead('s1', HELD));
    hear(HELD, 5000);
    leases.observe(started('02'), 5000);
    t.false(leases.dead('s1', 5000));
    t.true(leases.dead('s2', 5000));
    t.true(leases.lookAt('s1', 5000)! > 5000);
    hear(5000, 5000 + HELD);
    leases.observe(started('02'), 5000 + HELD);
    t.true(leases.dead('s1', 5000 + HELD + 50));
  }
});

test('a new leader has heard of nobody by what had been applied before it came to lead', (t) => {
  const leases = new GrantedLeases(terms, 0);
  leases.observe([{ id: 's1', incarnation: '01' }], 500);
  for (let at = 0; at <= 1050; at += 50) leases.confirmed(at);
  t.true(leases.dead('s1', 1050));
});
