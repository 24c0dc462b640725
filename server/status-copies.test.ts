/** What operators see of copies, and what they may ask for. */
import test from 'ava';
import { REPLICATED } from '../core/metadata/copy-sets.js';
import { CopyLog } from '../test/support/copy-log.js';
import { bootstrapOf, joinOf, MetadataLog } from '../test/support/metadata-log.js';
import { lackText, policyFrom, renderReplication } from './cli/commands/replication.js';
import {
  copiesStatus,
  copiesText,
  levelLines,
  levelPassedOver,
  levelText,
  replicationStatus,
} from './status-copies.js';

const text = (log: CopyLog, lag?: number, answers: (id: string) => boolean = () => true): string =>
  copiesText(copiesStatus(log.state, 0, lag, answers));

test('copies in sync are counted, with the servers that have them and what is wrong', (t) => {
  const log = new CopyLog({ replicas: 2, minInSync: 2 });
  const owner = log.owner!;
  const [a = ''] = log.others;
  t.is(text(log), `1/2 ${owner} TOO FEW`);
  log.do({ t: 'policy-set', tenant: 0, level: 'replicated', replicas: 2, minInSync: 1, onLoss: 'wait' });
  t.is(text(log), `1/2 ${owner} DEGRADED`);
  log.do({ t: 'copies-add', copies: [{ ...log.name, member: a, start: log.start(a), rank: 1 }] });
  t.is(text(log), `1/2 ${owner} ${a} (joining) DEGRADED`);
  t.is(copiesText(copiesStatus(log.state, 0, 0, () => true, [a])), `1/2 ${owner} ${a} (late too often) DEGRADED`);
  log.do(log.inSync(a, '0000000000000009'));
  t.is(text(log, 3), `2/2 ${owner} ${a} lag 3`);
  t.is(text(log, 0), `2/2 ${owner} ${a}`);
});

test("the owner's copy comes first, also where another one was the owner's before", (t) => {
  const log = new CopyLog({ replicas: 2 });
  const first = log.owner!;
  const [a = ''] = log.others;
  log.with(a).do({ t: 'shards-promoted', id: a, memberIncarnation: log.start(a), shards: [log.promotion(a)] });
  t.is(log.owner, a);
  t.deepEqual(
    log.set.copies.map(({ member }) => member),
    [first, a],
  );
  t.is(text(log), `1/2 ${a} ${first} (joining) DEGRADED`);
});

test('a copy that could not be made is told with its server, and with what it lacks', (t) => {
  const log = new CopyLog({ replicas: 2 });
  const [a = '', b = ''] = log.others;
  const fails = (id: string): unknown => {
    log.do({ t: 'copies-add', copies: [{ ...log.name, member: id, start: log.start(id), rank: 1 }] });
    return log.do({ t: 'copies-removed', copies: [{ ...log.removal(id, false), failed: true }] });
  };
  fails(a);
  fails(b);
  fails(b);
  const status = copiesStatus(
    log.state,
    0,
    0,
    () => true,
    [],
    (id) => id === b,
  );
  t.deepEqual(status?.notCopied, [
    { member: a, times: 1 },
    { member: b, times: 2, full: true },
  ]);
  t.is(copiesText(status), `1/2 ${log.owner!} ${a} (not copied) ${b} (full) DEGRADED`);
  log.with(a);
  t.is(copiesText(copiesStatus(log.state, 0, 0, () => true)), `2/2 ${log.owner!} ${a}`);
  log.do({ t: 'server-drain', id: a, draining: true });
  t.is(text(log), `2/2 ${log.owner!} ${a} ${b} (not copied)`, 'its place is to be taken');
  log.do({ t: 'server-drain', id: b, draining: true });
  t.is(text(log), `2/2 ${log.owner!} ${a}`, 'none is to be made there');
});

test('a shard is lost when no server with a copy in sync answers', (t) => {
  const log = new CopyLog({ replicas: 2 });
  const owner = log.owner!;
  const [a = '', b = ''] = log.others;
  log.with(a);
  t.is(
    text(log, 0, (id) => id === a),
    `1/2 ${owner} (away) ${a}`,
  );
  t.is(
    text(log, 0, (id) => id === b),
    `0/2 ${owner} (away) ${a} (away) LOST`,
  );
});

test('a shard awaits servers with its values only while nobody who answers may become its owner', (t) => {
  const log = new CopyLog({ level: 'durable', replicas: 2 });
  const owner = log.owner!;
  const [a = '', b = ''] = log.others;
  log.with(a);
  const awaits = (...up: string[]): readonly string[] | undefined =>
    copiesStatus(log.state, 0, 0, (id) => up.includes(id))?.awaits;
  t.is(awaits(owner, a, b), undefined);
  t.is(awaits(a, b), undefined);
  t.deepEqual(awaits(b)?.toSorted(), [owner, a].sort());
  // It is back, and its disk may lack what it had acknowledged (--sync).
  const found = { shard: 0, copy: log.copy(owner)!.id!, worker: 2, epoch: 1, lsn: 900, early: true } as const;
  const join = joinOf(owner, 100, Number(owner.slice(1)));
  log.do({ ...join, replaces: log.start(owner), recovered: [found] });
  t.is(log.owner, undefined);
  t.deepEqual(awaits(owner, b), [a]);
  t.is(awaits(owner, a, b), undefined);
  const { copies = [], trouble } = copiesStatus(log.state, 0, 0, (id) => id === owner) ?? {};
  t.deepEqual(
    copies.filter(({ marked }) => marked === true).map(({ member }) => member),
    [owner],
  );
  t.is(trouble, 'lost');
  log.do({ ...joinOf(a, 101, Number(a.slice(1))), replaces: log.start(a) });
  t.deepEqual(awaits(owner, a, b), [a], 'it is back without its copy');
});

test('a cache says nothing of copies', (t) => {
  const log = new CopyLog();
  log.do({ t: 'policy-set', tenant: 0, level: 'cache', replicas: 1, minInSync: 1, onLoss: 'empty' });
  t.is(text(log), '-');
  t.deepEqual(replicationStatus(log.state), [{ level: 'cache', replicas: 1, minInSync: 1, onLoss: 'empty' }]);
});

test('what an operator does not say has a default by level; what does not fit is refused', (t) => {
  const given = { replicas: undefined, minInSync: undefined, onLoss: undefined };
  const replicated = policyFrom({ ...given, level: 'replicated' }, undefined);
  t.deepEqual(replicated, { level: 'replicated', replicas: 2, minInSync: 1, onLoss: 'wait' });
  t.deepEqual(policyFrom({ ...given, level: 'cache' }, undefined), {
    level: 'cache',
    replicas: 1,
    minInSync: 1,
    onLoss: 'empty',
  });
  for (const wrong of [{ replicas: 6 }, { replicas: 0 }, { replicas: 1.5 }, { minInSync: 3 }])
    t.throws(() => policyFrom({ ...given, level: 'replicated', ...wrong }, undefined), { code: 'ERR_CONFIG' });
  const isCache = { level: 'cache', replicas: 1, minInSync: 1, onLoss: 'empty' } as const;
  for (const [asked, way] of [
    [{ replicas: 3 }, /: --level replicated --replicas 3$/],
    [{ onLoss: 'wait' }, /: --level replicated --replicas 2 --on-loss wait$/],
  ] as const)
    t.throws(() => policyFrom({ ...given, level: undefined, ...asked }, isCache), { code: 'ERR_CONFIG', message: way });
  t.regex(renderReplication([{ tenant: 'blue', ...replicated }]), /blue +replicated +2 +1 +wait/);
});

test('what an operator does not say stays as it is set, unless the level changes', (t) => {
  const given = { level: undefined, replicas: undefined, minInSync: undefined, onLoss: undefined };
  const known = { level: 'replicated', replicas: 3, minInSync: 2, onLoss: 'empty' } as const;
  t.deepEqual(policyFrom({ ...given, replicas: 4 }, known), { ...known, replicas: 4 });
  t.deepEqual(policyFrom({ ...given, level: 'replicated', minInSync: 1 }, known), { ...known, minInSync: 1 });
  t.deepEqual(policyFrom({ ...given, onLoss: 'wait' }, known), { ...known, onLoss: 'wait' });
  const cache = policyFrom({ ...given, level: 'cache' }, known);
  t.deepEqual(cache, { level: 'cache', replicas: 1, minInSync: 1, onLoss: 'empty' });
  t.is(policyFrom({ ...given, level: 'replicated' }, cache).onLoss, 'wait');
  t.throws(() => policyFrom({ ...given, replicas: 1 }, known), {
    code: 'ERR_CONFIG',
    message: '--min-in-sync: must be a whole number from 1 to 1, and would be 2',
  });
  t.throws(() => policyFrom(given, undefined), { code: 'ERR_CONFIG', message: /^--level: / });
});

test('who sets more copies than servers can keep is told what becomes of changes', (t) => {
  const policy = { level: 'replicated', replicas: 3, minInSync: 2, onLoss: 'wait' } as const;
  t.is(lackText(policy, 3), undefined);
  t.regex(lackText(policy, 2)!, /^2 servers keep values now.*3 copies: .*DEGRADED/);
  t.regex(lackText(policy, 1)!, /^one server keeps.*TOO FEW, and changes are refused until 2 .*--min-in-sync 1$/);
});

test('a shard that was never served is not called lost, and its copies show how far it is', (t) => {
  const log = new CopyLog({ replicas: 2 }, 3, false).openNew(0, 100);
  t.is(text(log), `0/2 ${log.owner} (joining) TOO FEW`);
  t.is(
    text(log, 0, () => false),
    `0/2 ${log.owner} (joining, away) TOO FEW`,
  );
});

test('what a new cluster does with values is said by its first policy', (t) => {
  const log = new MetadataLog().do({
    ...bootstrapOf(2, ['s1', 's2', 's3']),
    tenants: [{ name: 'blue', shards: 1 }],
    policy: REPLICATED,
  });
  t.deepEqual(levelLines(log.state), [
    'level replicated: each value is kept by 2 servers, and found again when one is lost',
    'level replicated: each value of blue is kept by 2 servers, and found again when one is lost',
  ]);
  t.deepEqual(
    replicationStatus(log.state).map(({ tenant, replicas }) => [tenant, replicas]),
    [
      [undefined, 2],
      ['blue', 2],
    ],
  );
  log.do(joinOf('s2', 2, undefined, 0));
  t.regex(levelLines(log.state)[0] ?? '', /when one is lost$/, 'two others may keep values');
  log.do(joinOf('s3', 3, undefined, 0));
  t.regex(levelLines(log.state)[0] ?? '', /; but one server keeps values: add servers that are no witnesses$/);
  t.regex(levelLines(new MetadataLog().do(bootstrapOf(1, ['s1'])).state)[0] ?? '', /^level cache: .* lost with it$/);
});

test('a level that a cluster does not have is told to be passed over, with what changes it', (t) => {
  const log = new MetadataLog().do({ ...bootstrapOf(2, ['s1', 's2', 's3']), policy: REPLICATED });
  t.is(levelPassedOver(log.state, undefined, false), undefined);
  t.is(levelPassedOver(log.state, 'replicated', false), undefined);
  t.regex(
    levelPassedOver(log.state, 'cache', false) ?? '',
    /this cluster has level replicated; farkv replication set --level cache/,
  );
  const none = new MetadataLog().do(bootstrapOf(1, ['s1'])).state;
  t.regex(levelPassedOver(none, 'durable', true) ?? '', /durable is passed over: .* level cache; .* farkv restore/);
  t.is(levelPassedOver(none, 'cache', false), undefined);
});

test('a server that is to be durable, in a cluster that it made without disks, is refused', (t) => {
  const none = new MetadataLog().do(bootstrapOf(1, ['s1'])).state;
  t.throws(() => levelPassedOver(none, 'durable', false), {
    code: 'ERR_CONFIG',
    message:
      /^--level durable: this cluster has level cache, and .* farkv restore .*give --level what the cluster has, or leave it out$/,
  });
});

test('what durable values survive is said, and when they are on the disks only where no server answers before', (t) => {
  const durable = { level: 'durable', replicas: 2 } as const;
  t.is(
    levelText(durable, true),
    'level durable: each value is on the disks of 2 servers, and found again after a loss of power',
  );
  t.is(
    levelText({ ...durable, replicas: 1, tenant: 'blue' }, false),
    'level durable: each value of blue is on the disk of one server before it is answered, and found again after a loss of power',
  );
});

test('a shard is gone when the only server with a copy came back without it, in memory or on a disk', (t) => {
  for (const level of ['replicated', 'durable'] as const) {
    const log = new CopyLog({ level, replicas: 2 });
    const owner = log.owner!;
    const gone = (answers = true): true | undefined => copiesStatus(log.state, 0, 0, () => answers)?.gone;
    t.is(gone(), undefined);
    t.is(gone(false), undefined, 'a server that does not answer may come back with it');
    log.do({ ...joinOf(owner, 100), replaces: log.start(owner) });
    t.is(gone(), true, level);
  }
});
