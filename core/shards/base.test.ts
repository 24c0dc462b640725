/** When the table of a copy that is given up is the base of the next one (docs/rejoin.md). */
import test from 'ava';
import { following, inSync, joining, kept as owned, type Copies } from '../../test/support/copies-rig.js';
import { hexOf } from '../../test/support/metadata-log.js';
import { KEPT_MS } from './base.js';

const FAILED = { full: false, error: 'no answer' };
const WAIT = `wait ${KEPT_MS}`;

/** Its server was away, and the metadata has the copy no more. */
function removed(policy = {}): Copies {
  const rig = inSync(policy);
  rig.see(rig.freed(rig.shards.memberId));
  return rig;
}

function kept(policy = {}): Copies {
  const rig = removed(policy);
  rig.done('stop');
  rig.done('keep base');
  return rig;
}

test('what a copy had is kept, under another name, until the leader has one made here', (t) => {
  const rig = removed();
  const first = hexOf(101);
  t.deepEqual(rig.done('stop'), ['keep base']);
  t.deepEqual(rig.done('keep base'), [WAIT]);
  t.deepEqual(
    rig.notes.slice(-2).map(({ of }) => of),
    ['copy removed', 'copy kept'],
  );
  t.deepEqual(rig.see(rig.add(rig.shards.memberId)), ['copy']);
  t.deepEqual(rig.notes.at(-1), { of: 'copy begins', shard: 0, from: rig.log.owner!, base: true });
  t.deepEqual(rig.done('copy'), ['copy-named']);
  t.deepEqual(rig.applied(), ['follow']);
  t.not(rig.id, first);
  t.deepEqual(rig.done('follow'), ['wait 60000']);
  t.deepEqual(rig.notes.at(-1), { of: 'copy follows', shard: 0, epoch: 1, copied: true });
});

test('it is closed when enough others have copies, when nobody wanted it for long, and when the server ends', (t) => {
  const replaced = kept({ replicas: 2 });
  const other = replaced.log.others.find((id) => id !== replaced.shards.memberId) ?? '';
  t.deepEqual(replaced.see(replaced.add(other)), ['stop']);
  t.deepEqual(replaced.done('stop'), ['close']);
  t.deepEqual(replaced.done('close'), []);
  const late = kept();
  t.deepEqual(late.waited(KEPT_MS), ['stop']);
  t.deepEqual(late.done('stop'), ['close']);
  const leaving = kept();
  leaving.shards.leave();
  t.deepEqual(leaving.asked(), ['stop']);
  t.deepEqual(leaving.done('stop'), ['close']);
});

test('it follows whoever owns the shard when it is wanted', (t) => {
  const rig = kept();
  const next = rig.log.others.find((id) => id !== rig.shards.memberId) ?? '';
  rig.log.with(next);
  rig.log.promote(next);
  t.deepEqual(rig.see(), []);
  t.deepEqual(rig.see(rig.add(rig.shards.memberId)), ['copy']);
  t.like(rig.notes.at(-1), { of: 'copy begins', from: next });
});

test('a copy of a base that fails is tried again with the base, and at last without', (t) => {
  const rig = kept();
  rig.see(rig.add(rig.shards.memberId));
  for (const ms of [1000, 2000]) {
    t.deepEqual(rig.done('copy', FAILED), ['stop']);
    t.deepEqual(rig.done('stop'), ['keep base']);
    t.deepEqual(rig.done('keep base'), [`wait ${ms}`]);
    t.deepEqual(rig.waited(ms), [WAIT, 'copy']);
  }
  t.deepEqual(rig.done('copy', FAILED), ['stop']);
  t.deepEqual(rig.done('stop'), ['close']);
  t.deepEqual(rig.done('close'), ['wait 4000']);
  t.deepEqual(rig.waited(4000), ['open']);
  rig.done('open');
  t.like(rig.notes.at(-1), { of: 'copy begins', base: false });
});

test('a table that is too full begins empty, and so does one that cannot be kept', (t) => {
  const full = kept();
  full.see(full.add(full.shards.memberId));
  full.done('copy', { full: true, error: 'no memory' });
  t.deepEqual(full.done('stop'), ['close']);
  const refused = removed();
  refused.done('stop');
  t.deepEqual(refused.done('keep base', FAILED), ['close']);
  refused.done('close');
  t.deepEqual(refused.see(refused.add(refused.shards.memberId)), ['open']);
});

test('what is damaged is no base', (t) => {
  const joins = following();
  joins.notices(joins.id, 'damaged');
  joins.applied();
  t.deepEqual(joins.done('stop'), ['close']);
  const synced = inSync();
  synced.notices(synced.id, 'damaged');
  synced.applied();
  t.deepEqual(synced.done('stop'), ['close']);
});

test('a copy that joins is kept only when nobody can wait for it', (t) => {
  const rig = joining();
  t.deepEqual(rig.done('follow', FAILED), ['copy-named']);
  t.false(rig.under('keep base'));
  t.deepEqual(rig.see(rig.log.inSync(rig.shards.memberId, rig.id)), ['wait 60000']);
  t.false(rig.under('keep base'));
});

test('what an owner had is kept too, when its server was away for so long that it is no copy of the next owner', (t) => {
  const rig = owned();
  rig.log.promote(rig.log.others[0]!);
  rig.log.do(rig.freed(rig.shards.memberId));
  t.deepEqual(rig.see(), ['step down']);
  t.deepEqual(rig.done('step down'), ['wait 60000', 'stop']);
  t.deepEqual(rig.done('stop'), ['keep base']);
  t.deepEqual(rig.done('keep base'), [WAIT]);
});

test('what an owner had stays with its worker', (t) => {
  const rig = owned({}, 2);
  const { memberId } = rig.shards;
  rig.log.promote(rig.log.others[0]!);
  rig.log.do(rig.freed(memberId));
  rig.see();
  rig.done('step down');
  rig.done('stop');
  rig.done('keep base');
  t.deepEqual(rig.see(rig.add(memberId)), ['copy']);
  t.deepEqual(rig.done('copy'), ['copy-named']);
  t.like(rig.proposed, [{ t: 'copy-named', member: memberId, worker: 2 }]);
});

test('a copy whose owner seemed to be gone is kept too, when its server was away', (t) => {
  const rig = inSync();
  rig.ownerSuspected(rig.id, 9);
  t.deepEqual(rig.see(rig.freed(rig.shards.memberId)), ['stop']);
  t.deepEqual(rig.done('stop'), ['keep base']);
});
