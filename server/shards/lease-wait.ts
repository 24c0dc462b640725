/**
 * How long a restarted server must wait before it serves: until no client can still hold a lease of the last run.
 *
 * A lease counts from when the client sent its request, which was before the last run ended, and lasts leaseMs of the
 * client's clock at most. The last run had ended when its lock was taken over. So the wait counts from then; it is
 * longer than the lease by what the two clocks may differ in rate, each by driftPpm from true time, and by one tick of
 * the coarsest clock.
 */
import type { MetadataState } from '../../core/metadata/state.js';

export interface LastRun {
  readonly leaseMs: number;
  readonly driftPpm: number;
}

const TICK_MS = 10;

/**
 * The longest lease of a client: what is granted to clients, and not beyond the owner's own lease from the leader, which
 * was asked for before the run ended (core/metadata/owner-leases.ts; native/serve/lease.c).
 */
export function longestLeaseMs(leaseMs: number, { ownerLease }: Pick<MetadataState, 'ownerLease'>): number {
  if (ownerLease.leaseMs <= 0) throw new RangeError('the cluster has no terms of leases yet');
  return Math.min(leaseMs, ownerLease.leaseMs);
}

export function leaseWaitMs({ leaseMs, driftPpm }: LastRun): number {
  return Math.ceil((leaseMs * (1_000_000 + 2 * driftPpm)) / 1_000_000) + TICK_MS;
}

export interface Clock {
  /** CLOCK_BOOTTIME: goes on while the machine is suspended. */
  readonly bootTimeNs: () => bigint;
  readonly sleep: (ms: number) => Promise<void>;
}

/** Resolves when the leases of the last run are over. `lockedNs`: when this run got the lock. */
export async function waitForLeases(lastRun: LastRun | undefined, lockedNs: bigint, clock: Clock): Promise<void> {
  if (lastRun === undefined) return;
  const until = lockedNs + BigInt(leaseWaitMs(lastRun)) * 1_000_000n;
  for (;;) {
    const left = until - clock.bootTimeNs();
    if (left <= 0n) return;
    // Timers run on a clock that may stand still or be late; only bootTimeNs decides.
    await clock.sleep(Math.ceil(Number(left) / 1e6));
  }
}
