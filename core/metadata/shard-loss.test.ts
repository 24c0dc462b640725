import test from 'ava';
import { CopyLog } from '../../test/support/copy-log.js';
import { HELD, leasesAt } from '../../test/support/leases-at.js';
import { hexOf, joinOf } from '../../test/support/metadata-log.js';
import type { GrantedLeases } from './owner-leases.js';
import { countedDead } from './counted-dead.js';
import { takeFromDead } from './leader-policy.js';
import { nextReset, planReset } from './shard-loss.js';

const NOW = 4 * HELD;
const alive = (...ids: string[]): GrantedLeases => leasesAt(NOW, { [NOW]: ids });

/** The shard of the log, with a copy in sync at one other server, and two servers without one. */
function twoCopies(): { log: CopyLog; owner: string; backup: string; others: string[] } {
  const log = new CopyLog();
  const [backup = '', ...others] = log.others;
  return { log: log.with(backup), owner: log.owner!, backup, others };
}

test('a shard whose copies are all dead is reset to a living server, and names what is given up', (t) => {
  const { log, owner, backup, others } = twoCopies();
  const { command, lost } = planReset(log.state, { shard: 0 }, alive(...others), NOW);
  t.deepEqual(lost.map((c) => c.member).sort(), [owner, backup].sort());
  t.true(others.includes(command.to));
  t.is(command.from, undefined);
  t.is(log.try(command), 'ok');
  t.like(log.shard(0), { owner: command.to, incarnation: undefined });
});

test('a shard is not reset while a copy may come back, and its server is named', (t) => {
  const { log, owner, backup, others } = twoCopies();
  const why = (...ids: string[]): string =>
    t.throws(() => planReset(log.state, { shard: 0 }, alive(...ids), NOW), { code: 'ERR_BUSY' }).message;
  t.regex(why(owner, ...others), new RegExp(`not lost: its owner ${owner} `));
  t.regex(why(backup, ...others), new RegExp(`not lost: the copy of ${backup} is in-sync`));
  const early = leasesAt(0, { 0: others });
  t.throws(() => planReset(log.state, { shard: 0 }, early, 0), { code: 'ERR_BUSY', message: /not lost/ });
});

test('a vacant shard is reset only when the leases of earlier starts are over', (t) => {
  const { log, owner, backup } = twoCopies();
  log.do(joinOf(owner, 50, Number(owner.slice(1))), joinOf(backup, 51, Number(backup.slice(1))));
  t.is(log.owner, undefined);
  const early = leasesAt(0, { 0: [owner] });
  t.throws(() => planReset(log.state, { shard: 0 }, early, 0), { code: 'ERR_BUSY', message: /try again in \d+ ms/ });
  const { command, lost } = planReset(log.state, { shard: 0 }, alive(owner), NOW);
  t.deepEqual(lost, []);
  t.like(command, { to: owner, lost: [] });
});

test('servers whose values a reset gives up are known, and none is given up by two entries at once', (t) => {
  const { log, owner, backup, others } = twoCopies();
  const leases = alive(...others);
  const { command } = planReset(log.state, { shard: 0 }, leases, NOW);
  t.deepEqual(countedDead(log.state, command), [owner, backup]);
  leases.withhold(backup);
  t.false(leases.grant(backup, NOW), 'a server that is back meanwhile is no living one');
  t.throws(() => planReset(log.state, { shard: 0 }, leases, NOW), {
    code: 'ERR_BUSY',
    message: `shards of ${backup} are being given to others: try again`,
  });
  leases.release(backup);
  t.deepEqual(planReset(log.state, { shard: 0 }, leases, NOW).command, command);
  log.do(joinOf(backup, 51, Number(backup.slice(1))));
  const later = planReset(log.state, { shard: 0 }, alive(...others, backup), NOW);
  t.false(countedDead(log.state, later.command).includes(backup), 'a later start has none of its values');
});

test('an owner whose shard comes empty to another counts as dead with the servers of its copies', (t) => {
  const { log, owner, backup, others } = twoCopies();
  log.do({ t: 'policy-set', tenant: 0, level: 'replicated', replicas: 2, minInSync: 1, onLoss: 'empty' });
  const leases = alive(...others);
  const command = takeFromDead(log.state, leases, NOW)!;
  t.is(command.shards[0]?.copy, undefined);
  t.deepEqual(countedDead(log.state, command).sort(), [owner, backup].sort());
  leases.withhold(backup);
  t.is(takeFromDead(log.state, leases, NOW), undefined, 'what becomes of its values is decided elsewhere');
  leases.release(backup);
  t.deepEqual(takeFromDead(log.state, leases, NOW), command);
  const promoted = takeFromDead(log.state, alive(backup, ...others), NOW)!;
  t.deepEqual(countedDead(log.state, promoted), [owner], 'its copy is given to it');
});

test('a vacant shard whose policy waits for nobody is served empty once nobody who has its values is there', (t) => {
  const { log, owner, backup, others } = twoCopies();
  log.do(joinOf(owner, 50, Number(owner.slice(1))));
  t.is(log.owner, undefined, 'its copy is to lead');
  t.is(nextReset(log.state, alive(owner, ...others), NOW), undefined, 'an operator is waited for');
  log.do({ t: 'policy-set', tenant: 0, level: 'cache', replicas: 1, minInSync: 1, onLoss: 'empty' });
  t.is(nextReset(log.state, alive(owner, backup, ...others), NOW), undefined, 'the copy is there');
  t.is(nextReset(log.state, leasesAt(0, { 0: [owner] }), 0), undefined, 'clients may rely on the last owner');
  const reset = nextReset(log.state, alive(owner, ...others), NOW)!;
  t.is(log.try(reset), 'ok');
  t.like(log.shard(0), { owner: reset.to, incarnation: undefined });
  t.is(nextReset(log.state, alive(owner, ...others), NOW), undefined);
});

test('a copy that joins, at a server that answers, may become the shard; no other', (t) => {
  const { log, others } = twoCopies();
  const [a = '', b = ''] = others;
  log.do({ t: 'copies-add', copies: [{ ...log.name, member: a, start: log.start(a), rank: 1 }] });
  const from = (id: string, ...ids: string[]) =>
    planReset(log.state, { shard: 0, from: id }, alive(...ids), NOW).command;
  t.throws(() => from(a, a), { code: 'ERR_CONFIG', message: /no server has/ }, 'it has no name yet');
  log.do({ t: 'copy-named', ...log.name, member: a, start: log.start(a), copy: hexOf(77), worker: 2 });
  t.throws(() => from(b, a, b), { code: 'ERR_CONFIG', message: new RegExp(`these have one: ${a}`) });
  t.throws(() => from(a, b), { code: 'ERR_CONFIG' }, 'it is dead');
  const command = from(a, a);
  t.deepEqual(command.from, { start: log.start(a), copy: hexOf(77), worker: 2 });
  t.is(log.try(command), 'ok');
  t.like(log.copy(a), { id: hexOf(77), state: 'in-sync' });
});

test('what is no shard, or waits for nobody, is refused', (t) => {
  const log = new CopyLog({}, 4, false);
  t.throws(() => planReset(log.state, { shard: 7 }, alive('s1'), NOW), { code: 'ERR_CONFIG' });
  t.throws(() => planReset(log.state, { shard: 0 }, alive(...log.others, log.owner!), NOW), { code: 'ERR_BUSY' });
  const { log: lost } = twoCopies();
  t.throws(() => planReset(lost.state, { shard: 0 }, alive(), NOW), { code: 'ERR_BUSY', message: /no server can/ });
});

test('a copy that its server has given up is offered to nobody, and the refusal says what to do', (t) => {
  const { log, others } = twoCopies();
  const [a = '', b = ''] = others;
  const named = (member: string, copy: number, renounced?: true): unknown =>
    log.do({
      t: 'copy-named',
      ...log.name,
      ...{ member, start: log.start(member), copy: hexOf(copy), worker: 2 },
      ...(renounced === undefined ? {} : { renounced }),
    });
  const why = (id: string): string =>
    t.throws(() => planReset(log.state, { shard: 0, from: id }, alive(...others), NOW), { code: 'ERR_CONFIG' }).message;
  log.do({ t: 'copies-add', copies: [{ ...log.name, member: a, start: log.start(a), rank: 1 }] });
  named(a, 77);
  const { command } = planReset(log.state, { shard: 0, from: a }, alive(...others), NOW);
  named(a, 78, true);
  t.regex(log.try(command), /ERR_BUSY/, 'it was decided before');
  t.regex(why(a), /given up what it had.*no server has one: say --accept-loss without --from/);
  t.regex(log.try(log.inSync(a, hexOf(78))), /ERR_BUSY/);
  const { config } = log.name;
  const from = { start: log.start(a), copy: hexOf(78), worker: 2 };
  const lost = log.set.copies.flatMap((c) => (c.state === 'joining' ? [] : (c.id ?? [])));
  t.regex(log.try({ t: 'shard-reset', ...log.name, config, to: a, from, lost }), /ERR_BUSY.*no such copy/);
  log.do({ t: 'copies-add', copies: [{ ...log.name, member: b, start: log.start(b), rank: 1 }] });
  named(b, 79);
  t.regex(why(a), new RegExp(`these have one: ${b}`));
  named(a, 80);
  t.is(planReset(log.state, { shard: 0, from: a }, alive(...others), NOW).command.from?.copy, hexOf(80), 'made anew');
});

test('a shard that came with a copy which is not there waits for another copy, or for an operator', (t) => {
  const { log, owner, backup } = twoCopies();
  const copy = log.copy(backup)!.id!;
  const missing = (more = {}): string =>
    log.try({ t: 'copy-missing', ...log.name, member: backup, start: log.start(backup), copy, ...more });
  t.regex(missing(), /ERR_BUSY/, 'it is not the owner');
  t.is(log.take(backup, { copy }), 'ok');
  for (const more of [{ copy: hexOf(5) }, { start: hexOf(5) }, { member: owner }, { epoch: 1 }, { config: 1 }])
    t.regex(missing(more), /ERR_BUSY/, JSON.stringify(more));
  const { epoch } = log.shard(0);
  t.is(missing(), 'ok');
  t.like(log.shard(0), { owner: undefined, epoch: epoch + 1 });
  t.is(log.copies, `${owner} joining`);
  const { log: open, backup: leads } = twoCopies();
  const led = open.copy(leads)!.id!;
  open.take(leads, { copy: led });
  open.open(0, 200);
  t.regex(
    open.try({ t: 'copy-missing', ...open.name, member: leads, start: open.start(leads), copy: led }),
    /ERR_BUSY/,
    'it may have been served',
  );
});
