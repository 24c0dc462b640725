/** Copies that cannot be made between two living servers: who may be given which, and when. */
import test from 'ava';
import { CopyLog } from '../../test/support/copy-log.js';
import { leasesAt } from '../../test/support/leases-at.js';
import { bootstrapOf, joinOf, MetadataLog } from '../../test/support/metadata-log.js';
import type { Command } from './commands.js';
import { Absences, nextCopies } from './copy-policy.js';
import { failedJoins } from './join-rests.js';

function add(log: CopyLog, member: string): void {
  log.do({ t: 'copies-add', copies: [{ ...log.name, member, start: log.start(member), rank: 1 }] });
}

const calledOff = (log: CopyLog, member: string): Command => ({
  t: 'copies-removed',
  copies: [{ ...log.removal(member, false), failed: true }],
});

/** By its own server. */
function callOff(log: CopyLog, member: string): string {
  return log.try(calledOff(log, member));
}

/** It joins, and that is called off. */
function fails(log: CopyLog, member: string): void {
  add(log, member);
  log.do(calledOff(log, member));
}

test('a join that is called off is counted, until it succeeds, or a server of the two has begun anew', (t) => {
  const log = new CopyLog();
  const [a = '', b = ''] = log.others;
  const times = (): string =>
    failedJoins(log.state, 0)
      .map((f) => `${f.member} ${f.times}`)
      .join(', ');
  for (const n of [1, 2]) {
    add(log, a);
    t.is(callOff(log, a), 'ok');
    t.is(times(), `${a} ${n}`);
  }
  fails(log, b);
  t.is(times(), `${a} 2, ${b} 1`);
  log.with(a);
  t.is(times(), `${b} 1`);
  t.is(callOff(log, a), 'ok');
  t.is(times(), `${b} 1`, 'it was in sync');
  log.do({ ...joinOf(b, 70, Number(b.slice(1))), replaces: log.start(b) });
  t.is(times(), '');
  fails(log, b);
  t.is(times(), `${b} 1`);
  log.with(a);
  log.promote(a);
  t.is(times(), '', 'another owner');
});

test('what was called off is made elsewhere, and there again after a rest that doubles', (t) => {
  const log = new CopyLog({ replicas: 2 }, 3);
  const absences = new Absences();
  const ids = [log.owner!, ...log.others];
  let now = 100_000;
  const next = (): string | undefined => {
    const leases = leasesAt(now, { [now]: ids });
    absences.observe(log.state, leases, now);
    const command = nextCopies(log.state, leases, now, absences);
    return command?.t === 'copies-add' ? command.copies[0]?.member : undefined;
  };
  const first = next()!;
  const second = log.others.find((id) => id !== first)!;
  fails(log, first);
  t.is(next(), second);
  fails(log, second);
  t.is(next(), undefined);
  t.is(absences.nextEndMs(now), now + 5_000);
  now += 5_000;
  t.is(next(), first);
  fails(log, first);
  t.is(next(), second);
  fails(log, second);
  now += 9_999;
  t.is(next(), undefined);
  // It has more memory now.
  log.do({ ...joinOf(second, 80, Number(second.slice(1))), replaces: log.start(second) });
  t.is(next(), second);
  fails(log, second);
  now += 1;
  t.is(next(), first);
});

test('joins that are called off free the places of other copies of the two servers', (t) => {
  const log = new MetadataLog();
  log.do({ ...bootstrapOf(4, ['s1', 's2']), shards: 4 });
  log.do(joinOf('s1', 1), joinOf('s2', 2), { t: 'assign-shards' });
  log.do({ t: 'policy-set', tenant: 0, level: 'replicated', replicas: 2, minInSync: 1, onLoss: 'wait' });
  for (const { shard } of log.state.shards) log.open(shard, 100 + shard);
  const absences = new Absences();
  const next = (): number[] => {
    const leases = leasesAt(1000, { 1000: ['s1', 's2'] });
    absences.observe(log.state, leases, 1000);
    const command = nextCopies(log.state, leases, 1000, absences);
    if (command?.t !== 'copies-add') return [];
    log.do(command);
    return command.copies.map(({ shard }) => shard);
  };
  t.deepEqual(next(), [0, 1]);
  t.deepEqual(next(), [], 'both servers take part in two joins');
  for (const shard of [0, 1]) {
    const { config, copies } = log.state.copySets[shard]!;
    const { member, start } = copies.find((c) => c.state === 'joining')!;
    const name = { shard, epoch: log.shard(shard).epoch, config };
    log.do({ t: 'copies-removed', copies: [{ ...name, member, start, whole: false, failed: true, lsn: 0 }] });
  }
  t.deepEqual(next(), [2, 3]);
});

test('what could not be copied to a server goes elsewhere first, as do other shards of the same owner', (t) => {
  const log = MetadataLog.cluster(6, ['s1', 's2', 's3']);
  for (const { shard } of log.state.shards) log.open(shard, 100 + shard);
  log.do({ t: 'server-drain', id: 's1', draining: true });
  const absences = new Absences();
  const next = (now: number): string[] => {
    const leases = leasesAt(now, { [now]: ['s1', 's2', 's3'] });
    absences.observe(log.state, leases, now);
    const command = nextCopies(log.state, leases, now, absences);
    return command?.t === 'copies-add' ? command.copies.map(({ member }) => member) : [];
  };
  const first = log.ownedBy('s1')[0]!;
  const name = () => ({ shard: first, epoch: 1, config: log.state.copySets[first]!.config });
  const s3 = { member: 's3', start: log.state.members.get('s3')!.incarnation };
  log.do({ t: 'copies-add', copies: [{ ...name(), ...s3, rank: 1 }] });
  log.do({ t: 'copies-removed', copies: [{ ...name(), ...s3, whole: false, failed: true, lsn: 0 }] });
  t.deepEqual(next(1000), ['s2', 's2'], 'both shards');
  t.deepEqual(next(301_000).length, 2, 'and later there again');
});

test('while a server that is to have a shard cannot be given a copy of it, others are', (t) => {
  const log = new CopyLog({ replicas: 2 }, 3);
  const absences = new Absences();
  const ids = [log.owner!, ...log.others];
  const next = (): string | undefined => {
    const leases = leasesAt(1000, { 1000: ids });
    absences.observe(log.state, leases, 1000);
    const command = nextCopies(log.state, leases, 1000, absences);
    return command?.t === 'copies-add' ? command.copies[0]?.member : undefined;
  };
  const [a = '', b = ''] = log.others;
  log.do({ t: 'shard-move', shard: 0, epoch: log.shard(0).epoch, to: a });
  t.is(next(), a);
  fails(log, a);
  t.is(next(), b);
  fails(log, b);
  t.is(next(), undefined, 'neither can');
});
