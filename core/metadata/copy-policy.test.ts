import test from 'ava';
import { CopyLog, REPLICATED } from '../../test/support/copy-log.js';
import { HELD, leasesAt } from '../../test/support/leases-at.js';
import { bootstrapOf, hexOf, joinOf, MetadataLog } from '../../test/support/metadata-log.js';
import type { CopiesAdd, CopiesRemoved, CopyCommand } from './copy-commands.js';
import { Absences, copyLooksMs, JOINS_AT_ONCE, nextCopies, REJOIN_MS, REPLACE_MS, STUCK_MS } from './copy-policy.js';
import { FORMAT_FIRST } from './format.js';
import { dueCommand, nextLookMs, lostMove, takeFromDead } from './leader-policy.js';
import type { GrantedLeases } from './owner-leases.js';

const NOW = 4 * HELD;
/** These members are alive, others dead. */
const alive = (...ids: string[]): GrantedLeases => leasesAt(NOW, { [NOW]: ids });
const ALL = ['s1', 's2', 's3', 's4'];

let named = 3000;
/** Does what the leader proposes, and lets each copy that joins be in sync, until nothing is left to do. */
function settle(log: CopyLog, leases: GrantedLeases, absences = new Absences()): CopyCommand['t'][] {
  const done: CopyCommand['t'][] = [];
  for (let i = 0; i < 50; i++) {
    const command = nextCopies(log.state, leases, NOW, absences);
    const joins = log.set.copies.find((c) => c.state === 'joining');
    if (command === undefined && joins === undefined) return done;
    if (command !== undefined) done.push(command.t);
    log.do(command ?? log.inSync(joins!.member, hexOf(named++)));
  }
  throw new Error('the leader is never done');
}

test('nothing is done about copies of caches, nor where there are no copy sets', (t) => {
  const absences = new Absences();
  t.is(nextCopies(MetadataLog.cluster(4, ALL).state, alive(...ALL), NOW, absences), undefined);
  const log = new CopyLog({ level: 'cache', replicas: 1, onLoss: 'empty' });
  t.is(nextCopies(log.state, alive(...ALL), NOW, absences), undefined);
});

test('how long a member has been dead is told in whole milliseconds', (t) => {
  const log = new CopyLog({ replicas: 3 });
  const absences = new Absences();
  absences.observe(log.state, alive(), NOW + 0.25);
  t.is(absences.silentMs(log.owner!, NOW + 1000.75), 1001);
  t.is(absences.silentMs(log.owner!, NOW), 0);
});

test('copies are added up to the factor, and taken away when it falls', (t) => {
  const log = new CopyLog({ replicas: 3 });
  t.deepEqual(settle(log, alive(...ALL)), ['copies-add', 'copies-add']);
  t.is(log.set.copies.length, 3);
  log.do({ t: 'policy-set', tenant: 0, ...REPLICATED, replicas: 2 });
  const last = log.set.copies.toSorted((a, b) => b.rank - a.rank)[0]!;
  t.deepEqual(settle(log, alive(...ALL)), ['copies-removed']);
  t.is(log.copy(last.member), undefined);
  log.do({ t: 'policy-set', tenant: 0, level: 'cache', replicas: 1, minInSync: 1, onLoss: 'empty' });
  settle(log, alive(...ALL));
  t.is(log.set.copies.length, 1);
});

test('a copy that joins is not removed while its owner is away: it may be all that is left', (t) => {
  const log = new CopyLog({ replicas: 2 });
  const [a = '', b = '', c = ''] = log.others;
  log.do({ t: 'copies-add', copies: [{ ...log.name, member: a, start: log.start(a), rank: 1 }] });
  const absences = new Absences();
  absences.observe(log.state, alive(b, c), NOW);
  const then = NOW + REJOIN_MS;
  const later = (...ids: string[]): GrantedLeases => leasesAt(then, { [then]: ids });
  t.is(nextCopies(log.state, later(b, c), then, absences), undefined, 'it is away, too');
  t.like(nextCopies(log.state, later(log.owner!, b, c), then, absences), { t: 'copies-removed' });
  log.do({ t: 'server-drain', id: a, draining: true });
  t.is(nextCopies(log.state, alive(a, b, c), NOW, new Absences()), undefined);
});

test('a copy that joins is removed when its member has been dead for a time; one in sync is left to its owner', (t) => {
  const log = new CopyLog({ replicas: 3 });
  const [a = '', b = ''] = log.others;
  log.with(a).do({ t: 'copies-add', copies: [{ ...log.name, member: b, start: log.start(b), rank: 1 }] });
  const absences = new Absences();
  absences.observe(log.state, alive(log.owner!), NOW);
  t.is(nextCopies(log.state, alive(log.owner!), NOW, absences), undefined, 'it may come back');
  const then = NOW + REJOIN_MS;
  const later = leasesAt(then, { [then]: [log.owner!] });
  const command = nextCopies(log.state, later, then, absences);
  t.like(command, { t: 'copies-removed', copies: [{ member: b }] });
  t.is(nextCopies(log.do(command!).state, later, then, absences), undefined);
});

test('a dead member has its place for a time; then another has the copy', (t) => {
  const log = new CopyLog({ replicas: 2 });
  const first = (nextCopies(log.state, alive(...ALL), NOW, new Absences()) as CopiesAdd).copies[0]!.member;
  const others = alive(...ALL.filter((id) => id !== first));
  const absences = new Absences();
  absences.observe(log.state, others, NOW);
  t.is(nextCopies(log.state, others, NOW, absences), undefined);
  const later = leasesAt(NOW + REPLACE_MS, { [NOW + REPLACE_MS]: ALL.filter((id) => id !== first) });
  t.deepEqual(copyLooksMs(log.state, others, NOW, absences), [NOW + REJOIN_MS]);
  t.deepEqual(copyLooksMs(log.state, others, NOW + REJOIN_MS, absences), [NOW + REPLACE_MS]);
  absences.observe(log.state, later, NOW + REPLACE_MS);
  const command = nextCopies(log.state, later, NOW + REPLACE_MS, absences) as CopiesAdd;
  t.not(command.copies[0]!.member, first);
  absences.observe(log.state, leasesAt(NOW, { [NOW]: ALL }), NOW);
  t.false(absences.isReplaced(first, NOW + REPLACE_MS), 'it is back');
});

test(`at most ${JOINS_AT_ONCE} copies are made from a server, and to a server, at a time`, (t) => {
  const log = MetadataLog.cluster(24, ALL);
  log.do({ t: 'policy-set', tenant: 0, ...REPLICATED });
  for (let shard = 0; shard < 24; shard++) log.open(shard, 100 + shard);
  for (let i = 0; i < 3; i++) {
    const command = nextCopies(log.state, alive(...ALL), NOW, new Absences());
    if (command !== undefined) log.do(command);
  }
  const joins = log.state.copySets.flatMap(({ copies }, shard) =>
    copies.filter((c) => c.state === 'joining').map((c) => [log.shard(shard).owner!, c.member]),
  );
  t.true(joins.length >= 2);
  for (const id of ALL) t.true(joins.flat().filter((one) => one === id).length <= JOINS_AT_ONCE, id);
});

test('copies that a dead owner was making keep no places of living servers', (t) => {
  const log = MetadataLog.cluster(8, ALL);
  log.do({ t: 'policy-set', tenant: 0, ...REPLICATED, onLoss: 'wait' });
  for (let shard = 0; shard < 8; shard++) log.open(shard, 100 + shard);
  const dead = log.shard(0).owner!;
  const [a = '', b = '', c = ''] = ALL.filter((id) => id !== dead);
  const its = log.state.shards.filter(({ owner }) => owner === dead);
  t.is(its.length, JOINS_AT_ONCE);
  for (const { shard, epoch } of its) {
    for (const [rank, member] of [a, b].entries()) {
      const { config } = log.state.copySets[shard]!;
      const { incarnation: start } = log.state.members.get(member)!;
      log.do({ t: 'copies-add', copies: [{ shard, epoch, config, member, start, rank: rank + 1 }] });
    }
  }
  const command = nextCopies(log.state, alive(a, b, c), NOW, new Absences()) as CopiesAdd;
  t.is(command.t, 'copies-add');
  for (const id of [a, b])
    t.true(
      command.copies.some(({ member }) => member === id),
      `${id} takes copies`,
    );
});

test('a drained server has its copies taken away when others have them, and gets none', (t) => {
  const log = new CopyLog({ replicas: 2 });
  const [a = ''] = log.others;
  log.with(a).do({ t: 'server-drain', id: a, draining: true });
  t.deepEqual(settle(log, alive(...ALL)), ['copies-add', 'copies-removed']);
  t.is(log.copy(a), undefined);
  t.is(log.set.copies.length, 2);
  log.do({ t: 'server-drain', id: log.owner!, draining: true });
  t.is(lostMove(log.state, alive(...ALL), NOW), undefined, 'it is handed over, not moved');
});

test('drained servers give their copies up one by one where there is room for no more', (t) => {
  const six = [...ALL, 's5', 's6'];
  const log = new CopyLog({ replicas: 3 }, 6);
  const [a = '', b = ''] = log.others;
  log.with(a, b);
  for (const id of [log.owner!, a, b]) log.do({ t: 'server-drain', id, draining: true });
  const owner = log.owner!;
  settle(log, alive(...six));
  const stay = six.filter((id) => ![owner, a, b].includes(id));
  const held = (): string[] => log.set.copies.map(({ member }) => member);
  t.true(held().includes(owner));
  t.is(log.promote(held().find((id) => stay.includes(id)) ?? ''), 'ok', 'the owner hands over');
  settle(log, alive(...six));
  t.deepEqual(held().sort(), stay);
});

test('a shard that its drained owner can hand over gets no copy before: the handover would be refused', (t) => {
  const log = new CopyLog({ replicas: 2 });
  const [a = '', b = '', c = ''] = log.others;
  const owner = log.with(a).owner!;
  const next = (leases: GrantedLeases): CopyCommand | undefined => nextCopies(log.state, leases, NOW, new Absences());
  log.do({ t: 'server-drain', id: owner, draining: true });
  t.is(next(alive(...ALL)), undefined);
  // Not while that copy's server is silent, nor where it is drained too.
  t.is(next(alive(owner, b, c))?.t, 'copies-add');
  log.do({ t: 'server-drain', id: a, draining: true });
  t.is(next(alive(...ALL))?.t, 'copies-add');
  log.do({ t: 'server-drain', id: a, draining: false });
  t.is(log.promote(a), 'ok');
  settle(log, alive(...ALL));
  t.is(log.set.copies.length, 2);
  t.is(log.copy(owner), undefined, 'its place is taken then');
});

const moveTo = (log: CopyLog, to: string) => ({ t: 'shard-move', shard: 0, epoch: log.shard(0).epoch, to }) as const;

test('a server that a shard is moved to gets a copy beyond the factor; one goes when it is the owner', (t) => {
  const log = new CopyLog({ replicas: 2 });
  const [a = '', b = ''] = log.others;
  const owner = log.with(a).owner!;
  log.do(moveTo(log, b));
  t.deepEqual(settle(log, alive(...ALL)), ['copies-add']);
  t.is(log.copies, `${a} in-sync, ${b} in-sync`);
  t.is(log.promote(b), 'ok');
  log.with(...(log.copy(owner) === undefined ? [owner] : []));
  t.deepEqual(settle(log, alive(...ALL)), ['copies-removed']);
  t.is(log.set.copies.length, 2);
});

test('the copy that is one too many goes where most copies are', (t) => {
  const log = MetadataLog.cluster(6, ALL);
  log.do({ t: 'policy-set', tenant: 0, ...REPLICATED, replicas: 3 });
  const byOwner = (shard: number) => {
    const owner = log.shard(shard).owner!;
    return { owner, memberIncarnation: log.state.members.get(owner)!.incarnation };
  };
  for (let shard = 0; shard < 6; shard++) {
    log.open(shard, 100 + shard);
    ALL.filter((id) => id !== log.shard(shard).owner)
      // s4 has few copies, and joins last.
      .slice(0, shard === 5 ? 3 : 2)
      .forEach((member, rank) => {
        const name = { shard, epoch: log.shard(shard).epoch };
        const config = (): number => log.state.copySets[shard]!.config;
        const start = log.state.members.get(member)!.incarnation;
        log.do({ t: 'copies-add', copies: [{ ...name, config: config(), member, start, rank }] });
        const copy = hexOf(1000 + 10 * shard + rank);
        log.do({
          t: 'copies-in-sync',
          ...name,
          config: config(),
          ...byOwner(shard),
          member,
          start,
          copy,
          worker: 0,
          lsn: 0,
        });
      });
  }
  const counts = new Map(
    ALL.map((id) => [id, log.state.copySets.filter((set) => set.copies.some((c) => c.member === id)).length]),
  );
  const command = nextCopies(log.state, alive(...ALL), NOW, new Absences());
  t.like(command, { t: 'copies-removed', copies: [{ shard: 5 }] });
  const [removed] = (command as CopiesRemoved).copies;
  const backups = ALL.filter((id) => id !== log.shard(5).owner);
  t.is(counts.get(removed!.member), Math.max(...backups.map((id) => counts.get(id)!)));
  t.true(Math.max(...backups.map((id) => counts.get(id)!)) > Math.min(...backups.map((id) => counts.get(id)!)));
});

test('a handover is called off when no copy will come to that server', (t) => {
  const called = (log: CopyLog, ...ids: string[]): unknown => lostMove(log.state, alive(...ids), NOW);
  const begin = (): [CopyLog, string] => {
    const log = new CopyLog({ replicas: 2 });
    const [a = ''] = log.others;
    return [log.do(moveTo(log, a)), a];
  };
  const [log, a] = begin();
  t.is(called(log, ...ALL), undefined);
  const off = { ...moveTo(log, log.owner!), planned: log.state.moves[0]!.planned };
  t.deepEqual(called(log, ...ALL.filter((id) => id !== a)), off, 'it is dead');
  t.deepEqual(called(log.do({ t: 'server-drain', id: a, draining: true }), ...ALL), off, 'it is drained');
});

test('a vacant shard goes to a living copy when the leases of every earlier start are over', (t) => {
  const log = new CopyLog();
  const [a = '', b = ''] = log.others;
  const owner = log.with(a, b).owner!;
  const leases = alive(...ALL);
  const members = (): Parameters<GrantedLeases['observe']>[0] => log.state.members.values();
  leases.observe(members(), NOW);
  log.do({ ...joinOf(owner, 40), replaces: log.start(owner) });
  leases.observe(members(), NOW + 1);
  t.is(nextCopies(log.state, leases, NOW + HELD - 1, new Absences()), undefined);
  t.deepEqual(copyLooksMs(log.state, leases, NOW + 1, new Absences()), [NOW + HELD]);
  leases.grant(b, NOW + HELD);
  t.like(nextCopies(log.state, leases, NOW + HELD, new Absences()), { t: 'shards-given', shards: [{ to: b }] });
  leases.grant(a, NOW + HELD);
  const given = nextCopies(log.state, leases, NOW + HELD, new Absences());
  const first = [a, b].sort((x, y) => log.copy(x)!.rank - log.copy(y)!.rank)[0]!;
  t.like(given, { t: 'shards-given', shards: [{ to: first, copy: log.copy(first)!.id }] });
  log.do(given!);
  t.is(log.owner, first);
});

test("a dead owner's shard goes to a living copy: in sync before eligible, staying before drained", (t) => {
  const log = new CopyLog({ minInSync: 3 });
  const [a = '', b = ''] = log.others;
  const owner = log.with(a, b).owner!;
  const living = ALL.filter((id) => id !== owner);
  log.do({ t: 'server-drain', id: a, draining: true });
  const to = (): unknown => takeFromDead(log.state, alive(...living), NOW)?.shards[0];
  t.like(to(), { to: b, copy: log.copy(b)!.id, config: log.set.config });
  log.without(b);
  t.like(to(), { to: a }, 'b is eligible');
  t.like(takeFromDead(log.state, alive(b), NOW)?.shards[0], { to: b });
  t.is(log.try(takeFromDead(log.state, alive(b), NOW)!), 'ok');
  t.is(log.owner, b);
});

test('a dead owner with nobody to follow: the shard waits, or is emptied when all of its copies are dead', (t) => {
  const log = new CopyLog();
  const [a = '', , c = ''] = log.others;
  const owner = log.with(a).owner!;
  t.is(takeFromDead(log.state, alive(c), NOW), undefined);
  log.do({ t: 'policy-set', tenant: 0, ...REPLICATED, onLoss: 'empty' });
  t.like(takeFromDead(log.state, alive(c), NOW)?.shards[0], { to: c, copy: undefined });
  // The leader was deaf: the member of the copy may come back, though its lease is over. The owner has ended in order.
  const leases = leasesAt(NOW, { [NOW]: ALL });
  const later = NOW + 2 * HELD;
  leases.confirmed(later);
  leases.end(owner, later);
  leases.grant(c, later);
  t.true(leases.dead(owner, later) && leases.over(a, later) && !leases.dead(a, later));
  t.is(takeFromDead(log.state, leases, later), undefined);
});

test('a shard that was never open goes to anybody', (t) => {
  const log = new CopyLog();
  const [a = '', b = ''] = log.others;
  log.do({ t: 'shard-reset', ...log.name, to: a, lost: [log.copy(log.owner!)!.id!] });
  const taken = takeFromDead(log.state, alive(b), NOW)!;
  t.like(taken.shards[0], { to: b, copy: undefined });
  t.is(log.try(taken), 'ok');
});

test('what is due about copies is part of what the leader does, and it looks again when a member with copies may be dead', (t) => {
  const log = new CopyLog({ replicas: 2 });
  const raise = { known: FORMAT_FIRST, knownBy: () => FORMAT_FIRST };
  t.is(dueCommand(log.state, alive(...ALL), NOW, new Set(), raise)?.t, 'copies-add');
  const [a = ''] = log.others;
  log.with(a);
  const leases = leasesAt(NOW, { [NOW - 200]: [a], [NOW]: [log.owner!] });
  t.is(nextLookMs(log.state, leases, NOW), leases.lookAt(a, NOW));
});

test('a copy that has a name and does not get in sync is called off, while its owner is there', (t) => {
  const log = new CopyLog({ replicas: 2 });
  const [a = ''] = log.others;
  const named = { member: a, start: log.start(a), copy: hexOf(77), worker: 0 };
  log.do({ t: 'copies-add', copies: [{ ...log.name, member: a, start: log.start(a), rank: 1 }] });
  log.do({ t: 'copy-named', ...log.name, ...named });
  const absences = new Absences();
  absences.observe(log.state, alive(...ALL), NOW);
  const then = NOW + STUCK_MS;
  t.is(nextCopies(log.state, leasesAt(then - 1, { [then - 1]: ALL }), then - 1, absences), undefined);
  const all = leasesAt(then, { [then]: ALL });
  const command = nextCopies(log.state, all, then, absences);
  t.like(command, { t: 'copies-removed', copies: [{ member: a, failed: true }] });
  // While the owner is away it may be all that is left.
  absences.observe(log.state, leasesAt(then, { [then]: log.others }), then);
  t.is(nextCopies(log.state, all, then, absences), undefined, 'the time begins anew');
});

test('the shards of a drained server go to all others by their parts, wherever these are', (t) => {
  const ids = ['s1', 's2', 's3', 's4', 's5'];
  const log = new MetadataLog().do(
    bootstrapOf(40, ids),
    ...ids.map((id, i) => ({ ...joinOf(id, i + 1), control: [`${id === 's5' ? 'b' : 'a'}:740${i}`] })),
    { t: 'assign-shards' },
  );
  for (const { shard } of log.state.shards) log.open(shard, 100 + shard);
  log.do({ t: 'server-drain', id: 's1', draining: true });
  const absences = new Absences();
  for (let left = log.ownedBy('s1').length; left > 0; left = log.ownedBy('s1').length) {
    absences.observe(log.state, alive(...ids), NOW);
    const command = nextCopies(log.state, alive(...ids), NOW, absences) as CopiesAdd;
    t.is(command.t, 'copies-add');
    for (const { shard, member } of command.copies) {
      log.do({ t: 'shard-move', shard, epoch: 1, to: member });
      log.arrive(shard, 1000 + shard);
    }
  }
  const most = Math.max(...ids.map((id) => log.ownedBy(id).length));
  t.true(most <= 11, ids.map((id) => log.ownedBy(id).length).join());
});
