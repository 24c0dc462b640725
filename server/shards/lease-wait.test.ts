import test from 'ava';
import { leaseWaitMs, longestLeaseMs, waitForLeases } from './lease-wait.js';

test('the wait is longer than the lease by what two clocks may differ', (t) => {
  t.is(leaseWaitMs({ leaseMs: 2000, driftPpm: 0 }), 2010);
  t.is(leaseWaitMs({ leaseMs: 2000, driftPpm: 1000 }), 2014);
  t.is(leaseWaitMs({ leaseMs: 60_000, driftPpm: 100_000 }), 72_010);
});

test('no lease of a client is longer than what it is granted, nor than what its owner has from the leader', (t) => {
  t.is(longestLeaseMs(2000, { ownerLease: { leaseMs: 800, driftPpm: 0 } }), 800);
  t.is(longestLeaseMs(2000, { ownerLease: { leaseMs: 60_000, driftPpm: 0 } }), 2000);
  t.throws(() => longestLeaseMs(2000, { ownerLease: { leaseMs: 0, driftPpm: 0 } }));
});

test('without a last run nothing is waited for', async (t) => {
  await waitForLeases(undefined, 0n, { bootTimeNs: () => t.fail(), sleep: () => t.fail() });
  t.pass();
});

test('only the clock decides, and timers that fire early are not believed', async (t) => {
  let now = 500_000_000n;
  const slept: number[] = [];
  await waitForLeases({ leaseMs: 1000, driftPpm: 0 }, 100_000_000n, {
    bootTimeNs: () => now,
    sleep: (ms) => {
      slept.push(ms);
      // Each timer fires after half of its time.
      now += (BigInt(ms) * 1_000_000n) / 2n + 1n;
      return Promise.resolve();
    },
  });
  t.is(slept[0], 610);
  t.true(slept.length > 3);
  t.true(now >= 100_000_000n + 1_010_000_000n);
});

test('time that passed while the machine was suspended counts', async (t) => {
  let now = 0n;
  let sleeps = 0;
  await waitForLeases({ leaseMs: 60_000, driftPpm: 0 }, 0n, {
    bootTimeNs: () => now,
    sleep: () => {
      sleeps += 1;
      now = 100_000_000_000n;
      return Promise.resolve();
    },
  });
  t.is(sleeps, 1);
});
