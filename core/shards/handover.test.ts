/** Handover, one rule of index.ts after the other: at the owner and at its heir. Under faults: test/sim. */
import test from 'ava';
import { Copies, inSync, kept, opened, owner } from '../../test/support/copies-rig.js';
import { CopyLog } from '../../test/support/copy-log.js';
import { hexOf } from '../../test/support/metadata-log.js';
import type { Command } from '../metadata/commands.js';

const FAILED = { full: false, error: 'no answer' };
const drain = (id: string): Command => ({ t: 'server-drain', id, draining: true });

test('a drained owner hands its shard over to a copy in sync, and is a copy from then on', (t) => {
  const rig = kept();
  const { log } = rig;
  const [owner, heir] = [log.owner!, log.others[0]!];
  t.deepEqual(rig.see(drain(owner)), ['hand over']);
  t.deepEqual(rig.shards.serving, [0], 'until its clients wait');
  t.deepEqual(rig.done('hand over'), ['shard-handover']);
  t.deepEqual(rig.shards.serving, []);
  t.deepEqual(rig.applied(), ['step down']);
  t.is(log.owner, heir);
  t.is(log.copy(owner)?.state, 'in-sync');
  t.deepEqual(rig.done('step down'), ['wait 60000', 'follow owner']);
});

test('an owner that another one replaces goes on as a copy with what it has, if it was served', (t) => {
  const rig = kept();
  const { log } = rig;
  const [last, heir] = [log.owner!, log.others[0]!];
  const { id } = log.copy(last)!;
  t.is(log.promote(heir), 'ok');
  t.deepEqual(rig.see(), ['step down']);
  t.deepEqual(rig.shards.serving, []);
  t.is(log.copy(last)?.state, 'joining');
  t.deepEqual(rig.done('step down'), ['wait 60000', 'follow owner']);
  t.is(log.copy(last)?.id, id);
  const asked = kept();
  asked.see(drain(asked.log.owner!));
  t.is(asked.log.promote(asked.log.others[0]!), 'ok');
  t.deepEqual(asked.see(), ['step down'], 'while it hands the shard over, too');
  const early = opened();
  t.is(early.log.with(early.log.others[0]!).promote(early.log.others[0]!), 'ok');
  t.deepEqual(early.see(), ['close', 'copy-named']);
});

test('what was handed over is led as such, and what was promoted is not', (t) => {
  const rig = inSync();
  const { log } = rig;
  const { name, byOwner } = log;
  const [to, copy] = [rig.shards.memberId, rig.id];
  log.do({ t: 'shard-handover', ...name, ...byOwner, to, copy, incarnation: hexOf(5), ends: false });
  rig.shards.see(log.state);
  const led = rig.shards.take().flatMap((a) => (a.do === 'lead' ? [a.copies.handed] : []));
  t.deepEqual(led, [true]);
  const other = inSync();
  other.log.promote(other.shards.memberId);
  other.shards.see(other.log.state);
  t.deepEqual(
    other.shards.take().flatMap((a) => (a.do === 'lead' ? [a.copies.handed] : [])),
    [false],
  );
});

test('an owner that does not know what came of its handover goes on in a later config only', (t) => {
  const rig = kept();
  const { log } = rig;
  rig.see(drain(log.owner!));
  rig.done('hand over');
  const [late] = rig.proposed;
  t.deepEqual(rig.done('propose'), ['copies-keep'], 'it was lost');
  t.deepEqual(rig.done('propose'), ['copies-keep'], 'that too');
  t.deepEqual(rig.shards.serving, []);
  const { config } = log.set;
  t.deepEqual(rig.applied(), [`configure ${config + 1} [${hexOf(2001)}]`, 'serve']);
  t.not(log.try(late!), 'ok');
  t.deepEqual(rig.done('serve'), ['wait 100']);
  t.deepEqual(rig.shards.serving, [0]);
  t.deepEqual(rig.done('wait'), [], 'that of the copy, which has a name');
  t.deepEqual(rig.done('wait'), ['hand over']);
  t.deepEqual(rig.done('hand over', FAILED), ['wait 100'], 'it is served as before');
  t.deepEqual(rig.shards.serving, [0]);
});

test('an owner that has not served, or whose copies may lack something, hands nothing over', (t) => {
  const early = opened();
  t.false(early.see(drain(early.log.owner!)).includes('hand over'));
  const rig = owner();
  t.deepEqual(rig.see(drain(rig.log.owner!)), [], 'its copy joins');
});

test('the shards of a server that ends are handed over, and nobody waits for its copies', (t) => {
  const rig = kept();
  t.deepEqual(rig.shards.staying, [0]);
  rig.shards.leave();
  t.deepEqual(rig.asked(), ['hand over', 'look', 'look', 'look']);
  t.deepEqual(rig.done('look'), ['wait 200'], 'its heir is there');
  t.deepEqual(rig.done('hand over'), ['shard-handover']);
  const { memberId } = rig.shards;
  t.deepEqual(rig.applied(), ['close']);
  t.is(rig.log.copy(memberId), undefined);
  t.deepEqual(rig.shards.staying, []);
  const backup = inSync();
  t.deepEqual(backup.shards.staying, [0]);
  backup.shards.leave();
  t.deepEqual(backup.asked(), ['copies-removed']);
  t.deepEqual(backup.done('propose'), ['copies-removed'], 'it was lost');
  t.deepEqual(backup.applied(), ['stop']);
  t.deepEqual(backup.shards.staying, []);
});

test('a server that ends waits for a copy that joins, unless the server of that copy has ended', (t) => {
  const rig = owner({ replicas: 1 }, 2);
  rig.shards.leave();
  t.deepEqual(rig.asked(), ['look', 'look']);
  rig.done('look', FAILED);
  t.deepEqual(rig.shards.staying, [0], 'the other one may be in sync soon');
  rig.done('look', FAILED);
  t.deepEqual(rig.shards.staying, []);
  const waits = owner();
  waits.shards.leave();
  waits.asked();
  waits.done('look');
  t.deepEqual(waits.shards.staying, [0]);
});

test('a server that ends with the only copy waits for another one, while a server is there that may be given it', (t) => {
  const rig = owner({}, 0);
  rig.see(drain(rig.log.others[0]!));
  rig.shards.leave();
  t.deepEqual(rig.asked(), ['look', 'look'], 'the drained one is given none');
  rig.done('look', FAILED);
  rig.done('look');
  t.deepEqual(rig.shards.staying, [0]);
  const heir = rig.log.others[2]!;
  rig.see(rig.add(heir));
  const [start, copy] = [rig.log.start(heir), hexOf(2001)];
  rig.see({ t: 'copy-named', ...rig.log.name, member: heir, start, copy, worker: 1 });
  rig.notices(copy, 'joined');
  rig.done('require', undefined, 7);
  t.true(rig.applied().includes('hand over'));
  t.deepEqual(rig.done('hand over'), ['shard-handover']);
  t.deepEqual(rig.applied(), ['close']);
  t.deepEqual([rig.shards.staying, rig.shards.left], [[], []]);
});

test('a server that ends looks at the others until they end too, and says what it leaves behind', (t) => {
  const rig = owner({}, 0);
  rig.shards.leave();
  rig.asked();
  rig.log.others.forEach(() => rig.done('look'));
  t.deepEqual(rig.shards.staying, [0]);
  rig.log.others.forEach(() => t.deepEqual(rig.waited(200), ['look']));
  rig.log.others.forEach(() => rig.done('look', FAILED));
  t.deepEqual(rig.shards.staying, [], 'nobody is there to take it');
  t.deepEqual(rig.shards.left, [{ shard: 0, values: 'lost' }]);
  const durable = owner({ level: 'durable', replicas: 2 }, 1);
  t.deepEqual(durable.shards.left, [{ shard: 0, values: 'on disk' }], 'a copy that joins has not all');
  const copied = kept();
  t.deepEqual(copied.shards.left, [{ shard: 0, values: 'elsewhere' }]);
  copied.shards.leave();
  copied.asked();
  copied.log.others.forEach(() => copied.done('look', FAILED));
  t.deepEqual(copied.shards.left, [{ shard: 0, values: 'lost' }], 'those with copies end, too');
  t.deepEqual(owner({ level: 'cache', replicas: 1, onLoss: 'empty' }, 0).shards.left, [], 'it was to have no copy');
  const alone = owner({ level: 'durable', replicas: 1 }, 0);
  t.deepEqual([alone.shards.staying, alone.shards.left], [[], [{ shard: 0, values: 'on disk' }]]);
});

test('a shard that is moved is handed over to that server as soon as its copy is in sync, and to no other', (t) => {
  const rig = kept();
  const { log } = rig;
  const [heir, other] = [log.others[0]!, log.others[1]!];
  const move = (to: string): Command => ({ t: 'shard-move', shard: 0, epoch: log.shard(0).epoch, to });
  t.deepEqual(rig.see(move(other)), [], 'it has no copy yet');
  t.deepEqual(rig.see(move(heir)), ['hand over']);
  t.deepEqual(rig.done('hand over'), ['shard-handover']);
  t.like(rig.proposed, [{ to: heir }]);
  t.deepEqual(rig.applied(), ['step down']);
  t.deepEqual([log.owner, log.state.moves], [heir, []]);
});

test('the server that a shard is moved to waits until it is to have a copy', (t) => {
  const log = new CopyLog();
  const [id = ''] = log.others;
  const rig = new Copies(log, id, log.start(id));
  rig.see();
  t.deepEqual(rig.see({ t: 'shard-move', shard: 0, epoch: log.shard(0).epoch, to: id }), []);
  t.deepEqual(rig.see(rig.add(id)), ['open']);
});
