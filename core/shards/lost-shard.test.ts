/**
 * A shard of which nobody is left but a copy that joins (docs/copies.md, "When all copies of a shard are lost"): what its
 * server keeps, gives up, and says of what it does not have.
 */
import test from 'ava';
import { Copies, following, inSync, joining, kept } from '../../test/support/copies-rig.js';
import { CopyLog } from '../../test/support/copy-log.js';
import { hexOf, joinOf } from '../../test/support/metadata-log.js';
import type { Command } from '../metadata/commands.js';

/** The server starts again: what it had in memory is gone. */
function restarts({ log }: Copies, id: string): Command {
  return { ...joinOf(id, 900, Number(id.slice(1))), replaces: log.start(id) };
}

/** An operator gives the shard to this server with its copy of that id, and gives up all others. */
function reset({ log, shards }: Copies, copy: string): Command {
  const to = shards.memberId;
  const lost = log.set.copies.flatMap((c) => (c.state === 'joining' ? [] : (c.id ?? [])));
  return { t: 'shard-reset', ...log.name, to, from: { start: log.start(to), copy, worker: 1 }, lost };
}

/** An operator gives the shard to this server, empty, and gives up all copies. */
function resetEmpty({ log, shards }: Copies): Command {
  const lost = log.set.copies.flatMap((c) => (c.state === 'joining' ? [] : (c.id ?? [])));
  return { t: 'shard-reset', ...log.name, to: shards.memberId, lost };
}

test('a shard whose loss is accepted is opened empty, also where this server has a copy that joins', (t) => {
  const first = following();
  const again = inSync();
  again.see(again.removed(again.shards.memberId));
  for (const rig of [first, again]) {
    t.deepEqual(rig.see(restarts(rig, rig.log.owner!)), []);
    t.deepEqual(rig.see(resetEmpty(rig)), ['stop'], 'what it has of the copy goes');
    t.deepEqual(rig.done('stop'), ['close']);
    t.deepEqual(rig.done('close'), ['open']);
  }
});

test('a copy that joins is kept while the shard has no owner, and leads when an operator says so', (t) => {
  const rig = following();
  const { id } = rig;
  t.deepEqual(rig.see(restarts(rig, rig.log.owner!)), []);
  t.is(rig.log.owner, undefined);
  t.deepEqual(rig.done('wait'), [], 'it should have been in sync by now');
  t.like(rig.log.copy(rig.shards.memberId), { id, state: 'joining', renounced: undefined });
  t.deepEqual(rig.see(reset(rig, id)), [`lead ${rig.log.set.config} []`]);
  t.deepEqual(rig.done('lead'), ['announce']);
});

test('a copy that joins is kept while its owner is gone, and begins anew when that one is back', (t) => {
  const rig = following();
  const { id } = rig;
  rig.ownerSuspected(id, 9);
  t.deepEqual(rig.done('wait'), []);
  t.deepEqual(rig.ownerSuspected(id, undefined), ['copy-named']);
  const lost = following();
  lost.ownerSuspected(lost.id, 9);
  lost.done('wait');
  t.deepEqual(lost.see(reset(lost, lost.id)), [`lead ${lost.log.set.config} []`]);
});

test('a copy is not kept for an owner that is gone when the shard has another one that it cannot follow', (t) => {
  const log = new CopyLog();
  const [id = '', heir = '', next = ''] = log.others;
  log.with(heir, next);
  const rig = new Copies(log, id, log.start(id));
  rig.joins();
  t.deepEqual(rig.ownerSuspected(rig.id, 9), []);
  log.promote(heir);
  log.promote(next);
  t.deepEqual(rig.see(), ['copy-named']);
});

test('an owner that does not know the copy is there', (t) => {
  const rig = following();
  rig.ownerSuspected(rig.id, 9);
  t.deepEqual(rig.notices(rig.id, 'unknown'), ['copy-named']);
});

test('a copy that joins again is kept, too', (t) => {
  const rig = inSync();
  rig.see(rig.removed(rig.shards.memberId));
  rig.ownerSuspected(rig.id, 9);
  rig.done('wait');
  t.deepEqual(rig.waited(40_000), []);
  const vacant = inSync();
  vacant.see(vacant.removed(vacant.shards.memberId));
  t.deepEqual(vacant.see(restarts(vacant, vacant.log.owner!)), []);
  t.deepEqual(vacant.waited(40_000), []);
});

test('a damaged copy is not kept, whoever is there', (t) => {
  const rig = following();
  rig.see(restarts(rig, rig.log.owner!));
  t.deepEqual(rig.notices(rig.id, 'damaged'), ['copy-named']);
});

test('what has not followed cannot lead: it is given up, and the metadata is told before that it is', (t) => {
  const rig = joining();
  t.deepEqual(rig.see(restarts(rig, rig.log.owner!)), ['copy-named']);
  t.like(rig.proposed[0], { t: 'copy-named', renounced: true });
  t.deepEqual(rig.applied(), ['stop']);
  t.like(rig.log.copy(rig.shards.memberId), { renounced: true });
  t.regex(rig.log.try(reset(rig, rig.id)), /ERR_BUSY.*no such copy/);
});

test('a copy of which the metadata has heard in the same look as of the end of its owner is given up in the same way', (t) => {
  const log = new CopyLog();
  const [id = ''] = log.others;
  const rig = new Copies(log, id, log.start(id));
  rig.see(rig.add(id));
  rig.done('open');
  rig.done('copy');
  log.do(rig.proposed[0]!);
  t.deepEqual(rig.see(restarts(rig, log.owner!)), ['copy-named']);
  t.like(rig.proposed.at(-1), { renounced: true });
});

test('a copy that is given up and becomes the shard all the same leads', (t) => {
  const rig = following();
  const { id } = rig;
  rig.notices(id, 'damaged');
  t.deepEqual(rig.see(reset(rig, id)), ['wait 60000', `lead ${rig.log.set.config} []`]);
});

test('a server that is to serve a copy which is not here says so, and goes on; the shard waits', (t) => {
  const log = new CopyLog();
  const [id = '', other = ''] = log.others;
  log.with(id);
  const rig = new Copies(log, id, log.start(id));
  const copy = log.copy(id)!.id!;
  log.do(rig.taken(id, copy));
  t.deepEqual(rig.see(), ['copy-missing']);
  t.like(rig.notes.at(-1), { of: 'copy missing', copy });
  t.deepEqual(rig.done('propose'), ['copy-missing'], 'it was lost');
  t.deepEqual(rig.applied(), []);
  t.is(log.owner, undefined);
  t.is(log.copies, `${log.set.copies[0]?.member ?? ''} joining`, 'the last owner');
  // The first of its kind: nobody is to be asked again.
  t.deepEqual(rig.see(restarts(rig, other)), []);
});

test('a table that never followed and is to lead is closed, and its server says that it is none', (t) => {
  const rig = joining();
  const { id } = rig;
  rig.see(reset(rig, id));
  t.deepEqual(rig.done('follow', { full: false, error: 'the owner is gone' }), [
    'wait 60000',
    `lead ${rig.log.set.config} []`,
  ]);
  t.deepEqual(rig.done('lead', { full: false, error: 'no copy', none: true }), ['stop']);
  t.deepEqual(rig.done('stop'), ['close']);
  t.deepEqual(rig.done('close'), ['copy-missing']);
  t.deepEqual(rig.applied(), []);
  t.is(rig.log.copies, '');
  const failed = following();
  failed.see(reset(failed, failed.id));
  t.deepEqual(failed.done('lead', { full: true, error: 'no memory' }), ['fail'], 'what it has is there');
});

test('an owner that is replaced before it has opened has nothing left, and the metadata is told', (t) => {
  const rig = inSync();
  const { id } = rig;
  const me = rig.shards.memberId;
  const [next = ''] = rig.log.others.filter((one) => one !== me);
  rig.log.with(next);
  rig.see(rig.taken(me, id));
  t.is(rig.log.promote(next), 'ok');
  t.like(rig.log.copy(me), { id, state: 'joining' });
  t.deepEqual(rig.see(), ['close', 'copy-named']);
  t.like(rig.proposed[0], { renounced: true });
  t.deepEqual(rig.applied(), []);
  t.like(rig.log.copy(me), { renounced: true });
  t.deepEqual(rig.done('close'), ['open'], 'it is made anew');
});

test('an owner that steps down has its table, and says nothing', (t) => {
  const rig = kept();
  rig.log.promote(rig.log.others[0]!);
  t.deepEqual(rig.see(), ['step down']);
  t.deepEqual(rig.proposed, []);
  t.not(rig.id, hexOf(0));
});
