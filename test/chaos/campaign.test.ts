/** A campaign goes on where it was stopped, and keeps commits apart. */
import test from 'ava';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ARRANGEMENTS, Campaign, campaignDirectory, type Round } from './campaign.js';

const round = (seed: number, kills: number, failures: readonly string[] = []): Round => ({
  seed,
  replay: `again ${seed}`,
  kills,
  allEnded: 2,
  underLoad: 1,
  operations: 1000,
  indeterminate: 2,
  indeterminateLate: 1,
  permittedLosses: 0,
  overtaken: 1,
  faults: { kill: kills, [`only ${seed}`]: 1 },
  network: seed === 1,
  failures,
  outages: { unanswered: [100 * seed], paused: [], before: [] },
});

test('totals go on in the next process, with other faults, and each commit has its own', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-campaign-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const first = new Campaign(directory, 'abc');
  t.deepEqual(first.begin(), { seed: 1, arrangement: ARRANGEMENTS[0]! });
  first.add(round(1, 7));
  const later = new Campaign(directory, 'abc');
  t.deepEqual(later.begin(), { seed: 2, arrangement: ARRANGEMENTS[1]! });
  t.deepEqual(later.begin(), { seed: 3, arrangement: ARRANGEMENTS[2]! }, 'another one beside it');
  later.add(round(2, 5, ['a value is lost']));
  const { kills, operations, indeterminate, overtaken, failures, rounds, unanswered } = new Campaign(directory, 'abc')
    .totals;
  t.deepEqual(
    { kills, operations, indeterminate, overtaken, failures, rounds },
    { kills: 12, operations: 2000, indeterminate: 4, overtaken: 2, failures: 1, rounds: 2 },
  );
  const { faults, withoutCuts } = new Campaign(directory, 'abc').totals;
  t.deepEqual([faults, withoutCuts], [{ kill: 12, 'only 1': 1, 'only 2': 1 }, 1]);
  t.deepEqual(unanswered, { count: 2, p50Ms: 200, maxMs: 200 });
  t.is(new Campaign(directory, 'def').totals.kills, 0);
});

test('durable values have totals of their own, and count the kills of all at once', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-campaign-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const durable = new Campaign(directory, 'abc', 'durable');
  t.true(durable.begin().arrangement.copies.durable);
  durable.add(round(1, 9));
  durable.add(round(2, 9));
  t.is(new Campaign(directory, 'abc', 'durable').kills, 2);
  t.is(new Campaign(directory, 'abc').kills, 0);
  const { kills, allEnded, underLoad } = durable.totals;
  t.deepEqual({ kills, allEnded, underLoad }, { kills: 18, allEnded: 4, underLoad: 2 });
});

test('totals lie in the cache directory', (t) => {
  t.is(campaignDirectory({ XDG_CACHE_HOME: '/somewhere' }), '/somewhere/farkv/campaign');
  t.true(campaignDirectory({}).endsWith('/.cache/farkv/campaign'));
});
