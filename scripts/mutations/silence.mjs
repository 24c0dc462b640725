/**
 * What must not be missing where the leader tells dead owners from those that it could not hear, each with the test
 * that notices.
 */
const silence = (title) => ({ test: 'core/metadata/silence.test.ts', title });
const leases = (title) => ({ test: 'test/metadata/leases.test.ts', title });
const owners = (title) => ({ test: 'core/metadata/owner-leases.test.ts', title });
const policy = (title) => ({ test: 'core/metadata/leader-policy.test.ts', title });

const TOGETHER = 'nothing is taken from anybody when the leader and one more stand still, for however long';

export const mutations = [
  {
    name: 'silence: whoever has no lease is dead',
    file: 'core/metadata/owner-leases.ts',
    find: '(this.#ended.has(id) || this.#silences.silent(id))',
    replace: 'true',
    caughtBy: silence(TOGETHER),
  },
  {
    name: 'silence: a stall counts whole',
    file: 'core/metadata/silence.ts',
    find: '? Math.min(gapMs, this.#capMs) : 0',
    replace: '? gapMs : 0',
    caughtBy: silence(TOGETHER),
  },
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
    name: 'silence: every deaf time gives a dead owner its grace again',
    file: 'core/metadata/silence.ts',
    find: 'if (silence.excused) continue;',
    replace: '',
    caughtBy: silence('deaf times that follow each other give a dead owner one grace only'),
  },
  {
    name: 'silence: those that have not asked in this term get no grace',
    file: 'core/metadata/silence.ts',
    find: '[this.#unheard, ...this.#of.values()]',
    replace: 'this.#of.values()',
    caughtBy: silence('a new leader that stands still gives the same grace as one that knew its owners'),
  },
  {
    name: 'silence: the leader does not ask a quorum by itself while an owner is silent',
    file: 'core/metadata/silence.ts',
    find: 'Math.min(missingMs, this.#capMs / 2)',
    replace: 'missingMs',
    caughtBy: silence('the leader looks again later than now, and at least every half CAP while an owner is silent'),
  },
  {
    name: 'silence: an owner that ends is waited for',
    file: 'core/metadata/owner-leases.ts',
    find: '(this.#ended.has(id) || this.#silences.silent(id))',
    replace: 'this.#silences.silent(id)',
    caughtBy: silence('an owner that says that it ends is dead at once'),
  },
  {
    name: 'leases: an owner is heard only when a quorum has answered its question',
    file: 'server/metadata/lease-grantor.ts',
    find: 'this.current?.leases.asked(id, nowMs());',
    replace: 'void 0;',
    caughtBy: leases(
      'an owner is heard when its question comes, and its silence counts only as far as a quorum has confirmed the leader',
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
  {
    name: 'leader: a quorum is asked again and again while it does not answer',
    file: 'server/metadata/leader-duties.ts',
    find: ' && !this.#listening) this.#next',
    replace: ') this.#next',
    caughtBy: leases(
      'the leader asks a quorum before it takes the shards of an owner that may be dead, once, for as long as no quorum answers',
    ),
  },
  {
    name: 'leader: a move is called off because its goal could not be heard',
    file: 'core/metadata/leader-policy.ts',
    find: 'if (!leases.dead(m.to, nowMs) && !getsNone',
    replace: 'if (!leases.over(m.to, nowMs) && !getsNone',
    caughtBy: policy(
      'a drained server gives its shards away a few at a time, and a move whose goal is dead is called off',
    ),
  },
  {
    name: 'leader: nobody looks whether the goal of a move is dead',
    file: 'core/metadata/leader-policy.ts',
    find: 'for (const m of state.moves) owners.add(m.to);',
    replace: '',
    caughtBy: policy('the leader looks in time for a move to a server that has no shards yet'),
  },
  {
    name: 'leader: a join is no sign of life',
    file: 'server/metadata/leader-duties.ts',
    find: 'current?.leases.observe(s.members.values(), nowMs());',
    replace: '',
    caughtBy: leases(
      'the leader has heard of a server that starts again by its join, though it has not asked for a lease yet',
    ),
  },
  {
    name: 'leader: what its earlier start was silent counts against a server that starts again',
    file: 'core/metadata/owner-leases.ts',
    find: 'this.#ended.delete(id);\n      this.#silences.asked(id, nowMs);',
    replace: 'this.#ended.delete(id);',
    caughtBy: owners(
      'a server that has started again is heard of by its join, whatever was known of its earlier start',
    ),
  },
  {
    name: 'leader: a server that ended and starts again is still at its end',
    file: 'core/metadata/owner-leases.ts',
    find: 'this.#ended.delete(id);\n      this.#silences.asked(id, nowMs);',
    replace: 'this.#silences.asked(id, nowMs);',
    caughtBy: owners(
      'a server that has started again is heard of by its join, whatever was known of its earlier start',
    ),
  },
];
