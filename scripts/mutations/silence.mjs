/**
 * What must not be missing where the leader tells dead owners from those that it could not hear, each with the test
 * that notices.
 */
const silence = (title) => ({ test: 'core/metadata/silence.test.ts', title });
const leases = (title) => ({ test: 'test/metadata/leases.test.ts', title });

export const mutations = [
  {
    name: 'silence: no grace after a deaf time',
    file: 'core/metadata/silence.ts',
    find: 'if (gapMs < this.#leaseMs) return undefined;',
    replace: 'return undefined;',
    caughtBy: silence(
      'after a deaf time an owner has as long again to come back, two seconds at the most, and a lease; a dead one has no more',
    ),
  },
  {
    name: 'leases: no quorum is needed to call an owner silent',
    file: 'server/metadata/lease-grantor.ts',
    find: 'this.current?.leases.asked(id, nowMs());',
    replace: 'this.current?.leases.asked(id, nowMs()); this.current?.leases.confirmed(nowMs());',
    caughtBy: leases(
      'an owner is heard when its question comes, and its silence counts only as far as a quorum has confirmed the leader',
    ),
  },
];
