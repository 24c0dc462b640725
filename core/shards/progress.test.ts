/**
 * The copies of a shard at its owner (progress.ts): which config it gives the data plane, when it requires a copy, and
 * when it has one removed. Not for: what the server of a copy does (backup.test.ts).
 */
import test from 'ava';
import { Copies, kept, opened, owner, unserved } from '../../test/support/copies-rig.js';
import { CopyLog } from '../../test/support/copy-log.js';
import { hexOf, joinOf } from '../../test/support/metadata-log.js';
import type { Command } from '../metadata/commands.js';

const FAILED = { full: false, error: 'no answer' };

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
  rig.joins();
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
