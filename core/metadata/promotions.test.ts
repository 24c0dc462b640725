/** Who gets a shard with what: promotion, handover, a dead owner's shards, restarts, what is lost. */
import test from 'ava';
import { CopyLog, REPLICATED } from '../../test/support/copy-log.js';
import { hexOf, joinOf } from '../../test/support/metadata-log.js';

/** The owner starts again. */
function restart(log: CopyLog, id: string, start = 30): CopyLog {
  return log.do({ ...joinOf(id, start), replaces: log.start(id) });
}

test('a copy in sync is promoted: it is open at once in its worker, others stay in sync, the last owner joins', (t) => {
  const log = new CopyLog();
  const [a = '', b = ''] = log.others;
  const { owner, set } = log.with(a, b);
  const before = log.shard(0);
  t.is(log.promote(a), 'ok');
  t.like(log.shard(0), { owner: a, worker: 1, epoch: before.epoch + 1, incarnation: hexOf(500), regions: [] });
  t.is(log.copies, `${b} in-sync, ${owner} joining`);
  t.is(log.copy(owner!)?.id, set.copies.find(({ member }) => member === owner)?.id, 'with what it has');
  t.is(log.set.config, set.config + 1);
});

test('of two promotions of one config the second is refused', (t) => {
  const log = new CopyLog();
  const [a = '', b = ''] = log.others;
  log.with(a, b);
  const second = { t: 'shards-promoted', id: b, memberIncarnation: log.start(b), shards: [log.promotion(b)] } as const;
  t.is(log.promote(a), 'ok');
  t.regex(log.try(second), /ERR_BUSY/);
  t.is(log.owner, a);
});

test('what joins is not promoted, and what is eligible not by itself', (t) => {
  const log = new CopyLog({ minInSync: 2 });
  const [a = '', b = ''] = log.others;
  log.with(a).without(a);
  t.regex(log.promote(a), /ERR_BUSY/);
  log.do({ t: 'copies-add', copies: [{ ...log.name, member: b, start: log.start(b), rank: 0 }] });
  t.regex(log.promote(b), /ERR_BUSY/);
});

test('the last owner joins the next one, however few are left; eligible copies go', (t) => {
  const log = new CopyLog({ minInSync: 3 });
  const [a = '', b = ''] = log.others;
  const { owner } = log.with(a, b).without(b);
  t.is(log.copies, `${a} in-sync, ${b} eligible`);
  t.is(log.promote(a), 'ok');
  t.is(log.copies, `${owner} joining`);
});

test('an owner hands its shard over to a copy in sync, and stays in sync itself', (t) => {
  const log = new CopyLog();
  const [a = ''] = log.others;
  const { owner, name, byOwner } = log.with(a);
  const copy = log.copy(a)!.id!;
  t.is(log.set.handed, undefined);
  t.is(log.try({ t: 'shard-handover', ...name, ...byOwner, to: a, copy, incarnation: hexOf(5), ends: false }), 'ok');
  t.like(log.shard(0), { owner: a, incarnation: hexOf(5), epoch: name.epoch + 1 });
  t.is(log.copies, `${owner} in-sync`);
  t.is(log.set.handed, name.epoch + 1);
  log.do({ t: 'copies-keep', ...log.name, ...log.byOwner });
  t.is(log.set.handed, log.shard(0).epoch, 'who applies several entries at once knows it too');
  t.is(log.promote(owner!), 'ok');
  t.not(log.set.handed, log.shard(0).epoch, 'the next epoch was not handed over');
});

test('the copy of an owner that ends goes with the handover', (t) => {
  const log = new CopyLog();
  const [a = '', b = ''] = log.others;
  const { name, byOwner } = log.with(a, b);
  const copy = log.copy(a)!.id!;
  t.is(log.try({ t: 'shard-handover', ...name, ...byOwner, to: a, copy, incarnation: hexOf(5), ends: true }), 'ok');
  t.is(log.copies, `${b} in-sync`);
});

test("a dead owner's shard goes to a copy that is in sync or eligible, and to no other", (t) => {
  const log = new CopyLog({ minInSync: 2 });
  const [a = '', b = '', c = ''] = log.others;
  log.with(a).do({ t: 'copies-add', copies: [{ ...log.name, member: b, start: log.start(b), rank: 0 }] });
  const id = log.copy(a)!.id!;
  t.regex(log.take(a), /ERR_BUSY/, 'empty');
  t.regex(log.take(b, { copy: id }), /ERR_BUSY/, 'the copy of another');
  t.regex(log.take(c, { copy: hexOf(9) }), /ERR_BUSY/, 'no copy');
  t.regex(log.take(a, { copy: id, config: log.set.config - 1 }), /ERR_BUSY/, 'an earlier config');
  const { owner } = log.without(a);
  t.is(log.take(a, { copy: id }), 'ok');
  t.like(log.shard(0), { owner: a, worker: 1, incarnation: undefined });
  t.is(log.copies, `${b} joining, ${owner} joining`);
  t.is(log.copy(a)?.state, 'in-sync');
  log.open(0, 200);
  t.is(log.copy(a)?.id, id, 'it is opened with its copy');
});

test('a dead owner of the only copy keeps its shard where that waits, and loses it where it does not', (t) => {
  const log = new CopyLog();
  t.regex(log.take(log.others[0]!), /ERR_BUSY/);
  log.do({ t: 'policy-set', tenant: 0, ...REPLICATED, onLoss: 'empty' });
  const [a = ''] = log.others;
  t.is(log.take(a), 'ok');
  t.deepEqual(log.set.copies, []);
  log.open(0, 200);
  t.deepEqual(
    log.set.copies.map(({ member, id }) => [member, id]),
    [[a, hexOf(200)]],
  );
});

test('an owner that starts again does not get a shard empty that others have: it goes to one of those', (t) => {
  const log = new CopyLog({ onLoss: 'empty' });
  const [a = '', b = ''] = log.others;
  const owner = log.with(a).owner!;
  const { epoch } = log.shard(0);
  restart(log, owner);
  t.like(log.shard(0), { owner: undefined, epoch: epoch + 1, incarnation: undefined });
  t.is(log.copies, `${a} in-sync`);
  t.regex(log.try({ t: 'assign-shards' }), /ERR_BUSY/);
  t.regex(log.try({ t: 'shards-given', shards: [{ ...log.name, to: b, copy: log.copy(a)!.id! }] }), /ERR_BUSY/);
  t.is(log.try({ t: 'shards-given', shards: [{ ...log.name, to: a, copy: log.copy(a)!.id! }] }), 'ok');
  t.like(log.shard(0), { owner: a, worker: 1, epoch: epoch + 2 });
});

test('a shard without an owner is opened at once by a copy that promotes itself', (t) => {
  const log = new CopyLog();
  const [a = ''] = log.others;
  restart(log.with(a), log.owner!);
  t.is(log.promote(a), 'ok');
  t.like(log.shard(0), { owner: a, incarnation: hexOf(500) });
});

test('copies that join do not go on with other contents than they were made of', (t) => {
  const log = new CopyLog({ onLoss: 'empty' });
  const [a = '', b = '', c = ''] = log.others;
  log.with(a, b).without(a).without(b);
  t.is(log.copies, `${a} joining, ${b} joining`);
  t.true(log.set.copies.every(({ id }) => id !== undefined));
  t.is(log.take(c), 'ok');
  t.is(log.copies, `${a} joining, ${b} joining`);
  t.true(log.set.copies.every(({ id }) => id === undefined));
  const reset = new CopyLog();
  const [d = '', e = ''] = reset.others;
  const lost = reset
    .with(d, e)
    .without(d)
    .without(e)
    .set.copies.flatMap(({ id }) => id ?? []);
  const from = { start: reset.start(d), copy: reset.copy(d)!.id!, worker: 1 };
  t.is(reset.try({ t: 'shard-reset', ...reset.name, to: d, lost, from }), 'ok');
  t.is(reset.copy(e)?.id, undefined);
  t.is(reset.copy(e)?.state, 'joining');
});

test('when the last copy is gone a shard waits, or is served empty, as its policy says', (t) => {
  const waits = new CopyLog();
  restart(waits, waits.owner!);
  t.is(waits.owner, undefined);
  t.regex(waits.try({ t: 'assign-shards' }), /ERR_BUSY/);
  const empty = new CopyLog({ onLoss: 'empty' });
  const owner = empty.owner!;
  restart(empty, owner);
  t.is(empty.owner, owner);
  const [a = ''] = empty.open(0, 101).others;
  restart(restart(empty.with(a), owner, 40), a, 41);
  t.is(empty.owner, undefined);
  t.is(empty.try({ t: 'assign-shards' }), 'ok');
});

test('a shard that was never served has nothing to wait for; once it counts its own copy it has', (t) => {
  const fresh = (): CopyLog => new CopyLog({}, 4, false).openNew(0, 100);
  const log = fresh();
  t.is(log.copies, `${log.owner} joining`);
  const owner = log.owner!;
  restart(log, owner);
  t.is(log.owner, owner, 'it opens it anew');
  const [a = ''] = log.others;
  const other = fresh();
  t.is(other.take(a), 'ok', 'the leader gives it to another, empty');
  t.is(other.owner, a);
  const served = fresh().count(0);
  t.is(served.copies, '');
  t.regex(served.take(a), /ERR_BUSY/);
  restart(served, served.owner!);
  t.is(served.owner, undefined);
  for (const policy of [{ onLoss: 'empty' }, { replicas: 1 }] as const)
    t.is(new CopyLog(policy, 4, false).openNew(0, 100).copies, '', 'its policy waits for nothing');
});

test('a shard that was never open is lost by nobody', (t) => {
  const log = new CopyLog();
  const [a = ''] = log.others;
  t.is(log.try({ t: 'shard-reset', ...log.name, to: a, lost: [log.copy(log.owner!)!.id!] }), 'ok');
  restart(log, a);
  t.is(log.owner, a);
});

test('an operator resets a shard to what is left, or empty, when every copy that may come back is given up by name', (t) => {
  const log = new CopyLog();
  const [a = '', b = ''] = log.others;
  const ids = log.with(a).set.copies.map((c) => c.id!);
  const named = { member: b, start: log.start(b), copy: hexOf(77), worker: 2 };
  log.do({ t: 'copies-add', copies: [{ ...log.name, member: b, start: log.start(b), rank: 1 }] });
  log.do({ t: 'copy-named', ...log.name, ...named });
  const reset = { t: 'shard-reset', ...log.name, to: b } as const;
  t.regex(log.try({ ...reset, lost: ids.slice(1) }), /ERR_BUSY: s\d has a copy of shard 0 that is in-sync/);
  const from = { start: log.start(b), copy: hexOf(77), worker: 2 };
  t.regex(log.try({ ...reset, lost: ids, from: { ...from, start: hexOf(99) } }), /ERR_BUSY/);
  t.regex(log.try({ ...reset, lost: ids, from: { ...from, copy: hexOf(99) } }), /ERR_BUSY.*no such copy/);
  t.is(log.try({ ...reset, lost: ids, from }), 'ok');
  t.like(log.shard(0), { owner: b, worker: 2, incarnation: undefined });
  t.deepEqual(
    log.set.copies.map(({ member, id, state }) => [member, id, state]),
    [[b, hexOf(77), 'in-sync']],
  );
  log.open(0, 200);
  t.is(log.copy(b)?.id, hexOf(77));
});
