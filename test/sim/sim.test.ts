/**
 * A fixed set of seeds for every run of the tests; sim.long.test.ts has more, and `npm run sim` has no end of others.
 * The set covers each kind of fault, which is asserted: a simulator whose faults do not happen finds nothing.
 */
import test from 'ava';
import { add, histories } from './histories.js';
import { simulate } from './simulate.js';

const total: Record<string, number> = {};

for (const [first, last] of [
  [1, 10],
  [11, 20],
] as const) {
  test.serial(`nothing that Raft promises is broken in the histories of seeds ${first} to ${last}`, (t) =>
    histories(t, { first, last }, (outcome) => add(total, outcome.counters)),
  );
}

test.serial('nor with the metadata for a state machine', (t) =>
  histories(t, { first: 1, last: 4, application: 'metadata' }),
);

test.serial('never are there two owners that clients may rely on for one shard', (t) => {
  const owners: Record<string, number> = {};
  histories(t, { first: 1, last: 20, application: 'owners' }, (outcome) => add(owners, outcome.owners));
  t.log(JSON.stringify(owners));
  for (const kind of ['grants', 'claims', 'taken']) t.true((owners[kind] ?? 0) > 20, kind);
});

test.serial('with copies, what clients have seen is lost as the policy says and no sooner', (t) => {
  const copies: Record<string, number> = {};
  histories(t, { first: 1, last: 12, application: 'replicas' }, (outcome) => add(copies, outcome.copies));
  t.log(JSON.stringify(copies));
  for (const kind of ['joined', 'late', 'led', 'seen', 'handed']) t.true((copies[kind] ?? 0) > 0, kind);
});

test.serial('the same seed makes the same history', (t) => {
  t.deepEqual(simulate(7, 5_000), simulate(7, 5_000));
});

test.serial('every kind of fault happened in these histories', (t) => {
  t.log(JSON.stringify(total));
  for (const [kind, count] of Object.entries(total)) t.true(count > 0, kind);
});
