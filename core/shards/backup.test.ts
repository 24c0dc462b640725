/**
 * A copy, at its server (backup.ts): how it is made and follows its owner, what becomes of one that fails, is damaged, or
 * is removed. Not for: the next owner of its shard (promotion.test.ts), and what its owner does (progress.test.ts).
 */
import test from 'ava';
import { Copies, backup, following, inSync, joining } from '../../test/support/copies-rig.js';
import { CopyLog } from '../../test/support/copy-log.js';
import { hexOf, joinOf } from '../../test/support/metadata-log.js';

const FAILED = { full: false, error: 'no answer' };

test('a copy is copied, named, and follows its owner; nothing is asked for twice', (t) => {
  const log = new CopyLog();
  const [id = ''] = log.others;
  const rig = new Copies(log, id, log.start(id));
  t.deepEqual(rig.see(), []);
  t.deepEqual(rig.see(rig.add(id)), ['open']);
  t.deepEqual(rig.buckets, [log.shard(0).buckets], "as many as the owner's, which is listed in their order");
  t.deepEqual(rig.done('open'), ['copy']);
  t.deepEqual(rig.done('copy'), ['copy-named']);
  t.deepEqual(rig.done('propose'), ['copy-named'], 'it was lost');
  t.deepEqual(rig.applied(), ['follow']);
  t.is(log.copy(id)?.id, hexOf(101));
  t.deepEqual(rig.done('follow'), ['wait 60000']);
  t.deepEqual(rig.see(log.inSync(id, hexOf(101))), []);
  t.deepEqual(rig.done('wait'), []);
  t.deepEqual(rig.shards.serving, []);
});

test('a copy is made by the start of a server that the metadata names', (t) => {
  const log = new CopyLog();
  const [id = ''] = log.others;
  const rig = new Copies(log, id, hexOf(99));
  t.deepEqual(rig.see(rig.add(id)), []);
  const old = following();
  const n = Number(old.shards.memberId.slice(1));
  t.deepEqual(old.see(joinOf(old.shards.memberId, 90, n)), ['stop'], 'another start of it has joined since');
  t.deepEqual(old.done('stop'), ['close']);
  t.deepEqual(old.done('close'), []);
});

test('what was not followed is thrown away when it fails, and made anew later and later', (t) => {
  const rig = backup();
  t.deepEqual(rig.done('open', FAILED), ['stop']);
  t.deepEqual(rig.done('stop'), ['wait 1000'], 'there is nothing to close');
  t.deepEqual(rig.done('wait'), ['open']);
  rig.done('open');
  t.deepEqual(rig.done('copy', FAILED), ['stop']);
  t.deepEqual(rig.done('stop'), ['close']);
  t.deepEqual(rig.done('close'), ['wait 2000']);
  t.deepEqual(rig.see(rig.removed(rig.shards.memberId)), [], 'it is not wanted any more');
  t.deepEqual(rig.done('wait'), []);
});

test('what fails again and again is called off by its server, until the metadata has it no more', (t) => {
  const rig = backup();
  for (const ms of [1000, 2000, 4000]) {
    t.deepEqual(rig.done('open', FAILED), ['stop']);
    t.deepEqual(rig.done('stop'), [`wait ${ms}`]);
    t.like(rig.notes.at(-1), { of: 'copy failed', again: ms });
    t.deepEqual(rig.waited(ms), ['open']);
  }
  rig.done('open', FAILED);
  t.like(rig.notes.at(-1), { of: 'copy failed', attempts: 4, again: undefined });
  t.deepEqual(rig.done('stop'), ['copies-removed']);
  t.like(rig.proposed[0], { copies: [{ failed: true }] });
  t.deepEqual(rig.done('propose'), ['copies-removed'], 'it was lost');
  t.deepEqual(rig.applied(), []);
  t.is(rig.log.copies, '');
  t.deepEqual(rig.see(rig.add(rig.shards.memberId)), ['open'], 'the leader says when');
});

test('a copy that follows and does not get in sync is called off, too', (t) => {
  const rig = following();
  for (let n = 1; n <= 4; n++) {
    t.deepEqual(rig.waited(60_000), ['copy-named']);
    rig.applied();
    rig.done('stop');
    if (n === 4) break;
    if (n < 3) {
      rig.done('keep base');
      rig.waited(1000 * 2 ** (n - 1));
    } else {
      rig.done('close');
      rig.waited(4000);
      rig.done('open');
    }
    rig.done('copy');
    rig.applied();
    rig.done('follow');
  }
  t.deepEqual(rig.done('close'), ['copies-removed']);
  t.like(rig.proposed[0], { copies: [{ failed: true }] });
});

test('what has followed is thrown away only when the metadata has another name in its place', (t) => {
  const rig = joining();
  const first = rig.id;
  t.deepEqual(rig.done('follow', FAILED), ['copy-named']);
  t.deepEqual(rig.done('propose'), ['copy-named'], 'it was lost');
  t.deepEqual(rig.applied(), ['stop']);
  t.regex(rig.log.try(rig.log.inSync(rig.shards.memberId, first)), /ERR_CONFIG/);
  t.deepEqual(rig.done('stop'), ['keep base'], 'not before');
  t.deepEqual(rig.done('keep base'), ['wait 1000']);
  t.deepEqual(rig.done('wait'), ['wait 600000', 'copy']);
  t.deepEqual(rig.done('copy'), ['copy-named']);
  rig.applied();
  t.not(rig.id, first);
});

test('a copy that becomes in sync while it is given up is kept', (t) => {
  const rig = joining();
  t.deepEqual(rig.done('follow', FAILED), ['copy-named']);
  t.deepEqual(rig.see(rig.log.inSync(rig.shards.memberId, rig.id)), ['wait 60000']);
  t.false(rig.under('close'));
});

test('a copy that nobody waits for begins anew', (t) => {
  const slow = following();
  t.deepEqual(slow.done('wait'), ['copy-named']);
});

test('a damaged copy that joins begins anew; one in sync has itself removed', (t) => {
  const joins = following();
  t.deepEqual(joins.notices(hexOf(99), 'damaged'), [], 'another copy');
  t.deepEqual(joins.notices(joins.id, 'damaged'), ['copy-named']);
  const kept = inSync();
  t.deepEqual(kept.notices(kept.id, 'damaged'), ['copies-removed']);
  t.deepEqual(kept.applied(), ['stop']);
  const late = inSync();
  late.notices(late.id, 'damaged');
  t.deepEqual(late.see(late.removed(late.shards.memberId)), ['wait 40000'], 'its owner was first');
  t.deepEqual(late.done('propose'), ['copies-removed']);
  t.deepEqual(late.applied(), ['stop']);
});

test('a damaged copy that changes need has itself removed all the same, and begins anew', (t) => {
  const needed = inSync({ minInSync: 2 });
  const id = needed.shards.memberId;
  t.deepEqual(needed.notices(needed.id, 'damaged'), ['copies-removed']);
  t.deepEqual(needed.done('propose'), ['copies-removed'], 'it was lost');
  t.deepEqual(needed.applied(), ['stop']);
  t.is(needed.log.copies, '');
  needed.done('stop');
  needed.done('close');
  t.deepEqual(needed.see(needed.add(id)), ['open'], 'without a restart');
  const eligible = inSync({ minInSync: 2 });
  eligible.notices(eligible.id, 'damaged');
  eligible.see(eligible.removed(eligible.shards.memberId));
  t.regex(eligible.log.copies, /eligible/, 'its owner was first');
  t.deepEqual(eligible.done('propose'), ['copies-removed']);
  t.deepEqual(eligible.applied(), ['stop']);
  t.is(eligible.log.copies, '');
});

test('a copy that is found damaged before it follows does not join', (t) => {
  const rig = joining();
  t.deepEqual(rig.notices(rig.id, 'damaged'), []);
  t.deepEqual(rig.done('follow'), ['wait 60000', 'copy-named']);
});

test('a server that ends asks for the removal of a copy that may go, and of no other', (t) => {
  const needed = inSync({ minInSync: 2 });
  needed.shards.leave();
  t.deepEqual(needed.asked(), []);
  t.deepEqual(needed.see({ t: 'copies-keep', ...needed.log.name, ...needed.log.byOwner }), []);
  const spare = inSync();
  spare.shards.leave();
  t.deepEqual(spare.asked(), ['copies-removed']);
  t.deepEqual([spare.shards.staying, spare.shards.left], [[0], [{ shard: 0, values: 'with owner' }]]);
});

test('a copy that was late joins again with what it has, for a time', (t) => {
  const rig = inSync();
  t.deepEqual(rig.see(rig.removed(rig.shards.memberId)), ['wait 40000']);
  t.deepEqual(rig.see(rig.log.inSync(rig.shards.memberId, rig.id)), []);
  t.deepEqual(rig.see(rig.removed(rig.shards.memberId)), ['wait 40000']);
  t.deepEqual([rig.done('wait'), rig.done('wait')], [[], []], 'of following, and of its first removal');
  t.deepEqual(rig.done('wait'), ['copies-removed'], 'the leader has it made anew');
  t.deepEqual(rig.applied(), ['stop']);
});

test('a copy that follows another owner joins again with what it has, too', (t) => {
  const rig = inSync();
  const [heir = '', next = ''] = rig.log.others.filter((id) => id !== rig.shards.memberId);
  rig.log.with(heir, next);
  rig.see();
  for (const id of [heir, next]) {
    rig.log.promote(id);
    t.true(rig.see().includes('follow owner'));
  }
  t.deepEqual(rig.see(rig.removed(rig.shards.memberId)), ['wait 40000']);
});

test('a copy follows an owner anew that was replaced and is back, also where it sees both at once', (t) => {
  const rig = inSync();
  const [heir = ''] = rig.log.others.filter((id) => id !== rig.shards.memberId);
  const first = rig.log.owner ?? '';
  rig.log.with(heir);
  rig.see();
  const goesTo = (id: string): void => {
    t.is(rig.log.promote(id), 'ok');
    const [before = ''] = [first, heir].filter((other) => other !== id);
    rig.log.do(rig.log.inSync(before, rig.log.copy(before)?.id ?? ''));
  };
  for (const id of [heir, first]) {
    goesTo(id);
    t.true(rig.see().includes('follow owner'));
  }
  for (const id of [heir, first]) goesTo(id);
  t.is(rig.log.copy(rig.shards.memberId)?.state, 'in-sync');
  t.deepEqual(rig.see(), ['follow owner']);
  t.deepEqual(rig.see(), []);
});

test('a copy that its owner does not know begins anew, unless it is in sync', (t) => {
  const rig = inSync();
  t.deepEqual(rig.notices(rig.id, 'unknown'), []);
  rig.see(rig.removed(rig.shards.memberId));
  t.deepEqual(rig.notices(rig.id, 'unknown'), ['copies-removed']);
});

test('a copy that was removed, also if it is wanted anew, is one no more, and its values are the base of the next', (t) => {
  const rig = inSync();
  const id = rig.shards.memberId;
  rig.log.do(rig.freed(id));
  t.deepEqual(rig.see(rig.add(id)), ['stop']);
  t.deepEqual(rig.done('stop'), ['keep base']);
  t.deepEqual(rig.done('keep base'), ['wait 600000', 'copy']);
});

test('an eligible copy stays', (t) => {
  const rig = inSync({ minInSync: 2 });
  t.deepEqual(rig.see(rig.removed(rig.shards.memberId)), []);
  t.regex(rig.log.copies, /eligible/);
});
