/** What becomes of the copies that a start of a server has found on its disk (docs/durable-cluster.md). */
import test from 'ava';
import { CopyLog } from '../../test/support/copy-log.js';
import { hexOf, joinOf } from '../../test/support/metadata-log.js';
import { Rig } from '../../test/support/shards-rig.js';
import { RECOVER_MS } from '../metadata/copy-policy.js';
import { copiesNow } from './progress.js';

const START = 30;

class Back extends Rig<CopyLog> {
  constructor(
    log: CopyLog,
    readonly id: string,
    whole = true,
    copy = log.copy(id)?.id ?? '',
  ) {
    const { epoch } = log.shard(0);
    super(log, id, hexOf(START), 100, [{ shard: 0, copy, worker: 1, whole, epoch, lsn: 5 }]);
  }

  /** The join of this start is applied, with what it has found. */
  joins(copy?: string, mark: { readonly early?: true } = {}): string[] {
    const { log, id } = this;
    const at = { shard: 0, worker: 1, epoch: log.shard(0).epoch, lsn: 5, ...mark };
    const recovered = copy === undefined ? [] : [{ ...at, copy }];
    return this.see({ ...joinOf(id, START), replaces: log.start(id), recovered });
  }
}

/** A copy in sync at a server that starts again, while its owner goes on. */
function backup(): Back {
  const log = new CopyLog({ level: 'durable' });
  const [id = ''] = log.others;
  return new Back(log.with(id), id);
}

test('a copy that is back follows its owner, and nothing is copied', (t) => {
  const rig = backup();
  t.deepEqual(rig.joins(rig.log.copy(rig.id)!.id), ['wait 40000', 'follow owner']);
  t.deepEqual(
    rig.notes.map(({ of }) => of),
    ['copy is back'],
  );
});

test('the copy of an owner leads again, where it was', (t) => {
  const log = new CopyLog({ level: 'durable', replicas: 1 }, 1);
  const rig = new Back(log, 's1');
  t.deepEqual(rig.joins(log.copy('s1')!.id), ['wait 40000', `lead ${log.set.config} []`]);
  t.false(rig.shards.settled);
  t.deepEqual(rig.done('lead'), ['announce']);
});

test('a server has started when what is only on its disk is served', (t) => {
  const rig = backup();
  const { log } = rig;
  const owner = log.owner!;
  const copy = log.copy(owner)!.id!;
  const back = new Back(log, owner);
  back.see({
    ...joinOf(owner, START),
    replaces: log.start(owner),
    recovered: [{ shard: 0, copy, worker: 1, epoch: log.shard(0).epoch, lsn: 5 }],
  });
  t.is(log.owner, undefined);
  t.true(back.shards.settled, 'another server may have it');
});

test('what the metadata has no more is thrown away, also what could not be read', (t) => {
  for (const whole of [true, false]) {
    const log = new CopyLog({ level: 'durable' });
    const [id = ''] = log.others;
    const rig = new Back(log, id, whole, hexOf(9));
    t.deepEqual(rig.joins(), whole ? ['stop'] : ['discard']);
    if (whole) t.deepEqual(rig.done('stop'), ['keep base'], 'under another name');
  }
});

test('what the metadata has no more is closed where enough other copies are', (t) => {
  const log = new CopyLog({ level: 'durable', replicas: 2 });
  const [id = '', other = ''] = log.others;
  const rig = new Back(log.with(other), id, true, hexOf(9));
  rig.joins();
  t.deepEqual(rig.done('stop'), ['close']);
});

test('the only copy is kept when it could not be read', (t) => {
  const log = new CopyLog({ level: 'durable', replicas: 1 }, 1);
  const rig = new Back(log, 's1', false);
  t.deepEqual(rig.joins(), []);
  t.is(log.owner, undefined);
});

test('a copy that could not be read is thrown away when the metadata has it no more', (t) => {
  const log = new CopyLog({ level: 'durable', replicas: 1 }, 1);
  const rig = new Back(log, 's1', false);
  const { id = '' } = log.copy('s1')!;
  rig.joins();
  log.do({ t: 'shard-reset', ...log.name, to: 's1', lost: [id] });
  t.true(rig.see().includes('discard'));
  t.false(rig.see().includes('discard'), 'once');
});

test('a copy that is back gives its owner time to come', (t) => {
  const rig = backup();
  const { id } = rig.log.copy(rig.id)!;
  rig.joins(id);
  rig.shards.ownerSuspected(0, id!, { prepared: 5 });
  t.deepEqual(rig.asked(), [`wait ${RECOVER_MS}`]);
  t.deepEqual(rig.waited(RECOVER_MS), ['shards-promoted']);
});

test('a marked copy follows nobody and asks for nothing, until it is made anew or leads', (t) => {
  const rig = backup();
  const { id } = rig.log.copy(rig.id)!;
  t.deepEqual(rig.joins(id, { early: true }), ['wait 40000']);
  rig.shards.ownerSuspected(0, id!, { prepared: 5 });
  t.deepEqual(rig.asked(), []);
  rig.log.without(rig.id);
  t.deepEqual(rig.see(), ['stop']);
  t.deepEqual(rig.done('stop'), ['keep base']);
});

/** An owner of a durable shard, and copies in sync at others. */
function owning(backups: number, replicas = 2): { rig: Rig<CopyLog>; log: CopyLog; others: readonly string[] } {
  const log = new CopyLog({ level: 'durable', replicas }, 4, false);
  const owner = log.owner!;
  const others = log.others.slice(0, backups);
  const rig = new Rig(log, owner, log.start(owner));
  rig.see();
  rig.done('open');
  log.openNew(0, 101);
  rig.shards.lastRunOver();
  rig.see();
  log.do(log.inSync(owner, log.copy(owner)!.id!));
  rig.done('announce');
  rig.see();
  rig.done('serve');
  log.with(...others);
  rig.see();
  return { rig, log, others };
}

test('an owner has a marked copy removed at once', (t) => {
  const { rig, log, others } = owning(1);
  const [other = ''] = others;
  const copy = log.copy(other)!.id!;
  const recovered = [{ shard: 0, copy, worker: 1, epoch: log.shard(0).epoch, lsn: 5, early: true }] as const;
  log.do({ ...joinOf(other, START), replaces: log.start(other), recovered });
  t.true(rig.see().includes('rely on disk'));
  t.deepEqual(rig.done('rely on disk'), ['copies-removed']);
  const { minInSync } = copiesNow({ metadata: log.state }, log.shard(0), log.set);
  t.is(minInSync, 2, 'it does not count for new changes');
  t.true(rig.notes.some((note) => note.of === 'copy marked' && note.member === other));
});

test('an owner takes a copy away when its own disk has what was answered, in that config', (t) => {
  const { rig, log, others } = owning(1);
  const id = log.copy(others[0]!)!.id!;
  rig.notices(id, 'joined');
  t.deepEqual(rig.notices(id, 'late'), ['wait 60000', 'rely on disk']);
  log.do({ t: 'copies-keep', ...log.name, owner: log.owner!, memberIncarnation: log.start(log.owner!) });
  rig.see();
  // What the data plane has said is of the config before.
  t.deepEqual(rig.done('rely on disk'), ['rely on disk']);
  t.deepEqual(rig.done('rely on disk', { full: false, error: 'it closes' }), ['wait 100']);
  t.deepEqual(rig.waited(100), ['rely on disk']);
  t.deepEqual(rig.done('rely on disk'), ['copies-removed']);
});

test('of a durable shard the owner takes away what is one too many, and it does not join again', (t) => {
  const { rig, log, others } = owning(2, 3);
  t.false(rig.asked().includes('rely on disk'));
  t.true(
    rig
      .see({ t: 'policy-set', tenant: 0, level: 'durable', replicas: 2, minInSync: 1, onLoss: 'wait' })
      .includes('rely on disk'),
  );
  t.deepEqual(rig.done('rely on disk'), ['copies-removed']);
  const before = log.set.copies.length;
  const [removed] = others;
  log.do({
    t: 'copies-removed',
    by: { owner: log.owner!, memberIncarnation: log.start(log.owner!) },
    copies: [{ ...log.removal(removed!, false), surplus: true }],
  });
  t.is(log.set.copies.length, before - 1);
});

test('a server that ends keeps what is on its disk', (t) => {
  const log = new CopyLog({ level: 'durable' });
  const [id = ''] = log.others;
  log.with(id);
  const rig = new Back(log, id);
  rig.joins(log.copy(id)!.id);
  rig.shards.leave();
  t.deepEqual(rig.asked(), []);
  t.deepEqual(rig.shards.staying, []);
  const sole = new Back(new CopyLog({ level: 'durable', replicas: 1 }, 1), 's1');
  sole.joins(sole.log.copy('s1')!.id);
  sole.done('lead');
  sole.shards.endAll();
  t.deepEqual(sole.asked(), ['pause']);
});

test('a new durable shard is on the disk before it counts', (t) => {
  const log = new CopyLog({ level: 'durable', replicas: 1 }, 1, false);
  const rig = new Rig(log);
  t.deepEqual(rig.see(), ['open']);
  t.deepEqual(rig.done('open'), ['announce']);
  log.openNew(0, 101);
  rig.shards.lastRunOver();
  rig.see();
  t.deepEqual(rig.done('announce'), ['snapshot']);
  t.deepEqual(rig.done('snapshot'), ['copies-in-sync']);
});
