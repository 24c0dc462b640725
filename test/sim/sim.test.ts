/**
 * A fixed set of seeds for every run of the tests; `npm run sim` has no end of others. The set covers each kind of
 * fault, which is asserted: a simulator whose faults do not happen finds nothing.
 */
import test from 'ava';
import type { Counters } from './counters.js';
import { MISTAKES, type Mistake } from './owners.js';
import { finds, simulate, SimulationFailure, type Outcome } from './simulate.js';

const STEPS = 10_000;
const SEEDS = 120;
const GROUPS = 4;

const total: Partial<Record<keyof Counters, number>> = {};

function add(outcome: Outcome): void {
  for (const name of Object.keys(outcome.counters) as (keyof Counters)[])
    total[name] = (total[name] ?? 0) + outcome.counters[name];
}

for (let group = 0; group < GROUPS; group++) {
  const first = 1 + (group * SEEDS) / GROUPS;
  const last = ((group + 1) * SEEDS) / GROUPS;
  test.serial(`nothing that Raft promises is broken in the histories of seeds ${first} to ${last}`, (t) => {
    for (let seed = first; seed <= last; seed++) {
      try {
        add(simulate(seed, STEPS));
      } catch (error) {
        if (!(error instanceof SimulationFailure)) throw error;
        t.fail(error.message);
      }
    }
    t.pass();
  });
}

test.serial('nor with the metadata for a state machine', (t) => {
  for (let seed = 1; seed <= 4; seed++) {
    try {
      simulate(seed, STEPS, 'metadata');
    } catch (error) {
      if (!(error instanceof SimulationFailure)) throw error;
      t.fail(error.message);
    }
  }
  t.pass();
});

test.serial('never are there two owners that clients may rely on for one shard, and what moves loses nothing', (t) => {
  const owners: Record<string, number> = {};
  for (let seed = 1; seed <= 40; seed++) {
    try {
      for (const [name, count] of Object.entries<number>({ ...simulate(seed, STEPS, 'owners').owners }))
        owners[name] = (owners[name] ?? 0) + count;
    } catch (error) {
      if (!(error instanceof SimulationFailure)) throw error;
      t.fail(error.message);
    }
  }
  t.log(JSON.stringify(owners));
  for (const kind of ['grants', 'claims', 'taken', 'released', 'copied']) t.true((owners[kind] ?? 0) > 20, kind);
});

/**
 * The first seed that found it; the search begins there, and goes on where a change elsewhere has made another history
 * of it.
 */
const FOUND_BY: Readonly<Record<Mistake, number>> = {
  'new leaders do not wait': 3,
  'grants go on while shards are taken': 155,
  'leases count from the answer': 7,
  'owners do not read the log first': 7,
  'any leader is believed': 14,
  'leaders call owners dead by the clock alone': 7,
  'leaders count the time in which they stood still': 7,
};

for (const mistake of MISTAKES) {
  test.serial(`it would be found if ${mistake}`, (t) => {
    const first = FOUND_BY[mistake];
    let seed = first;
    while (seed < first + 400 && !finds(mistake, seed, 20_000)) seed++;
    t.log(`seed ${seed}`);
    t.true(seed < first + 400);
  });
}

test.serial('the same seed makes the same history', (t) => {
  t.deepEqual(simulate(7, 5_000), simulate(7, 5_000));
});

test.serial('every kind of fault happened in these histories', (t) => {
  t.log(JSON.stringify(total));
  for (const [kind, count] of Object.entries(total)) t.true(count > 0, kind);
});
