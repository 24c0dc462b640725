import test from 'ava';
import { leasesAt } from '../../test/support/leases-at.js';
import { bootstrapOf, hexOf, joinOf, MetadataLog } from '../../test/support/metadata-log.js';
import { Absences } from './copy-policy.js';
import { nextLookMs } from './leader-policy.js';
import { MovedVotes, replaced, replacement, replacementLookMs, type VoterLook } from './voter-policy.js';

const NOW = 100_000;
const REPLACE_MS = 5000;
const ALL = ['s1', 's2', 's3', 's4', 's5'];

/** Voters s1 to s3 and learners s4 and s5; `alive` have leases now, and the others have been dead for `silentMs`. */
function cluster(alive: readonly string[], silentMs: number, zones: Readonly<Record<string, string>> = {}) {
  const log = new MetadataLog();
  log.do(bootstrapOf(1, ['s1', 's2', 's3']));
  ALL.forEach((id, i) => {
    if (i > 2) log.do({ t: 'server-add', id, raftId: 100 + i, instance: hexOf(i + 1), control: [] });
    const zone = zones[id];
    log.do({ ...joinOf(id, i + 1), instance: hexOf(i + 1), ...(zone === undefined ? {} : { zone }) });
  });
  const absences = new Absences();
  const before = NOW - silentMs;
  const leases = leasesAt(NOW, { [before]: alive, [NOW]: alive });
  absences.observe(log.state, leasesAt(before, { [before]: alive }), before);
  absences.observe(log.state, leases, NOW);
  const look: VoterLook = {
    state: log.state,
    leases,
    absences,
    caughtUp: new Set(alive),
    nowMs: NOW,
    replaceMs: REPLACE_MS,
  };
  return { log, look };
}

test('a voter that has been dead for the time loses its vote to a learner, and not before', (t) => {
  const { log, look } = cluster(['s1', 's2', 's4', 's5'], REPLACE_MS);
  t.deepEqual(replacement(look), { dead: 's3', by: 's4', silentMs: REPLACE_MS });
  log.do(replaced(log.state, replacement(look)!));
  t.deepEqual(log.state.voters, ['s1', 's2', 's4']);
  t.true(
    log.state.servers.some((s) => s.id === 's3'),
    'it stays a server of the cluster',
  );
  t.is(replacement({ ...look, state: log.state }), undefined);
  const early = cluster(['s1', 's2', 's4', 's5'], REPLACE_MS - 1).look;
  t.is(replacement(early), undefined);
  t.is(replacementLookMs(early.state, early.absences, NOW, REPLACE_MS), NOW + 1);
  t.is(replacement({ ...look, replaceMs: Infinity }), undefined);
  t.is(replacementLookMs(early.state, early.absences, NOW, Infinity), undefined);
  t.is(nextLookMs(early.state, early.leases, NOW, early.absences, REPLACE_MS), NOW + 1);
});

test('a vote moves only while most voters live and have the log', (t) => {
  t.is(replacement(cluster(['s1', 's4', 's5'], REPLACE_MS).look), undefined, 'two of three are dead');
  const { look } = cluster(['s1', 's2', 's4'], REPLACE_MS);
  t.is(replacement({ ...look, caughtUp: new Set(['s1', 's4']) }), undefined, 'one lives and lacks the log');
});

test('a vote goes to a learner that lives, has the log and stays', (t) => {
  const { log, look } = cluster(['s1', 's2', 's4', 's5'], REPLACE_MS);
  t.is(replacement({ ...look, caughtUp: new Set(['s1', 's2', 's5']) })?.by, 's5');
  t.is(replacement({ ...look, caughtUp: new Set(['s1', 's2']) }), undefined);
  t.is(replacement(cluster(['s1', 's2'], REPLACE_MS).look), undefined);
  log.do({ t: 'server-drain', id: 's4', draining: true });
  t.is(replacement({ ...look, state: log.state })?.by, 's5');
});

test('a vote goes rather to a zone without a living voter', (t) => {
  const zones = { s1: 'a', s2: 'b', s3: 'c', s4: 'a', s5: 'c' };
  t.is(replacement(cluster(['s1', 's2', 's4', 's5'], REPLACE_MS, zones).look)?.by, 's5');
});

test('what a server has seen of votes that moved is shown until the vote is back or the server is gone', (t) => {
  const { log, look } = cluster(['s1', 's2', 's4', 's5'], REPLACE_MS);
  const seen = new MovedVotes();
  seen.observe(log.state);
  log.do(replaced(log.state, replacement(look)!));
  seen.observe(log.state);
  t.deepEqual(seen.all, [{ from: 's3', to: 's4' }]);
  log.do({ t: 'voters-set', voters: ['s1', 's2', 's3', 's4', 's5'] });
  seen.observe(log.state);
  t.deepEqual(seen.all, []);
});
