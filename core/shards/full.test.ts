/** Copies that lack memory for what their owners have, at their own server (backup.ts). */
import test, { type ExecutionContext } from 'ava';
import { backup, following, inSync, type Copies } from '../../test/support/copies-rig.js';

const FULL = { full: true, error: 'ERR_TABLE_FULL' };

test('a copy that is full has itself removed where enough others are in sync, and its server says so', (t) => {
  const rig = inSync();
  t.deepEqual(rig.shards.fullCopies, []);
  t.deepEqual(rig.notices(rig.id, 'full'), ['copies-removed']);
  t.deepEqual(rig.notes.at(-1), { of: 'copy full', shard: 0 });
  t.deepEqual(rig.shards.fullCopies, [0]);
  t.deepEqual(rig.applied(), ['stop'], 'and its table is no base');
  t.is(rig.log.copies, '');
});

test('a copy that is full and that changes need stays, with all that was acknowledged, and its server says so', (t) => {
  const rig = inSync({ minInSync: 2 });
  t.deepEqual(rig.notices(rig.id, 'full'), []);
  t.deepEqual(rig.see(rig.removed(rig.shards.memberId)), []);
  t.regex(rig.log.copies, /eligible/);
  t.deepEqual(rig.shards.fullCopies, [0]);
  t.deepEqual(
    rig.see({ t: 'policy-set', tenant: 0, level: 'replicated', replicas: 2, minInSync: 1, onLoss: 'wait' }),
    ['stop'],
    'changes need it no more',
  );
});

test('a copy that its owner removes before it can is no copy that goes on with what it has', (t) => {
  const rig = inSync();
  rig.notices(rig.id, 'full');
  t.deepEqual(rig.see(rig.removed(rig.shards.memberId)), ['wait 40000']);
  t.deepEqual(rig.done('propose'), ['copies-removed']);
  t.deepEqual(rig.applied(), ['stop']);
});

test('a copy for which there is no memory from the first is full', (t) => {
  const rig = backup();
  rig.done('open');
  rig.done('copy', FULL);
  t.deepEqual(rig.shards.fullCopies, [0]);
});

test('a copy that joins and is full is called off at once: it would not fit a second later either', (t) => {
  const rig = following();
  t.deepEqual(rig.notices(rig.id, 'full'), ['copy-named']);
  t.like(rig.notes.at(-1), { of: 'copy failed', attempts: 1, again: undefined, full: true });
  t.deepEqual(rig.applied(), ['stop']);
  rig.done('stop');
  t.deepEqual(rig.done('close'), ['copies-removed']);
  t.deepEqual(rig.shards.fullCopies, [0]);
});

/** A copy that was called off here for want of memory. */
function calledOff(t: ExecutionContext): Copies {
  const rig = backup({ replicas: 2 });
  rig.done('open');
  rig.done('copy', FULL);
  rig.done('stop');
  t.deepEqual(rig.done('close'), ['copies-removed']);
  t.deepEqual(rig.applied(), []);
  t.deepEqual(rig.shards.fullCopies, [0]);
  return rig;
}

test('a copy that was called off for want of memory is full until it is made', (t) => {
  const rig = calledOff(t);
  rig.see(rig.add(rig.shards.memberId));
  t.deepEqual(rig.shards.fullCopies, [0]);
  rig.done('open');
  rig.done('copy');
  rig.applied();
  rig.done('follow');
  t.deepEqual(rig.shards.fullCopies, []);
});

test('a copy that was called off for want of memory is full only while one is to be made there', (t) => {
  const rig = calledOff(t);
  const { log, shards } = rig;
  const [, other = ''] = log.others;
  const drain = (id: string, draining: boolean): unknown => rig.see({ t: 'server-drain', id, draining });
  rig.see(rig.add(other));
  t.deepEqual(shards.fullCopies, [0], 'the other one joins');
  rig.see(log.inSync(other, '0000000000000009'));
  t.deepEqual(shards.fullCopies, []);
  drain(other, true);
  t.deepEqual(shards.fullCopies, [0], 'another one is to take its place');
  drain(shards.memberId, true);
  t.deepEqual(shards.fullCopies, []);
  drain(shards.memberId, false);
  drain(other, false);
  t.deepEqual(shards.fullCopies, []);
});

test('a move to a server without room for the shard ends', (t) => {
  const rig = backup();
  rig.see({ t: 'shard-move', shard: 0, epoch: rig.epoch, to: rig.shards.memberId });
  rig.done('open');
  rig.done('copy', FULL);
  rig.done('stop');
  rig.done('close');
  rig.applied();
  t.deepEqual(rig.log.state.moves, []);
});
