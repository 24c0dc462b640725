import test from 'ava';
import { ShortLeases } from './short-leases.js';

/** Leases of a second: what was told, and what is waited for. */
function rig() {
  const told: (number | 'wait')[] = [];
  const rounds: object[] = [];
  const leases = new ShortLeases<object>({
    leaseMs: 1000,
    act: (action) => told.push(action.do === 'leases' ? action.ms : Number.NaN),
    wait: (round) => {
      told.push('wait');
      rounds.push(round);
    },
  });
  return { leases, rounds, took: () => told.splice(0) };
}

test('leases stay short for as long as one after a shard is given up, and the next one does not wait', (t) => {
  const { leases, rounds, took } = rig();
  const [a, b, c] = [{}, {}, {}];
  leases.begin(a);
  t.deepEqual(took(), [100, 'wait']);
  t.false(leases.short);
  t.deepEqual(leases.over(rounds[0]!), [a]);
  t.true(leases.short);
  leases.gone(a);
  t.deepEqual(took(), ['wait']);
  leases.begin(b);
  t.true(leases.short);
  t.deepEqual(leases.over(rounds[1]!), [b], 'it is there: leases stay short');
  t.true(leases.short);
  leases.gone(b);
  leases.begin(c);
  leases.gone(c);
  t.deepEqual(took(), ['wait', 'wait']);
  t.deepEqual(leases.over(rounds[2]!), [], 'of the one before');
  t.true(leases.short);
  t.deepEqual(leases.over(rounds[3]!), []);
  t.false(leases.short);
  t.deepEqual(took(), [1000]);
});

test('leases are long again at once when a move is called off, or its shard goes before they were short', (t) => {
  const { leases, rounds, took } = rig();
  const [a, b] = [{}, {}];
  leases.begin(a);
  leases.over(rounds[0]!);
  leases.done(a);
  t.deepEqual(took(), [100, 'wait', 1000]);
  leases.begin(b);
  leases.gone(b);
  t.deepEqual(took(), [100, 'wait', 1000]);
  t.deepEqual(leases.over(rounds[1]!), []);
  t.false(leases.short);
});
