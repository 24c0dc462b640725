import test from 'ava';
import { HELD, leasesAt } from '../../test/support/leases-at.js';
import { bootstrapOf, joinOf, hexOf, MetadataLog } from '../../test/support/metadata-log.js';
import { lostMove, nextFormat, nextLookMs, nextOwners, takeFromDead } from './leader-policy.js';
import { nextVoters } from './voter-policy.js';

test('an owner that is silent loses its shards when its lease is over, and not before', (t) => {
  const log = MetadataLog.cluster(6, ['s1', 's2', 's3']);
  const asked = { [HELD]: ['s1', 's2', 's3'], [HELD + 500]: ['s1', 's3'] };
  t.is(takeFromDead(log.state, leasesAt(2 * HELD - 1, asked), 2 * HELD - 1), undefined);
  t.is(nextLookMs(log.state, leasesAt(2 * HELD - 1, asked), 2 * HELD - 1), 2 * HELD);
  const leases = leasesAt(2 * HELD, asked);
  const taken = takeFromDead(log.state, leases, 2 * HELD)!;
  t.is(taken.id, 's2');
  t.deepEqual(
    taken.shards.map((s) => s.shard),
    log.ownedBy('s2'),
  );
  log.do(taken);
  t.deepEqual(log.ownedBy('s2'), []);
  for (const { shard } of taken.shards) {
    t.is(log.shard(shard).epoch, 2);
    t.is(log.shard(shard).incarnation, undefined);
  }
  t.is(takeFromDead(log.state, leases, 2 * HELD), undefined);
});

test('nothing is taken while nobody is there to have it', (t) => {
  const log = MetadataLog.cluster(6, ['s1', 's2']);
  const leases = leasesAt(10 * HELD);
  t.is(takeFromDead(log.state, leases, 10 * HELD), undefined);
  leases.grant('s2', 10 * HELD);
  t.is(takeFromDead(log.state, leases, 10 * HELD)?.id, 's1');
});

test('nothing is taken twice while the outcome is open', (t) => {
  const log = MetadataLog.cluster(6, ['s1', 's2']);
  const leases = leasesAt(2 * HELD, { [2 * HELD]: ['s2'] });
  leases.withhold('s1');
  t.is(takeFromDead(log.state, leases, 2 * HELD), undefined);
});

test('what is taken from one start of a server is not taken from the next', (t) => {
  const log = MetadataLog.cluster(6, ['s1', 's2']);
  const leases = leasesAt(2 * HELD, { [2 * HELD]: ['s2'] });
  const taken = takeFromDead(log.state, leases, 2 * HELD)!;
  log.do(joinOf('s1', 9, 1));
  t.regex(log.try(taken), /started again/);
  t.is(log.ownedBy('s1').length, 3);
});

test('a paused owner that is back finds its shards under other epochs, and what it still wants to say about them does not fit', (t) => {
  const log = MetadataLog.cluster(2, ['s1', 's2']);
  const [shard] = log.ownedBy('s1');
  const epoch = log.shard(shard!).epoch;
  const leases = leasesAt(2 * HELD, { [2 * HELD]: ['s2'] });
  log.do(takeFromDead(log.state, leases, 2 * HELD)!);
  const late = { shard: shard!, owner: 's1', memberIncarnation: hexOf(1), epoch };
  t.regex(
    log.try({ t: 'shard-opened', ...late, incarnation: hexOf(77), layoutEpoch: 1, buckets: 1, regions: [] }),
    /ERR_NOT_OWNER/,
  );
});

test('a move whose goal is dead is called off, by a leader that knows it', (t) => {
  const log = MetadataLog.cluster(18, ['s1', 's2', 's3']);
  const [shard = 0] = log.ownedBy('s1');
  log.open(shard, 100).do({ t: 'shard-move', shard, epoch: 1, to: 's2' });
  const { planned } = log.state.moves[0]!;
  const late = { [HELD]: ['s1', 's2', 's3'], [HELD + 100]: ['s1', 's3'] };
  // A leader that has not heard since then does not know whether the server is dead.
  t.is(lostMove(log.state, leasesAt(HELD + 100, late), 2 * HELD), undefined);
  t.true(nextLookMs(log.state, leasesAt(HELD + 100, late), 2 * HELD) !== undefined);
  const off = { t: 'shard-move', shard, epoch: 1, to: 's1', planned } as const;
  t.deepEqual(lostMove(log.state, leasesAt(2 * HELD, late), 2 * HELD), off);
});

test('the leader looks in time for a move to a server that has no shards yet', (t) => {
  const log = MetadataLog.cluster(1, ['s1', 's2']);
  const owner = log.shard(0).owner!;
  const to = owner === 's1' ? 's2' : 's1';
  log.open(0, 5).do({ t: 'shard-move', shard: 0, epoch: 1, to });
  const leases = leasesAt(2 * HELD - 100, { [HELD]: [to], [2 * HELD - 100]: [owner] });
  t.true(nextLookMs(log.state, leases, 2 * HELD - 100)! <= 2 * HELD);
  t.deepEqual(lostMove(log.state, leasesAt(2 * HELD, { [HELD]: [to], [2 * HELD - 100]: [owner] }), 2 * HELD), {
    t: 'shard-move',
    shard: 0,
    epoch: 1,
    to: owner,
    planned: log.state.moves[0]!.planned,
  });
});

test("a shard that is closed because its owner has started again stays its owner's until another has a copy", (t) => {
  const log = MetadataLog.cluster(2, ['s1', 's2']);
  const [shard] = log.ownedBy('s1');
  log.open(shard!, 5);
  log.do(joinOf('s1', 2, 1));
  t.is(log.shard(shard!).incarnation, undefined);
  log.do({ t: 'shard-move', shard: shard!, epoch: 2, to: 's2' });
  t.is(log.shard(shard!).owner, 's1');
  log.open(shard!, 6).arrive(shard!, 9);
  t.is(log.shard(shard!).owner, 's2');
});

test('a shard that was never open moves at once', (t) => {
  const log = MetadataLog.cluster(2, ['s1', 's2']);
  const [shard] = log.ownedBy('s1');
  log.do({ t: 'shard-move', shard: shard!, epoch: 1, to: 's2' });
  t.is(log.shard(shard!).owner, 's2');
  t.is(log.shard(shard!).epoch, 2);
  t.deepEqual(log.state.moves, []);
});

const add = (id: string, instance = 500 + id.charCodeAt(1)) =>
  ({
    t: 'server-add',
    id,
    raftId: 1000 + id.charCodeAt(1) + instance,
    instance: hexOf(instance),
    control: ['127.0.0.1:1'],
  }) as const;

test('learners become voters two at a time, up to the number that is wanted', (t) => {
  const log = MetadataLog.cluster(3, ['s1']);
  log.do(add('s2'), add('s3'), add('s4'));
  t.is(nextVoters(log.state, new Set()), undefined);
  t.is(nextVoters(log.state, new Set(['s3'])), undefined);
  const command = nextVoters(log.state, new Set(['s2', 's3', 's4']))!;
  t.deepEqual(command.voters, ['s1', 's2', 's3']);
  log.do(command);
  t.is(nextVoters(log.state, new Set(['s2', 's3', 's4'])), undefined);
  log.do({ t: 'server-remove', id: 's2', raftId: log.state.servers.find((s) => s.id === 's2')!.raftId });
  t.deepEqual(nextVoters(log.state, new Set(['s3', 's4']))?.voters, ['s1', 's3', 's4']);
});

test('a server with another data directory is refused and told the command; after that command it may come', (t) => {
  const log = MetadataLog.cluster(3, ['s1', 's2', 's3']);
  t.regex(log.try(add('s3')), /farkv member remove s3/);
  const { raftId } = log.state.servers.find((s) => s.id === 's3')!;
  t.regex(log.try({ t: 'server-remove', id: 's3', raftId }), /farkv drain s3/);
  const leases = leasesAt(2 * HELD, { [2 * HELD]: ['s1', 's2'] });
  log.do(takeFromDead(log.state, leases, 2 * HELD)!, { t: 'server-remove', id: 's3', raftId });
  t.false(log.state.members.has('s3'));
  t.deepEqual(log.state.voters, ['s1', 's2']);
  t.regex(log.try(joinOf('s3', 3)), /not one of the servers/);
  log.do(add('s3'));
  t.not(log.state.servers.find((s) => s.id === 's3')!.raftId, raftId);
});

test('the servers that a cluster was made with are its servers before they come, and come as those only', (t) => {
  const log = new MetadataLog().do({ ...bootstrapOf(2, ['s2', 's1', 's3']), votersMax: 1 }, joinOf('s1', 1));
  t.deepEqual(
    log.state.servers.map((s) => [s.id, s.instance]),
    [
      ['s1', hexOf(1000 + 49)],
      ['s2', undefined],
      ['s3', undefined],
    ],
  );
  t.true(log.state.servers.every((s) => s.raftId !== 0));
  t.deepEqual(
    [log.state.firstServers, log.state.voters, log.state.votersMax],
    [['s1', 's2', 's3'], ['s1', 's2', 's3'], 3],
  );
  t.regex(log.try(add('s2')), /start it with the same --peers list as the others \(s1, s2, s3\), without --join$/);
  log.do(joinOf('s2', 2), { t: 'server-remove', id: 's3', raftId: log.state.servers[2]!.raftId }, add('s3'));
  t.deepEqual(
    [log.state.firstServers, log.state.voters],
    [
      ['s1', 's2', 's3'],
      ['s1', 's2'],
    ],
  );
});

test('the only voter stays, and somebody is left to own shards', (t) => {
  const log = MetadataLog.cluster(1, ['s1']);
  t.regex(log.try({ t: 'server-drain', id: 's1', draining: true }), /no other server could own/);
  log.do(add('s2', 1000 + 's2'.charCodeAt(1)));
  const early = log.try({ t: 'server-drain', id: 's1', draining: true });
  t.regex(early, /no other server could own the shards of s1: s2 has not come yet$/, 'its drain would never end');
  log.do(joinOf('s2', 2));
  log.do({
    t: 'shards-taken',
    id: 's1',
    incarnation: hexOf(1),
    shards: [{ shard: 0, epoch: log.shard(0).epoch, config: log.state.copySets[0]!.config, to: 's2' }],
  });
  t.regex(log.try({ t: 'server-remove', id: 's1', raftId: log.state.servers[0]!.raftId }), /only voter/);
});

test('the format is raised when every server has said that it knows the next one', (t) => {
  const log = new MetadataLog(2).do(bootstrapOf(2, ['s1', 's2']), joinOf('s1', 1));
  const says = (known: Readonly<Record<string, number>>, own = 2) =>
    nextFormat(log.state, { known: own, knownBy: (id) => known[id] ?? 0 });
  t.is(says({ s1: 2, s2: 2 }), undefined);
  log.do(joinOf('s2', 2));
  t.is(says({ s1: 2, s2: 1 }), undefined);
  t.is(says({ s1: 2, s2: 2 }, 1), undefined, 'the leader itself does not know it');
  log.do(says({ s1: 2, s2: 2 })!);
  t.is(log.state.formatVersion, 2);
  t.is(says({ s1: 2, s2: 2 }), undefined);
});

test('shards that never had an owner get one at once, others when no earlier owner is relied on, and by the map of then', (t) => {
  const log = new MetadataLog().do(bootstrapOf(2, ['s1', 's2']));
  t.is(nextOwners(log.state, undefined, 0), undefined, 'nobody is there');
  log.do(joinOf('s1', 1), joinOf('s2', 2));
  const early = nextOwners(log.state, undefined, 0)!;
  log.do(joinOf('s2', 3, 2));
  t.regex(log.try(early), /ERR_BUSY/, 'somebody has started again since');
  const waits = { level: 'replicated', replicas: 2, minInSync: 1, onLoss: 'wait' } as const;
  log.do({ t: 'policy-set', tenant: 0, ...waits }, nextOwners(log.state, undefined, 0)!);
  const { owner } = log.open(0, 50).shard(0);
  const leases = leasesAt(HELD, { [HELD]: ['s1', 's2'] });
  leases.observe(log.state.members.values(), HELD);
  log.do(joinOf(owner!, 5, owner === 's1' ? 1 : 3));
  leases.observe(log.state.members.values(), HELD);
  t.is(nextOwners(log.state, leases, HELD), undefined, 'an operator is waited for');
  log.do({ t: 'policy-set', tenant: 0, ...waits, onLoss: 'empty' });
  t.is(nextOwners(log.state, leases, 2 * HELD - 1), undefined, 'clients may rely on the last owner');
  t.is(nextOwners(log.state, undefined, 2 * HELD), undefined, 'this leader does not know it yet');
  t.is(log.try(nextOwners(log.state, leases, 2 * HELD)!), 'ok');
  t.not(log.shard(0).owner, undefined);
});
