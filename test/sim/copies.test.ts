/**
 * Histories of copies for every run of the tests; `npm run sim -- --application copies` has no end of others. That each
 * kind of command has had an effect in them is asserted: a simulator in which nothing happens finds nothing.
 */
import test from 'ava';
import { add, histories } from './histories.js';
import { simulate } from './simulate.js';

const SEEDS = 24;

test.serial('no shard is given to a copy that may lack what was seen, in any of these histories', (t) => {
  const total: Record<string, number> = {};
  histories(t, { first: 1, last: SEEDS, application: 'copies' }, (outcome) => add(total, outcome.copies));
  t.log(JSON.stringify(total));
  for (const kind of [
    'policy-set',
    'copies-add',
    'copies-in-sync',
    'copies-removed',
    'copies-keep',
    'shards-taken',
    'shards-given',
    'shards-promoted',
    'shard-handover',
    'shard-move',
    'shard-reset',
    'powers',
  ])
    t.true((total[kind] ?? 0) > 0, kind);
  t.true((total.seen ?? 0) > 1000);
});

test.serial('the same seed makes the same history of copies', (t) => {
  t.deepEqual(simulate(7, 2_000, 'copies'), simulate(7, 2_000, 'copies'));
});
