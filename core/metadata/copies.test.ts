/** Who has copies: policies, joining, in sync, removed, eligible. Who becomes the owner: promotions.test.ts. */
import test from 'ava';
import { CopyLog, REPLICATED } from '../../test/support/copy-log.js';
import { hexOf, joinOf, MetadataLog } from '../../test/support/metadata-log.js';
import { seeded } from '../../test/support/random.js';
import { clientMap } from '../protocol/client-map.js';
import type { Command } from './commands.js';
import { MetadataMachine } from './machine.js';

test('a new cluster has a copy set for each shard, and its owner is the first copy of it', (t) => {
  const log = MetadataLog.cluster(2, ['s1', 's2']).open(0, 50);
  const [open, closed] = log.state.copySets;
  const { owner } = log.shard(0);
  t.deepEqual(
    [open?.config, open?.copies.map(({ member, id, state }) => [member, id, state])],
    [3, [[owner, hexOf(50), 'in-sync']]],
  );
  t.deepEqual(closed, { config: 2, copies: [] });
});

test("a client's map has no copy sets, no policies and no zones", (t) => {
  const log = new CopyLog().with('s2').do({ ...joinOf('s4', 14, 4), zone: 'rack 1' });
  t.is(log.state.members.get('s4')?.zone, 'rack 1');
  const text = JSON.stringify(clientMap(log.state));
  t.notRegex(text, /copySets|policies|in-sync|rack 1/);
});

test('what changes copies alone is no change of the map of clients', (t) => {
  const log = new CopyLog();
  const before = log.state;
  log.with(log.others[0]!).without(log.others[0]!);
  t.is(log.state.mapEpoch, before.mapEpoch);
  t.is(log.shard(0), before.shards[0]!);
});

test('a policy is refused unless its numbers fit; a cache has one copy', (t) => {
  const log = new CopyLog();
  const set = (more: Partial<typeof REPLICATED>): string =>
    log.try({ t: 'policy-set', tenant: 0, ...REPLICATED, ...more });
  for (const wrong of [
    { minInSync: 0 },
    { minInSync: 4 },
    { level: 'cache' },
    { level: 'cache', replicas: 1, onLoss: 'wait' },
    { level: 'durable', onLoss: 'empty' },
  ] as const)
    t.regex(set(wrong), /ERR_CONFIG/, JSON.stringify(wrong));
  t.regex(log.try({ t: 'policy-set', tenant: 3, ...REPLICATED }), /ERR_CONFIG: there is no tenant 3/);
  t.is(set({ level: 'cache', replicas: 1, onLoss: 'empty' }), 'ok');
  t.regex(log.try({ t: 'copies-add', copies: [{ ...log.name, member: 's4', start: hexOf(4), rank: 0 }] }), /ERR_BUSY/);
});

test('a copy joins, is in sync when its owner says so, and has one id from then on', (t) => {
  const log = new CopyLog();
  const [a = '', b = ''] = log.others;
  log.do({ t: 'copies-add', copies: [{ ...log.name, member: a, start: log.start(a), rank: 3 }] });
  t.is(log.copies, `${a} joining`);
  t.regex(
    log.try({ t: 'copies-add', copies: [{ ...log.name, member: a, start: log.start(a), rank: 3 }] }),
    /ERR_BUSY/,
    'it joins already',
  );
  t.regex(log.try(log.inSync(b, hexOf(8))), /ERR_BUSY/, 'it was not added');
  t.regex(log.try(log.inSync(a, log.copy(log.owner!)!.id!)), /ERR_CONFIG/, "the owner's id");
  log.do(log.inSync(a, hexOf(8)));
  t.deepEqual(log.copy(a), { member: a, start: log.start(a), id: hexOf(8), worker: 1, state: 'in-sync', rank: 3 });
  t.deepEqual(log.set.barrier, { epoch: 1, lsn: 7 });
  t.regex(log.try(log.inSync(a, hexOf(9))), /ERR_BUSY/);
});

test('a copy that joins is named by its member; what that made under an earlier name is never in sync', (t) => {
  const log = new CopyLog();
  const [a = ''] = log.others;
  const naming = (copy: string): Command => ({
    t: 'copy-named',
    ...log.name,
    member: a,
    start: log.start(a),
    copy,
    worker: 1,
  });
  t.regex(log.try(naming(hexOf(8))), /ERR_BUSY/, 'it was not added');
  log.do({ t: 'copies-add', copies: [{ ...log.name, member: a, start: log.start(a), rank: 3 }] });
  t.regex(log.try({ ...naming(hexOf(8)), start: hexOf(99) } as Command), /ERR_BUSY/, 'another start of it');
  const late = naming(hexOf(7));
  log.do(naming(hexOf(8)));
  t.deepEqual(log.copy(a), { member: a, start: log.start(a), id: hexOf(8), worker: 1, state: 'joining', rank: 3 });
  t.regex(log.try(late), /ERR_BUSY/, 'made for an earlier config');
  log.do(naming(hexOf(9)));
  t.regex(log.try(log.inSync(a, hexOf(8))), /ERR_CONFIG/);
  log.do(log.inSync(a, hexOf(9)));
  t.regex(log.try(naming(hexOf(10))), /ERR_BUSY/, 'it is in sync');
});

test('a command about copies is refused with any of its names another one: epoch, config, starts, owner', (t) => {
  const log = new CopyLog().with('s2', 's3');
  const [a = '', b = '', c = ''] = log.others;
  const joiner = [a, b, c].find((id) => log.copy(id) === undefined) ?? c;
  log.do({ t: 'copies-add', copies: [{ ...log.name, member: joiner, start: log.start(joiner), rank: 0 }] });
  const { name, byOwner } = log;
  const { owner } = byOwner;
  const backup = log.set.copies.find((copy) => copy.member !== log.owner && copy.state === 'in-sync')!.member;
  const wrongNames = [
    { epoch: name.epoch + 1 },
    { epoch: 0 },
    { config: name.config + 1 },
    { config: name.config - 1 },
  ];
  const wrongOwners = [{ owner: backup }, { memberIncarnation: hexOf(99) }];
  const wrong: Command[] = [];
  for (const w of [...wrongNames, ...wrongOwners, { start: hexOf(99) }, { member: backup }])
    wrong.push({ ...log.inSync(joiner, hexOf(77)), ...w });
  for (const w of [...wrongNames, ...wrongOwners]) wrong.push({ t: 'copies-keep', ...name, ...byOwner, ...w });
  for (const w of [...wrongNames, { start: hexOf(99) }, { member: 's9' }, { member: owner, start: log.start(owner) }])
    wrong.push({ t: 'copies-removed', by: byOwner, copies: [{ ...log.removal(backup), ...w }] });
  for (const w of wrongOwners)
    wrong.push({ t: 'copies-removed', by: { ...byOwner, ...w }, copies: [log.removal(backup)] });
  for (const w of [...wrongNames, { copy: hexOf(99) }])
    wrong.push({
      t: 'shards-promoted',
      id: backup,
      memberIncarnation: log.start(backup),
      shards: [{ ...log.promotion(backup), ...w }],
    });
  for (const w of [{ memberIncarnation: hexOf(99) }, { id: joiner }, { id: log.owner! }])
    wrong.push({
      t: 'shards-promoted',
      id: backup,
      memberIncarnation: log.start(backup),
      shards: [log.promotion(backup)],
      ...w,
    });
  const heir = { to: backup, copy: log.copy(backup)!.id! };
  for (const w of [...wrongNames, ...wrongOwners, { to: joiner }, { copy: hexOf(99) }])
    wrong.push({ t: 'shard-handover', ...name, ...byOwner, ...heir, incarnation: hexOf(5), ends: false, ...w });
  for (const w of wrongNames) wrong.push({ t: 'shard-reset', ...name, to: backup, lost: [], ...w });
  for (const w of wrongNames) wrong.push({ t: 'shards-given', shards: [{ ...name, ...heir, ...w }] });
  const before = log.state;
  for (const command of wrong) t.not(log.try(command), 'ok', JSON.stringify(command));
  t.is(log.state, before);
});

test('a proposal of an earlier config never fits, whatever happened since', (t) => {
  const log = new CopyLog();
  const [a = ''] = log.others;
  log.do({ t: 'copies-add', copies: [{ ...log.name, member: a, start: log.start(a), rank: 0 }] });
  const late = log.inSync(a, hexOf(8));
  log.do({ t: 'copies-keep', ...log.name, ...log.byOwner });
  t.regex(log.try(late), /ERR_BUSY: shard 0 has another owner, epoch or config by now/);
  t.is(log.copies, `${a} joining`);
});

test('a copy that its owner removes may join again; it stays eligible where too few are left for new changes, and it is whole', (t) => {
  const log = new CopyLog({ minInSync: 2 });
  const [a = '', b = ''] = log.others;
  log.with(a, b).without(a);
  t.is(log.copies, `${a} joining, ${b} in-sync`, 'two are enough');
  const { id } = log.copy(a)!;
  log.do(log.inSync(a, id!)).without(a);
  t.is(log.copy(a)?.id, id, 'with its table');
  log.without(a);
  t.is(log.copies, `${b} in-sync`, 'it was late once more');
  log.without(b);
  t.is(log.copies, `${b} eligible`);
  t.deepEqual(log.set.barrier, { epoch: 1, lsn: 8 });
  log.do(log.inSync(b, hexOf(2000 + Number(b.slice(1)))));
  t.is(log.copies, `${b} in-sync`, 'it is in sync again with what it has');
  log.without(b, false);
  t.is(log.copies, `${b} joining`, 'it may lack some of what came with the shard');
});

test('a damaged copy goes by the word of its member, however few stay, unless it is the last', (t) => {
  const log = new CopyLog({ minInSync: 2 });
  const [a = ''] = log.others;
  const remove = (id: string, more: object = { damaged: true }): string =>
    log.try({ t: 'copies-removed', copies: [{ ...log.removal(id, false), ...more }] });
  log.with(a);
  t.regex(remove(a, {}), /ERR_BUSY/, 'changes need it');
  t.is(remove(a), 'ok');
  t.is(log.copies, '');
  log.with(a).without(a);
  t.is(log.copies, `${a} eligible`);
  t.is(remove(a), 'ok');
  t.is(log.copies, '');
  log.with(a).do({ ...joinOf(log.owner!, 30, 1), replaces: log.start(log.owner!) });
  t.is(log.owner, undefined);
  t.regex(remove(a), /ERR_BUSY/, 'nobody else has the values');
  t.is(log.copies, `${a} in-sync`);
});

test('the only copy of a new shard stays until its owner counts its own', (t) => {
  const log = new CopyLog({ minInSync: 2 }, 4, false).openNew(0, 100);
  const [a = ''] = log.others;
  const remove = (whole: boolean): string =>
    log.try({ t: 'copies-removed', by: log.byOwner, copies: [log.removal(a, whole)] });
  log.with(a);
  t.regex(remove(false), /ERR_BUSY/);
  t.is(remove(true), 'ok');
  t.is(log.copy(a)?.state, 'eligible');
  t.regex(remove(true), /ERR_BUSY/);
  log.count(0);
  t.is(remove(true), 'ok');
  t.is(log.copies, '');
});

test('an eligible copy comes back with its own table only', (t) => {
  const log = new CopyLog({ minInSync: 2 });
  const [a = ''] = log.others;
  log.with(a).without(a);
  t.regex(log.try(log.inSync(a, hexOf(8))), /ERR_CONFIG/);
  t.is(log.copies, `${a} eligible`);
});

test('eligible copies are forgotten when enough are in sync, also by another policy', (t) => {
  const log = new CopyLog({ minInSync: 2 });
  const [a = '', b = ''] = log.others;
  log.with(a).without(a);
  log.with(b);
  t.is(log.copies, `${b} in-sync`);
  log.without(b);
  t.is(log.copies, `${b} eligible`);
  const { config } = log.set;
  log.do({ t: 'policy-set', tenant: 0, ...REPLICATED, minInSync: 3 });
  t.is(log.copies, `${b} eligible`, 'too few as before');
  log.do({ t: 'policy-set', tenant: 0, ...REPLICATED, minInSync: 1 });
  t.is(log.copies, '');
  t.is(log.set.config, config + 2);
});

test('the leader removes what joins, and copies in sync down to what new changes need', (t) => {
  const log = new CopyLog({ minInSync: 2 });
  const [a = '', b = '', c = ''] = log.others;
  log.with(a, b).do({ t: 'copies-add', copies: [{ ...log.name, member: c, start: log.start(c), rank: 0 }] });
  const remove = (id: string): string => log.try({ t: 'copies-removed', copies: [log.removal(id)] });
  t.is(remove(c), 'ok');
  t.is(remove(a), 'ok');
  t.regex(remove(b), /ERR_BUSY/);
  t.is(log.copies, `${b} in-sync`);
  t.regex(remove(log.owner!), /ERR_BUSY/);
});

test('a member that starts again has no copies, and every set that it was in has a new config', (t) => {
  const log = new CopyLog({ minInSync: 2 });
  const [a = '', b = ''] = log.others;
  log.with(a, b);
  const { config } = log.set;
  log.do(joinOf(a, 20, Number(a.slice(1))));
  t.is(log.copies, `${b} in-sync`);
  t.is(log.set.config, config + 1);
  log.without(b).do(joinOf(b, 21, Number(b.slice(1))));
  t.is(log.copies, '', 'also what was eligible is gone');
});

test('a server with the last copy of a shard without an owner is told with what gives it up', (t) => {
  const log = new CopyLog();
  const { owner } = log;
  const [a = ''] = log.others;
  log.with(a).do(joinOf(owner!, 50, Number(owner!.slice(1))));
  t.is(log.owner, undefined);
  const { raftId } = log.state.servers.find(({ id }) => id === a)!;
  t.is(
    log.try({ t: 'server-remove', id: a, raftId }),
    `ERR_BUSY: ${a} has a copy of shard 0, which has no owner: if no other server has its values, bring ${a} back; if it is lost, farkv status names the command that gives its values up`,
  );
});

test('a server with a copy in sync is not removed; one whose copy joins is, with that', (t) => {
  const log = new CopyLog();
  const [a = '', b = ''] = log.others;
  log.with(a).do({ t: 'copies-add', copies: [{ ...log.name, member: b, start: log.start(b), rank: 0 }] });
  const remove = (id: string): string =>
    log.try({ t: 'server-remove', id, raftId: log.state.servers.find((s) => s.id === id)!.raftId });
  t.regex(remove(a), /ERR_BUSY: s\d has copies of 1 shard: farkv drain s\d first/);
  t.is(remove(b), 'ok');
  t.is(log.copies, `${a} in-sync`);
});

test('a drained server with copies is not sent back to the drain: what they wait for is said', (t) => {
  const log = new CopyLog({ replicas: 2, minInSync: 2 }, 3);
  const [a = '', b = ''] = log.others;
  const { raftId } = log.state.servers.find((s) => s.id === a)!;
  log.with(a).do({ t: 'server-drain', id: a, draining: true });
  t.is(
    log.try({ t: 'server-remove', id: a, raftId }),
    `ERR_BUSY: ${a} is drained, and still has copies of 1 shard, until others have taken their place: farkv status shows how far that is`,
  );
  log.do(joinOf(b, 60, Number(b.slice(1)), 0));
  t.is(
    log.try({ t: 'server-remove', id: a, raftId }),
    `ERR_BUSY: ${a} is drained, and still has copies of 1 shard, since one other server keeps values: add a server (farkv server --join), or want fewer copies (farkv replication set --replicas 1 --min-in-sync 1); they go then`,
  );
});

const moveTo = (log: CopyLog, to: string) => ({ t: 'shard-move', shard: 0, epoch: log.shard(0).epoch, to }) as const;

test('a move is over with the epoch of its shard', (t) => {
  const log = new CopyLog({ replicas: 2 });
  const [a = '', b = ''] = log.others;
  const move = (to: string): string => log.try(moveTo(log, to));
  t.is(move(a), 'ok');
  t.regex(move(a), /on its way/);
  t.is(move(b), 'ok', 'the operator thinks better of it');
  log.with(b);
  t.is(log.promote(b), 'ok');
  t.deepEqual([log.owner, log.state.moves], [b, []]);
  const [other = ''] = log.others;
  t.is(move(other), 'ok');
  t.is(move(b), 'ok', 'it is called off');
  t.deepEqual(log.state.moves, []);
});

test('a shard is not handed over to a server that is drained, nor beyond the copies that there may be', (t) => {
  const log = new CopyLog({ replicas: 5 }, 6);
  const [a = '', ...others] = log.others;
  const last = others.pop()!;
  log.with(a, ...others);
  t.regex(log.try(moveTo(log, last)), /ERR_BUSY: shard 0 has 5 copies, as many as there may be/);
  t.is(log.try(moveTo(log, a)), 'ok', 'it has one');
  log.do(moveTo(log, log.owner!), { t: 'server-drain', id: a, draining: true });
  t.regex(log.try(moveTo(log, a)), /ERR_BUSY: s\d is being drained/);
});

test('random commands about copies: a refusal changes nothing, configs never fall, snapshots bring all back', (t) => {
  const random = seeded(t, import.meta.filename);
  const log = new CopyLog({ minInSync: 2 }, 4);
  let starts = 50;
  for (let i = 0; i < 400; i++) {
    const { config } = log.set;
    const before = log.state;
    const id = random.pick(['s1', 's2', 's3', 's4']);
    const name = { ...log.name, ...(random.below(4) === 0 ? { config: random.below(config + 2) } : {}) };
    const owner = log.owner === undefined ? { owner: id, memberIncarnation: log.start(id) } : log.byOwner;
    const commands: (() => Command)[] = [
      () => ({ t: 'copies-add', copies: [{ ...name, member: id, start: log.start(id), rank: 0 }] }),
      () => ({
        t: 'copies-in-sync',
        ...name,
        ...owner,
        member: id,
        start: log.start(id),
        copy: hexOf(i),
        worker: 0,
        lsn: i,
      }),
      () => ({ t: 'copies-removed', by: owner, copies: [{ ...log.removal(id), ...name }] }),
      () => ({ t: 'copies-removed', copies: [{ ...log.removal(id), ...name }] }),
      () => ({
        t: 'shards-promoted',
        id,
        memberIncarnation: log.start(id),
        shards: [{ ...log.promotion(id), ...name }],
      }),
      () => ({ t: 'shards-given', shards: [{ ...name, to: id, copy: log.copy(id)?.id ?? hexOf(1) }] }),
      () => ({ t: 'shard-reset', ...name, to: id, lost: log.set.copies.map((copy) => copy.id ?? hexOf(1)) }),
      () => ({ t: 'policy-set', tenant: 0, ...REPLICATED, minInSync: 1 + random.below(3) }),
      () => ({ ...joinOf(id, ++starts), replaces: log.start(id) }),
    ];
    const outcome = log.try(random.pick(commands)());
    if (outcome !== 'ok') t.is(log.state, before);
    t.true(log.set.config >= config);
    if (log.set !== before.copySets[0]) t.true(log.set.config > config);
    const again = new MetadataMachine();
    again.restore(log.machine.snapshot());
    t.deepEqual(again.state, log.state);
  }
});
