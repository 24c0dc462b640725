/**
 * The next owner of a shard that has copies: a copy in sync becomes the owner's table, by the leader's word or by its own
 * proposal, and the other copies follow it. Under faults: test/sim.
 */
import test from 'ava';
import { Copies, following, inSync } from '../../test/support/copies-rig.js';
import { CopyLog } from '../../test/support/copy-log.js';
import { hexOf } from '../../test/support/metadata-log.js';

test('a damaged copy does not ask to be promoted', (t) => {
  const rig = inSync();
  rig.notices(rig.id, 'damaged');
  t.deepEqual(rig.ownerSuspected(rig.id, 9), []);
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
  t.deepEqual(rig.ownerSuspected(hexOf(99), 9), [], 'another copy');
  t.deepEqual(rig.ownerSuspected(rig.id, 9), ['shards-promoted']);
  t.deepEqual(rig.done('propose'), ['follow owner'], 'it was lost: if nobody is there, the data plane says so again');
  t.deepEqual(rig.ownerSuspected(rig.id, 9), ['shards-promoted']);
  t.deepEqual(rig.applied(), [`lead ${rig.log.set.config} []`]);
  t.is(rig.log.owner, rig.shards.memberId);
  t.deepEqual(rig.log.set.barrier, { epoch: 1, lsn: 9 });
  t.deepEqual(rig.done('lead'), ['serve'], 'under the incarnation that it has proposed');
  rig.done('serve');
  t.deepEqual(rig.shards.serving, [0]);
});

test('a copy not in sync that suspects its owner waits until it is in sync, or hears its owner again', (t) => {
  const rig = following();
  t.deepEqual(rig.ownerSuspected(rig.id, 9), []);
  const other = following();
  t.deepEqual(rig.see(rig.log.inSync(rig.shards.memberId, rig.id)), ['shards-promoted']);
  other.ownerSuspected(other.id, 9);
  t.deepEqual(other.ownerSuspected(other.id, undefined), []);
  t.deepEqual(other.see(other.log.inSync(other.shards.memberId, other.id)), []);
});

/** Behind another copy in rank. */
function second(): Copies {
  const log = new CopyLog();
  const [id = '', first = ''] = log.others;
  log.do({ t: 'copies-add', copies: [{ ...log.name, member: first, start: log.start(first), rank: 0 }] });
  log.do(log.inSync(first, hexOf(2000)));
  const rig = new Copies(log, id, log.start(id));
  rig.joins();
  rig.see(log.inSync(id, rig.id));
  rig.done('wait');
  return rig;
}

test('copies that suspect their owner take turns by rank; one whose turn has not come follows again when its owner is back, or another', (t) => {
  const late = second();
  t.deepEqual(late.ownerSuspected(late.id, 9), ['wait 30']);
  t.deepEqual(late.done('wait'), ['shards-promoted']);

  const back = second();
  back.ownerSuspected(back.id, 9);
  t.deepEqual(back.ownerSuspected(back.id, undefined), ['wait 60000']);
  t.deepEqual(back.done('wait'), [], 'its turn is over');

  const taken = second();
  taken.ownerSuspected(taken.id, 9);
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
  rig.joins();
  rig.see(log.inSync(id, rig.id));
  t.deepEqual(rig.see(rig.taken(heir, log.copy(heir)!.id!)), ['follow owner']);
  t.deepEqual(rig.see({ t: 'copies-keep', ...log.name, ...log.byOwner }), [], 'it does already');
});

test('a copy that joins goes on with the next owner, and after another one begins anew under another name', (t) => {
  const log = new CopyLog();
  const [id = '', heir = '', next = ''] = log.others;
  log.with(heir, next);
  const rig = new Copies(log, id, log.start(id));
  rig.joins();
  t.deepEqual(rig.see(rig.taken(heir, log.copy(heir)!.id!)), ['follow owner']);
  t.deepEqual(rig.see(rig.taken(next, log.copy(next)!.id!)), ['copy-named']);
  t.deepEqual(rig.applied(), ['stop']);
});
