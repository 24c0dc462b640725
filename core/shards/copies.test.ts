/**
 * Copies of shards, one rule of index.ts after the other: at a server that makes one, and at the owner. Under faults:
 * test/sim.
 */
import test from 'ava';
import {
  Copies,
  backup,
  following,
  inSync,
  joining,
  kept,
  opened,
  owner,
  unserved,
} from '../../test/support/copies-rig.js';
import { CopyLog } from '../../test/support/copy-log.js';
import { hexOf, joinOf } from '../../test/support/metadata-log.js';
import type { Command } from '../metadata/commands.js';

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

test('an owner that could not require a copy so many times calls it off', (t) => {
  const rig = owner();
  const id = hexOf(2001);
  rig.notices(id, 'joined');
  for (let n = 0; n < 19; n++) {
    rig.done('require', FAILED);
    rig.waited(100);
  }
  rig.done('require', FAILED);
  t.like(rig.proposed.at(-1), { t: 'copies-removed', copies: [{ failed: true }] });
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

test('a damaged copy does not ask to be promoted', (t) => {
  const rig = inSync();
  rig.notices(rig.id, 'damaged');
  t.deepEqual(rig.orphaned(rig.id, 9), []);
});

test('a server that ends asks for the removal of a copy that may go, and of no other', (t) => {
  const needed = inSync({ minInSync: 2 });
  needed.shards.leave();
  t.deepEqual(needed.asked(), []);
  t.deepEqual(needed.see({ t: 'copies-keep', ...needed.log.name, ...needed.log.byOwner }), []);
  const spare = inSync();
  spare.shards.leave();
  t.deepEqual(spare.asked(), ['copies-removed']);
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

test('a shard that comes with the copy that is here is led, announced, and served when the last run is over', (t) => {
  const rig = inSync();
  const id = rig.shards.memberId;
  t.deepEqual(rig.see(rig.taken(id, rig.id)), [`lead ${rig.log.set.config} []`]);
  t.deepEqual(rig.done('lead'), ['announce']);
  const { epoch, shard } = rig.log.shard(0);
  const [memberIncarnation, incarnation] = [rig.log.start(id), hexOf(102)];
  const none = { layoutEpoch: 1, buckets: 1, regions: [] } as const;
  t.deepEqual(rig.see({ t: 'shard-opened', shard, owner: id, memberIncarnation, epoch, incarnation, ...none }), []);
  rig.done('announce');
  rig.shards.lastRunOver();
  t.deepEqual(rig.asked(), ['serve']);
  rig.done('serve');
  t.deepEqual(rig.shards.serving, [0]);
});

test('a copy whose owner is gone is promoted by its own proposal, and served when that is applied', (t) => {
  const rig = inSync();
  rig.shards.lastRunOver();
  t.deepEqual(rig.orphaned(hexOf(99), 9), [], 'another copy');
  t.deepEqual(rig.orphaned(rig.id, 9), ['shards-promoted']);
  t.deepEqual(rig.done('propose'), ['follow owner'], 'it was lost: if nobody is there, the data plane says so again');
  t.deepEqual(rig.orphaned(rig.id, 9), ['shards-promoted']);
  t.deepEqual(rig.applied(), [`lead ${rig.log.set.config} []`]);
  t.is(rig.log.owner, rig.shards.memberId);
  t.deepEqual(rig.log.set.barrier, { epoch: 1, lsn: 9 });
  t.deepEqual(rig.done('lead'), ['serve'], 'under the incarnation that it has proposed');
  rig.done('serve');
  t.deepEqual(rig.shards.serving, [0]);
});

test('an orphan that is not in sync waits until it is; one that hears its owner again is none', (t) => {
  const rig = following();
  t.deepEqual(rig.orphaned(rig.id, 9), []);
  const other = following();
  t.deepEqual(rig.see(rig.log.inSync(rig.shards.memberId, rig.id)), ['shards-promoted']);
  other.orphaned(other.id, 9);
  t.deepEqual(other.orphaned(other.id, undefined), []);
  t.deepEqual(other.see(other.log.inSync(other.shards.memberId, other.id)), []);
});

/** Behind another copy in rank. */
function second(): Copies {
  const log = new CopyLog();
  const [id = '', first = ''] = log.others;
  log.do({ t: 'copies-add', copies: [{ ...log.name, member: first, start: log.start(first), rank: 0 }] });
  log.do(log.inSync(first, hexOf(2000)));
  const rig = new Copies(log, id, log.start(id));
  rig.see(rig.add(id));
  rig.done('open');
  rig.done('copy');
  rig.applied();
  rig.done('follow');
  rig.see(log.inSync(id, rig.id));
  rig.done('wait');
  return rig;
}

test('orphans take turns by rank; one whose turn has not come follows again when its owner is back, or another', (t) => {
  const late = second();
  t.deepEqual(late.orphaned(late.id, 9), ['wait 30']);
  t.deepEqual(late.done('wait'), ['shards-promoted']);

  const back = second();
  back.orphaned(back.id, 9);
  t.deepEqual(back.orphaned(back.id, undefined), ['wait 60000']);
  t.deepEqual(back.done('wait'), [], 'its turn is over');

  const taken = second();
  taken.orphaned(taken.id, 9);
  const heir = taken.log.set.copies.find((c) => c.id === hexOf(2000))!.member;
  t.deepEqual(taken.see(taken.taken(heir, hexOf(2000))), ['follow owner']);
  t.deepEqual(taken.done('wait'), []);
});

test('a shard whose copy is not here is not opened empty', (t) => {
  const log = new CopyLog();
  const [id = ''] = log.others;
  log.with(id);
  const rig = new Copies(log, id, log.start(id));
  rig.log.do(rig.taken(id, log.copy(id)!.id!));
  t.deepEqual(rig.see(), ['copy-missing']);
});

test('the other copies follow the new owner', (t) => {
  const log = new CopyLog();
  const [id = '', heir = ''] = log.others;
  log.with(heir);
  const rig = new Copies(log, id, log.start(id));
  rig.see(rig.add(id));
  rig.done('open');
  rig.done('copy');
  rig.applied();
  rig.done('follow');
  rig.see(log.inSync(id, rig.id));
  t.deepEqual(rig.see(rig.taken(heir, log.copy(heir)!.id!)), ['follow owner']);
  t.deepEqual(rig.see({ t: 'copies-keep', ...log.name, ...log.byOwner }), [], 'it does already');
});

test('a copy that joins goes on with the next owner, and after another one begins anew under another name', (t) => {
  const log = new CopyLog();
  const [id = '', heir = '', next = ''] = log.others;
  log.with(heir, next);
  const rig = new Copies(log, id, log.start(id));
  rig.see(rig.add(id));
  rig.done('open');
  rig.done('copy');
  rig.applied();
  rig.done('follow');
  t.deepEqual(rig.see(rig.taken(heir, log.copy(heir)!.id!)), ['follow owner']);
  t.deepEqual(rig.see(rig.taken(next, log.copy(next)!.id!)), ['copy-named']);
  t.deepEqual(rig.applied(), ['stop']);
});

test('an owner tells every config, the first one before it serves', (t) => {
  const rig = opened({ minInSync: 2 });
  const { log } = rig;
  rig.shards.lastRunOver();
  t.deepEqual(rig.asked(), []);
  t.deepEqual(rig.see(), [`configure ${log.set.config} []`]);
  t.deepEqual(rig.done('announce'), ['serve']);
  const [a = ''] = log.others;
  log.with(a);
  t.deepEqual(rig.see(), [`configure ${log.set.config} [${log.copy(a)!.id}]`]);
});

test('a copy that has joined is required, then proposed, again until the metadata has it', (t) => {
  const rig = owner();
  const id = hexOf(2001);
  t.deepEqual(rig.notices(id, 'joined'), ['wait 10000', `require ${id}`]);
  t.deepEqual(rig.done('require', undefined, 7), ['copies-in-sync']);
  t.deepEqual(rig.done('propose'), ['copies-in-sync'], 'it was lost');
  const config = rig.log.set.config + 1;
  t.deepEqual(rig.applied(), [`configure ${config} [${id}]`]);
  t.deepEqual(rig.log.set.barrier, { epoch: 1, lsn: 7 });
});

test('what was promised of a copy in an earlier config is asked for again in the next', (t) => {
  const rig = owner({}, 2);
  const id = hexOf(2001);
  rig.notices(id, 'joined');
  const keep: Command = { t: 'copies-keep', ...rig.log.name, ...rig.log.byOwner };
  const config = rig.log.set.config + 1;
  t.deepEqual(rig.see(keep), [`configure ${config} []`, `require ${id}`]);
  t.deepEqual(rig.done('require', undefined, 7), [], 'the first one');
  t.deepEqual(rig.done('require', undefined, 7), ['copies-in-sync']);
  t.deepEqual(rig.see({ t: 'copies-keep', ...rig.log.name, ...rig.log.byOwner }), [
    `configure ${config + 1} []`,
    `require ${id}`,
  ]);
});

test('a copy that is known before its name is waits for it, and is dropped when that does not come', (t) => {
  const rig = owner();
  const [, other = ''] = rig.log.others;
  t.deepEqual(rig.notices(hexOf(2002), 'joined'), ['wait 10000']);
  const named = (): Command => {
    const [start, copy] = [rig.log.start(other), hexOf(2002)];
    return { t: 'copy-named', ...rig.log.name, member: other, start, copy, worker: 1 };
  };
  rig.see(rig.add(other));
  t.deepEqual(rig.see(named()).at(-1), `require ${hexOf(2002)}`);
  rig.notices(hexOf(2003), 'joined');
  t.deepEqual(rig.done('wait'), [], 'it has a name by now');
  t.deepEqual(rig.done('wait'), [`drop ${hexOf(2003)}`]);
});

test('a late copy is removed, and joins again when it is back; it is whole once the shard was served', (t) => {
  const rig = kept();
  const id = hexOf(2001);
  t.deepEqual(rig.notices(id, 'late'), ['wait 60000', 'copies-removed']);
  t.deepEqual(rig.done('propose'), ['copies-removed'], 'it was lost');
  const [command] = rig.proposed;
  t.true(command?.t === 'copies-removed' && command.copies[0]?.whole);
  t.deepEqual(rig.applied(), [`configure ${rig.log.set.config} []`]);
  t.deepEqual(rig.done('configure'), []);
  t.deepEqual(rig.notices(id, 'joined'), [`require ${id}`]);
  rig.done('require', undefined, 9);
  rig.applied();
  t.is(rig.log.copies, `${rig.log.others[0]!} in-sync`);
});

test('a copy that the metadata has no more is let go of', (t) => {
  const rig = kept();
  t.true(rig.see(rig.freed(rig.log.others[0]!)).includes(`drop ${hexOf(2001)}`));
});

test('a copy that has not joined yet is let go of when its server starts again, or names another one', (t) => {
  const rig = owner({}, 2);
  const [a = '', b = ''] = rig.log.others;
  const { config } = rig.log.set;
  const named = { t: 'copy-named', member: b, start: rig.log.start(b), copy: hexOf(2003), worker: 1 } as const;
  t.deepEqual(rig.see({ ...named, ...rig.log.name }), [`configure ${config + 1} []`, `drop ${hexOf(2002)}`]);
  const again = { ...joinOf(a, 30, Number(a.slice(1))), replaces: rig.log.start(a) };
  t.deepEqual(rig.see(again), [`configure ${config + 2} []`, `drop ${hexOf(2001)}`]);
  t.deepEqual(rig.see({ t: 'copies-keep', ...rig.log.name, ...rig.log.byOwner }), [`configure ${config + 3} []`]);
});

test('no copy is required before its owner serves: others may be relied on until then', (t) => {
  const rig = opened();
  rig.see();
  rig.done('announce');
  rig.done('configure');
  const [member = ''] = rig.log.others;
  rig.see(rig.add(member));
  rig.see({ t: 'copy-named', ...rig.log.name, member, start: rig.log.start(member), copy: hexOf(2001), worker: 1 });
  t.deepEqual(rig.notices(hexOf(2001), 'joined'), ['wait 10000']);
  rig.shards.lastRunOver();
  t.deepEqual(rig.asked(), ['serve']);
  t.deepEqual(rig.done('serve'), [`require ${hexOf(2001)}`]);
});

test('a new shard is served when another server has a copy of it, and then counts its own', (t) => {
  const rig = unserved();
  const [member = ''] = rig.log.others;
  rig.see(rig.add(member));
  rig.see({ t: 'copy-named', ...rig.log.name, member, start: rig.log.start(member), copy: hexOf(2001), worker: 1 });
  t.deepEqual(rig.notices(hexOf(2001), 'joined').at(-1), `require ${hexOf(2001)}`);
  rig.done('require', undefined, 0);
  t.deepEqual(rig.applied(), [`configure ${rig.log.set.config} [${hexOf(2001)}]`, 'copies-in-sync']);
  t.is(rig.log.copies, `${member} in-sync, ${rig.log.owner} joining`, 'what is in it now, which is nothing, is there');
  t.deepEqual(rig.applied(), [`configure ${rig.log.set.config} [${hexOf(2001)}]`, 'serve']);
  t.is(rig.log.copies, `${member} in-sync`);
});

test('a new shard is served alone when no copy comes in time, no other server is there, or its policy is another', (t) => {
  const rig = unserved();
  t.deepEqual(rig.done('wait'), ['copies-in-sync']);
  t.deepEqual(rig.done('propose'), ['copies-in-sync'], 'it was lost');
  t.deepEqual(rig.applied(), [`configure ${rig.log.set.config} []`, 'serve']);
  const other = unserved();
  const cache = { level: 'cache', replicas: 1, minInSync: 1, onLoss: 'empty' } as const;
  t.deepEqual(other.see({ t: 'policy-set', tenant: 0, ...cache }).at(-1), 'copies-in-sync');
  const alone = unserved(1, false);
  t.deepEqual(alone.asked(), ['copies-in-sync']);
});

test('a copy that was late and is back is kept', (t) => {
  const rig = kept();
  rig.notices(hexOf(2001), 'late');
  t.deepEqual(rig.notices(hexOf(2001), 'back'), []);
  t.deepEqual(rig.done('propose'), []);
});

test('a copy that has no connection is removed at once when its server has ended', (t) => {
  const rig = kept();
  const id = hexOf(2001);
  t.deepEqual(rig.notices(id, 'unlinked'), ['probe']);
  t.deepEqual(rig.notices(id, 'unlinked'), [], 'it is being looked for');
  t.deepEqual(rig.done('probe'), [], 'it is there');
  t.deepEqual(rig.notices(id, 'unlinked'), ['probe']);
  t.deepEqual(rig.done('probe', FAILED).at(-1), 'copies-removed');
  t.deepEqual(rig.notices(hexOf(77), 'unlinked'), ['wait 10000'], 'nobody has it');
});

test('a copy is not called whole before its owner has served', (t) => {
  const log = new CopyLog();
  const [heir = '', other = ''] = log.others;
  log.with(other);
  const rig = new Copies(log, heir, log.start(heir));
  rig.see(rig.add(heir));
  rig.done('open');
  rig.done('copy');
  rig.applied();
  rig.done('follow');
  rig.see(log.inSync(heir, rig.id));
  t.deepEqual(rig.see(rig.taken(heir, rig.id)), [`lead ${log.set.config} [${log.copy(other)!.id}]`]);
  rig.done('lead');
  rig.notices(log.copy(other)!.id!, 'late');
  const command = rig.proposed.find((c) => c.t === 'copies-removed');
  t.false(command?.copies[0]?.whole);
});

test('an eligible copy that is on its way back, and late, is given up in a new config', (t) => {
  const rig = kept({ minInSync: 2 });
  const id = hexOf(2001);
  rig.notices(id, 'late');
  rig.applied();
  t.regex(rig.log.copies, /eligible/);
  t.deepEqual(rig.notices(id, 'joined'), [`require ${id}`]);
  t.deepEqual(rig.done('require', undefined, 9), ['copies-in-sync']);
  t.deepEqual(rig.notices(id, 'late'), ['copies-keep']);
});

test('an eligible copy that its owner does not know is made anew by its word', (t) => {
  const rig = kept({ minInSync: 2 });
  const id = hexOf(2001);
  t.deepEqual(rig.notices(id, 'refused'), [], 'it is in sync');
  rig.notices(id, 'late');
  rig.applied();
  t.regex(rig.log.copies, /eligible/);
  t.deepEqual(rig.notices(hexOf(77), 'refused'), [], 'nobody has it');
  t.deepEqual(rig.notices(id, 'refused'), ['copies-removed']);
  t.deepEqual(rig.notices(id, 'refused'), [], 'that is under way');
  rig.applied();
  t.is(rig.log.copies, '', 'the leader adds one again');
});

test('a copy that cannot be required is asked again, and removed in the end', (t) => {
  const rig = owner();
  rig.notices(hexOf(2001), 'joined');
  for (let i = 0; i < 19; i++) {
    t.deepEqual(rig.done('require', FAILED), ['wait 100']);
    if (i === 0) rig.done('wait');
    t.deepEqual(rig.done('wait'), [`require ${hexOf(2001)}`]);
  }
  t.deepEqual(rig.done('require', FAILED), ['wait 100', 'wait 60000', 'copies-removed']);
});
