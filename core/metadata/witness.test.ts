/** Servers that vote and keep no values: no shard and no copy comes to them, whoever proposes it. */
import test from 'ava';
import { CopyLog } from '../../test/support/copy-log.js';
import { HELD, leasesAt } from '../../test/support/leases-at.js';
import { bootstrapOf, hexOf, joinOf, MetadataLog } from '../../test/support/metadata-log.js';
import { Absences, nextCopies } from './copy-policy.js';
import { nextOwners, takeFromDead } from './leader-policy.js';
import { keepersExpected } from './placement.js';

const NOW = 4 * HELD;
const GB = 2 ** 30;

test('shards go to servers that keep values', (t) => {
  const log = new MetadataLog().do(bootstrapOf(6, ['s1', 's2', 's3']), joinOf('s3', 3, undefined, 0));
  t.is(nextOwners(log.state, undefined, 0), undefined);
  t.regex(log.try({ t: 'assign-shards' }), /no member to own one/);
  log.do(joinOf('s1', 1), joinOf('s2', 2));
  log.do(nextOwners(log.state, undefined, 0)!);
  t.deepEqual([log.ownedBy('s1').length, log.ownedBy('s2').length, log.ownedBy('s3').length], [3, 3, 0]);
});

test('who has not said that it is a witness is expected to keep its part of values', (t) => {
  const log = new MetadataLog().do(bootstrapOf(6, ['s1', 's2', 's3']));
  t.is(keepersExpected(log.state), 3);
  log.do(joinOf('s3', 3, undefined, 0));
  t.is(keepersExpected(log.state), 2);
  log.do(joinOf('s1', 1));
  t.is(keepersExpected(log.state), 2);
});

test('a dead owner loses its shards to servers that keep values, or to none', (t) => {
  const log = MetadataLog.cluster(6, ['s1', 's2', 's3'], [GB, GB, 0]);
  t.is(takeFromDead(log.state, leasesAt(NOW, { [NOW]: ['s3'] }), NOW), undefined);
  const taken = takeFromDead(log.state, leasesAt(NOW, { [NOW]: ['s2', 's3'] }), NOW)!;
  t.deepEqual([...new Set(taken.shards.map(({ to }) => to))], ['s2']);
  t.regex(log.try({ ...taken, shards: taken.shards.map((one) => ({ ...one, to: 's3' })) }), /ERR_BUSY/);
  log.do(taken);
});

test('the only server that keeps values is not drained', (t) => {
  const log = MetadataLog.cluster(2, ['s1', 's2', 's3'], [GB, GB, 0]);
  log.do({ t: 'server-drain', id: 's1', draining: true });
  t.regex(log.try({ t: 'server-drain', id: 's2', draining: true }), /no other server could own the shards of s2/);
  log.do({ t: 'server-drain', id: 's3', draining: true });
});

test('an operator is told that a witness keeps no values', (t) => {
  const log = MetadataLog.cluster(2, ['s1', 's2', 's3'], [GB, GB, 0]);
  const { shard, epoch } = log.shard(0);
  t.regex(log.try({ t: 'shard-move', shard, epoch, to: 's3' }), /ERR_CONFIG: s3 is a witness/);
});

test('a server that owns shards does not come back as a witness', (t) => {
  const log = MetadataLog.cluster(2, ['s1', 's2']);
  t.regex(log.try(joinOf('s1', 3, 1, 0)), /ERR_CONFIG: s1 owns shards, .* without --witness/);
  log.do({ t: 'shard-move', shard: log.ownedBy('s1')[0]!, epoch: 1, to: 's2' });
  log.do(joinOf('s1', 3, 1, 0));
  t.deepEqual(log.ownedBy('s1'), []);
});

test('no copy comes to a witness, and it counts for no part of them', (t) => {
  const log = new CopyLog({ replicas: 2 });
  const witness = log.others[2]!;
  log.do(joinOf(witness, 14, Number(witness.slice(1)), 0));
  const add = { ...log.name, member: witness, start: hexOf(14), rank: 1 };
  t.regex(log.try({ t: 'copies-add', copies: [add] }), /ERR_BUSY/);
  log
    .with(...log.others.slice(0, 2))
    .do({ t: 'policy-set', tenant: 0, ...{ level: 'replicated', replicas: 4 }, minInSync: 1, onLoss: 'wait' });
  const ids = [...log.state.members.keys()];
  t.is(nextCopies(log.state, leasesAt(NOW, { [NOW]: ids }), NOW, new Absences()), undefined);
  const lost = log.set.copies.map((copy) => copy.id!);
  t.regex(log.try({ t: 'shard-reset', ...log.name, to: witness, lost }), /ERR_CONFIG: \S+ is a witness/);
});
