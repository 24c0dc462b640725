/** Copies that come back from disks: what a join leaves of them, and who gets the shard (docs/durable-cluster.md). */
import test from 'ava';
import { CopyLog } from '../../test/support/copy-log.js';
import { HELD, leasesAt } from '../../test/support/leases-at.js';
import { bootstrapOf, joinOf, MetadataLog } from '../../test/support/metadata-log.js';
import type { MemberJoin } from './commands.js';
import { Absences, nextCopies, RECOVER_MS } from './copy-policy.js';
import { durable, isGone } from './copy-sets.js';
import { takeFromDead } from './leader-policy.js';
import type { Copy, Policy } from './state.js';

const NOW = 4 * HELD;

class DurableLog extends CopyLog {
  /** What every server had on its disk when the power went. */
  #disks: readonly Copy[] = [];

  constructor(policy: Partial<Policy> = {}, servers = 3) {
    super({ ...policy, level: 'durable' }, servers);
  }

  powerIsGone(): this {
    this.#disks = this.set.copies;
    return this;
  }

  /** With what its disk has, up to there. */
  starts(id: string, at?: { readonly epoch: number; readonly lsn: number }): this {
    const copy = this.#disks.find((c) => c.member === id)?.id;
    const join: MemberJoin = { ...joinOf(id, 100 + Number(id.slice(1))), replaces: this.start(id) };
    if (at === undefined || copy === undefined) return this.do(join);
    return this.do({ ...join, recovered: [{ shard: 0, copy, worker: 2, ...at }] });
  }
}

const alive = (at: number, ...ids: string[]) => leasesAt(at, { [at]: ids });

test('a cluster that is made durable has copy sets at once', (t) => {
  const log = new MetadataLog().do({ ...bootstrapOf(1, ['s1']), policy: durable(1) });
  t.deepEqual(log.state.copySets, [{ config: 1, copies: [] }]);
  t.deepEqual(durable(3), { level: 'durable', replicas: 2, minInSync: 1, onLoss: 'wait' });
});

test('shards that are open do not become durable, nor are durable ones anything else', (t) => {
  const cache = { t: 'policy-set', tenant: 0, level: 'cache', replicas: 1, minInSync: 1, onLoss: 'empty' } as const;
  t.regex(new DurableLog().try(cache), /ERR_UNSUPPORTED: what is durable stays so/);
  const other = new CopyLog();
  t.regex(other.try({ t: 'policy-set', tenant: 0, ...durable(3) }), /ERR_UNSUPPORTED: what is not durable stays so/);
  t.is(new DurableLog().try({ t: 'policy-set', tenant: 0, ...durable(3), minInSync: 2 }), 'ok');
});

test('durable values wait for servers that are silent, since these come back with their disks', (t) => {
  const policy = { t: 'policy-set', tenant: 0, ...durable(3), onLoss: 'empty' } as const;
  t.regex(new DurableLog().try(policy), /ERR_CONFIG: durable values wait for the servers that have them on disks/);
});

test('a new durable shard has nothing to wait for before its copy counts', (t) => {
  const log = new CopyLog({ level: 'durable', replicas: 1 }, 1, false).openNew(0, 100);
  t.is(log.copies, 's1 joining');
  log.do({ ...joinOf('s1', 30), replaces: log.start('s1') });
  t.is(log.owner, 's1');
  t.is(log.set.copies.length, 0);
});

test('a sole copy that comes back is its owner again at once, where it is', (t) => {
  const log = new DurableLog({ replicas: 1 }, 1).powerIsGone();
  const { epoch } = log.shard(0);
  log.starts('s1', { epoch, lsn: 5 });
  t.like(log.shard(0), { owner: 's1', epoch: epoch + 1, worker: 2, incarnation: undefined });
  t.deepEqual(
    log.set.copies.map(({ member, state, start, recovered }) => ({ member, state, start, recovered })),
    [{ member: 's1', state: 'in-sync', start: log.start('s1'), recovered: undefined }],
  );
});

test('what a disk has under another name is none of the copies', (t) => {
  const log = new DurableLog();
  const [a = ''] = log.others;
  const { owner } = log.with(a);
  const recovered = [{ shard: 0, copy: '0'.repeat(15) + '1', worker: 0, epoch: 9, lsn: 900 }];
  log.do({ ...joinOf(a, 77), replaces: log.start(a), recovered });
  t.is(log.copy(a), undefined);
  t.is(log.owner, owner);
});

test('a copy that comes back while its owner lives stays what it was, with the new start', (t) => {
  const log = new DurableLog();
  const [a = ''] = log.others;
  const { owner, set } = log.with(a).powerIsGone();
  log.starts(a, { epoch: 1, lsn: 5 });
  t.is(log.owner, owner);
  t.like(log.copy(a), { state: 'in-sync', start: log.start(a), worker: 2, recovered: { epoch: 1, lsn: 5 } });
  t.true(log.set.config > set.config);
  t.is(log.promote(a), 'ok');
  t.true(log.set.copies.every((c) => c.recovered === undefined));
});

test('the longest log leads, when all copies are back', (t) => {
  for (const [first, second] of [
    [
      { epoch: 2, lsn: 9 },
      { epoch: 3, lsn: 4 },
    ],
    [
      { epoch: 3, lsn: 3 },
      { epoch: 3, lsn: 4 },
    ],
  ] as const) {
    const log = new DurableLog();
    const [a = ''] = log.others;
    const owner = log.with(a).powerIsGone().owner!;
    const absences = new Absences();
    const next = (...ids: string[]) => {
      const leases = alive(NOW, ...ids);
      absences.observe(log.state, leases, NOW);
      return nextCopies(log.state, leases, NOW, absences);
    };
    log.starts(owner, first);
    t.is(log.owner, undefined);
    t.is(next(owner), undefined, 'the other may have more');
    log.starts(a, second);
    const command = next(owner, a);
    t.like(command, { t: 'shards-given', shards: [{ to: a }] });
    log.do(command!);
    t.is(log.owner, a);
    t.is(log.copies, `${owner} in-sync`);
  }
});

test('a copy that is back leads when the others did not come for a time', (t) => {
  const log = new DurableLog();
  const [a = ''] = log.others;
  const owner = log.with(a).powerIsGone().owner!;
  log.starts(owner, { epoch: 1, lsn: 5 });
  const absences = new Absences();
  absences.observe(log.state, alive(NOW, owner), NOW);
  t.true((absences.nextEndMs(NOW) ?? Infinity) <= NOW + RECOVER_MS);
  const then = NOW + RECOVER_MS;
  t.is(nextCopies(log.state, alive(then - 1, owner), then - 1, absences), undefined);
  t.like(nextCopies(log.state, alive(then, owner), then, absences), { t: 'shards-given', shards: [{ to: owner }] });
});

test('where the owner did not come back, its copies that did are waited for in the same way', (t) => {
  const log = new DurableLog();
  const [a = '', b = ''] = log.others;
  const owner = log.with(a, b).powerIsGone().owner!;
  log.starts(a, { epoch: 1, lsn: 5 });
  const absences = new Absences();
  const taken = (at: number, ...ids: string[]) => takeFromDead(log.state, alive(at, ...ids), at, absences);
  absences.observe(log.state, alive(NOW, a), NOW);
  t.is(taken(NOW, a), undefined);
  log.starts(b, { epoch: 1, lsn: 7 });
  t.is(taken(NOW, a, b), undefined, `${owner} may have more`);
  t.like(taken(NOW + RECOVER_MS, a, b), { t: 'shards-taken', shards: [{ to: b }] });
});

test('a copy that was never away leads at once', (t) => {
  const log = new DurableLog();
  const [a = ''] = log.others;
  const owner = log.with(a).powerIsGone().owner!;
  log.starts(owner, { epoch: 1, lsn: 500 });
  const command = nextCopies(log.state, alive(NOW, owner, a), NOW, new Absences());
  t.like(command, { t: 'shards-given', shards: [{ to: a }] });
});

test('a copy that is damaged goes where another may come; the only one waits, for a later start or an operator', (t) => {
  const log = new DurableLog();
  const [a = ''] = log.others;
  const owner = log.with(a).powerIsGone().owner!;
  log.starts(a);
  t.is(log.copy(a), undefined);
  log.starts(owner);
  t.is(log.owner, undefined);
  t.like(log.copy(owner), { state: 'in-sync' });
  t.true(isGone(log.state, log.shard(0)));
  t.is(nextCopies(log.state, alive(NOW, owner, a), NOW, new Absences()), undefined);
  // The disk can be read again.
  log.do({
    ...joinOf(owner, 300),
    replaces: log.start(owner),
    recovered: [{ shard: 0, copy: log.copy(owner)!.id!, worker: 0, epoch: 1, lsn: 5 }],
  });
  t.false(isGone(log.state, log.shard(0)));
});
