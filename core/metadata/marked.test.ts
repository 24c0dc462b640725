/** Copies of servers that answered before their disks: what the metadata makes of them when they are back. */
import test from 'ava';
import { CopyLog } from '../../test/support/copy-log.js';
import { HELD, leasesAt } from '../../test/support/leases-at.js';
import { hexOf, joinOf } from '../../test/support/metadata-log.js';
import { Absences, nextCopies, RECOVER_MS, surplusCopy } from './copy-policy.js';
import { takeFromDead } from './leader-policy.js';
import { planReset } from './shard-loss.js';
import type { Copy, Policy } from './state.js';

const NOW = 4 * HELD;

interface At {
  readonly epoch: number;
  readonly lsn: number;
  readonly early?: true;
}

const early = (epoch: number, lsn: number): At => ({ epoch, lsn, early: true });

class EarlyLog extends CopyLog {
  readonly absences = new Absences();
  readonly first: string;
  #starts = 100;

  /** With copies in sync at the owner and so many others. */
  constructor(backups: number, policy: Partial<Policy> = {}) {
    super({ ...policy, level: 'durable' }, 4);
    this.first = this.owner!;
    this.with(...this.others.slice(0, backups));
  }

  starts(id: string, at?: At, copy = this.copy(id)?.id): this {
    const join = { ...joinOf(id, this.#starts++, Number(id.slice(1))), replaces: this.start(id) };
    const found = at === undefined || copy === undefined ? [] : [{ shard: 0, copy, worker: 2, ...at }];
    return this.do({ ...join, ...(found.length === 0 ? {} : { recovered: found }) });
  }

  /** To whom the leader gives the shard while only these servers live. */
  heir(...ids: string[]): string | undefined {
    const then = NOW + 2 * RECOVER_MS;
    this.absences.observe(this.state, leasesAt(NOW, { [NOW]: ids }), NOW);
    const leases = leasesAt(then, { [then]: ids });
    this.absences.observe(this.state, leases, then);
    const command =
      takeFromDead(this.state, leases, then, this.absences) ?? nextCopies(this.state, leases, then, this.absences);
    return command?.t === 'shards-given' || command?.t === 'shards-taken' ? command.shards[0]?.to : undefined;
  }

  gives(to: string, copy: Copy): string {
    return this.try({ t: 'shards-given', shards: [{ ...this.name, to, copy: copy.id! }] });
  }
}

test('a marked copy does not lead while another one in sync has no mark, however long that takes', (t) => {
  const log = new EarlyLog(1);
  const [owner, [a = '']] = [log.first, log.others];
  log.starts(owner, early(1, 900));
  t.is(log.owner, undefined);
  t.like(log.copy(owner), { state: 'in-sync', recovered: early(1, 900) });
  t.is(log.heir(owner), undefined);
  t.regex(log.gives(owner, log.copy(owner)!), /ERR_BUSY/);
  t.regex(log.promote(owner), /ERR_BUSY/);
  t.is(log.heir(owner, a), a);
  t.is(log.promote(a), 'ok');
  t.is(log.copy(owner), undefined, 'it is made anew');
});

test('a copy without a mark that did not come back stays where only a marked one is left', (t) => {
  const log = new EarlyLog(1);
  const [owner, [a = '']] = [log.first, log.others];
  log.starts(owner, early(1, 900)).starts(a);
  t.is(log.copy(a)?.state, 'in-sync', 'a later start may have it');
  t.is(log.heir(owner, a), undefined);
  t.regex(log.gives(owner, log.copy(owner)!), /ERR_BUSY/);
  // As it would be where the other one had no mark.
  const plain = new EarlyLog(1);
  plain.starts(plain.first, { epoch: 1, lsn: 900 }).starts(a);
  t.is(plain.copy(a), undefined);
});

test('the longest log is kept where its disk could not be read once, and only a shorter one is left', (t) => {
  const log = new EarlyLog(1);
  const [owner, [a = '']] = [log.first, log.others];
  log.starts(owner, early(1, 90)).starts(a, early(1, 100)).starts(a);
  t.like(log.copy(a), { state: 'in-sync', recovered: early(1, 100) });
  t.is(log.heir(owner, a), undefined);
  t.regex(log.gives(owner, log.copy(owner)!), /ERR_BUSY/);
  log.starts(a, early(1, 100));
  t.is(log.heir(owner, a), a);
  log.starts(owner);
  t.is(log.copy(owner), undefined, 'the other one has all of it');
});

test('one that waited for its disk, or ended in order, leads before a marked one with a longer log', (t) => {
  const log = new EarlyLog(1);
  const [owner, [a = '']] = [log.first, log.others];
  log.starts(owner, early(1, 900)).starts(a, { epoch: 1, lsn: 5 });
  t.is(log.heir(owner, a), a);
  t.regex(log.gives(owner, log.copy(owner)!), /ERR_BUSY/);
  t.is(log.gives(a, log.copy(a)!), 'ok');
  t.is(log.copy(owner), undefined);
});

test('of marked copies only the longest log leads, and only those that are as long stay in sync', (t) => {
  const log = new EarlyLog(2);
  const owner = log.first;
  const [a = '', b = ''] = log.others;
  log.starts(owner, early(1, 8)).starts(a, early(1, 9));
  t.is(log.heir(owner, a), undefined, 'one is not back');
  log.starts(b, early(1, 9));
  t.is(log.heir(owner), undefined, 'the longest is known, and is waited for');
  t.regex(log.gives(owner, log.copy(owner)!), /ERR_BUSY/);
  const heir = log.heir(owner, a, b)!;
  t.true(heir === a || heir === b);
  t.is(log.gives(heir, log.copy(heir)!), 'ok');
  t.is(log.copies, `${heir === a ? b : a} in-sync`);
  t.true(log.set.copies.every((c) => c.recovered === undefined));
});

test('a log of a later epoch is longer', (t) => {
  const log = new EarlyLog(1);
  const [owner, [a = '']] = [log.first, log.others];
  log.starts(owner, early(1, 900)).starts(a, early(2, 5));
  t.is(log.heir(owner, a), a);
  t.regex(log.gives(owner, log.copy(owner)!), /ERR_BUSY/);
});

test('a mark stays though the next start of its server ended in order', (t) => {
  const log = new EarlyLog(1);
  const { first } = log;
  log.starts(first, early(1, 8)).starts(first, { epoch: 1, lsn: 8 });
  t.deepEqual(log.copy(first)?.recovered, early(1, 8));
});

test('what joins begins anew when its server has acknowledged too much, or a marked copy leads', (t) => {
  const joins = (log: EarlyLog, id: string): EarlyLog => {
    const { member, start } = { member: id, start: log.start(id) };
    log.do({ t: 'copies-add', copies: [{ ...log.name, member, start, rank: 3 }] });
    return log.do({ t: 'copy-named', ...log.name, member, start, copy: hexOf(77), worker: 1 });
  };
  const log = new EarlyLog(0);
  const [a = ''] = log.others;
  joins(log, a);
  t.is(log.copies, `${a} joining`);
  log.starts(a, early(1, 5));
  t.is(log.copy(a), undefined);
  joins(log, a).starts(log.first, early(1, 4));
  t.is(log.owner, log.first, 'nobody else has what it has');
  t.is(log.copies, '', 'it may have what is lost');
});

test('a marked copy is in sync by leading alone: its owner takes it away, and believes nothing of it', (t) => {
  const log = new EarlyLog(2, { minInSync: 3 });
  const [a = '', b = ''] = log.others;
  log.starts(a, early(1, 5));
  log.without(a);
  t.is(log.copy(a), undefined, 'not even eligible');
  log.without(b);
  t.like(log.copy(b), { state: 'eligible' });
  log.starts(b, early(1, 5));
  t.like(log.copy(b), { state: 'eligible' });
  t.regex(log.try(log.inSync(b, log.copy(b)!.id!)), /ERR_BUSY: the copy of \w+ may lack/);
});

test('an eligible copy that never ended leads before marked ones in sync', (t) => {
  const log = new EarlyLog(1, { minInSync: 2 });
  const [owner, [a = '']] = [log.first, log.others];
  log.without(a).starts(owner, early(1, 900));
  t.like(log.copy(a), { state: 'eligible' });
  t.is(log.heir(owner), undefined);
  t.is(log.heir(owner, a), a);
});

test('marked copies do not count as in sync: an eligible one with all is not forgotten for them', (t) => {
  const log = new EarlyLog(1, { minInSync: 2 });
  const [owner, [a = '']] = [log.first, log.others];
  log.without(a).starts(owner, early(1, 900));
  log.do({ t: 'policy-set', tenant: 0, level: 'durable', replicas: 3, minInSync: 1, onLoss: 'wait' });
  t.like(log.copy(a), { state: 'eligible' });
  t.is(log.heir(owner, a), a);
});

test('a damaged copy stays where the others are marked', (t) => {
  const log = new EarlyLog(1);
  const [owner, [a = '']] = [log.first, log.others];
  const renounce = (id: string) =>
    log.try({ t: 'copies-removed', copies: [{ ...log.removal(id, false), damaged: true, lsn: 0 }] });
  log.starts(owner, early(1, 9));
  t.regex(renounce(a), /ERR_BUSY/);
  log.starts(a, early(1, 8));
  t.is(renounce(a), 'ok');
});

test('a whole copy of a durable shard is taken away by its owner alone', (t) => {
  const log = new EarlyLog(2, { replicas: 2 });
  const [a = '', b = ''] = log.others;
  const removed = (more: { readonly damaged?: true }): string =>
    log.try({ t: 'copies-removed', copies: [{ ...log.removal(a, false), lsn: 0, ...more }] });
  t.regex(removed({}), /ERR_BUSY/);
  // So the leader does not ask, and the owner knows which one is too many.
  t.is(nextCopies(log.state, leasesAt(NOW, { [NOW]: [log.first, a, b] }), NOW, log.absences)?.t, undefined);
  t.is(surplusCopy(log.state, log.shard(0), log.set)?.member, b);
  log.do({ t: 'server-drain', id: a, draining: true });
  t.is(surplusCopy(log.state, log.shard(0), log.set)?.member, a);
  t.is(removed({ damaged: true }), 'ok', 'by its own word');
  t.is(surplusCopy(log.state, log.shard(0), log.set), undefined);
});

test('an operator who knows that a copy never comes gives the shard to a marked one', (t) => {
  const log = new EarlyLog(1);
  const [owner, [a = '', b = '']] = [log.first, log.others];
  log.starts(owner, early(1, 9));
  const plan = (from: string | undefined, ...ids: string[]) =>
    planReset(log.state, { shard: 0, ...(from === undefined ? {} : { from }) }, leasesAt(NOW, { [NOW]: ids }), NOW);
  t.throws(() => plan(undefined, owner, b), { code: 'ERR_BUSY', message: /not lost/ });
  t.throws(() => plan(owner, owner, a), { code: 'ERR_BUSY', message: /not lost/ }, 'the other lives');
  const { command } = plan(owner, owner, b);
  t.is(log.try(command), 'ok');
  t.is(log.owner, owner);
  t.is(log.copies, '');
});

test('an operator is refused a marked copy while the longest one lives', (t) => {
  const log = new EarlyLog(2);
  const [owner, [a = '', b = '']] = [log.first, log.others];
  log.starts(owner, early(1, 9)).starts(a, early(1, 20)).starts(b, early(1, 5));
  const plan = () => planReset(log.state, { shard: 0, from: owner }, leasesAt(NOW, { [NOW]: [owner, a] }), NOW);
  t.throws(plan, { code: 'ERR_BUSY', message: new RegExp(`not lost: the copy of (${owner}|${a}) is in-sync`) });
});
