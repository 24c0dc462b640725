import test from 'ava';
import { joinOf, LEASE, MetadataLog } from '../../test/support/metadata-log.js';
import { FarkvError } from '../errors.js';
import { MetadataMachine } from './machine.js';

const bootstrap = { t: 'bootstrap', clusterId: '1f'.repeat(16), hashSeed: '2f'.repeat(16), ticketSecret: '3f'.repeat(16), shards: 2, voters: ['s1'] } as const;
const raise = { t: 'raise-format', format: 2, votersMax: 3, ownerLease: LEASE } as const;
const later = { instanceOf: FarkvError, code: 'ERR_PROTOCOL_VERSION', message: /later version of farkv \(format 2.*knows format 1: upgrade this server/ } as const;

test('an earlier version and this one have the same state and snapshot as long as the format was not raised', (t) => {
  const [old, now] = [new MetadataLog(1), new MetadataLog()];
  for (const log of [old, now]) log.do(bootstrap, joinOf('s1', 1), { t: 'assign-shards' });
  t.deepEqual(old.machine.snapshot(), now.machine.snapshot());
  const again = new MetadataMachine(1);
  again.restore(now.machine.snapshot());
  t.deepEqual(again.state, now.state);
});

test('what later formats add is refused by the state before the format is raised', (t) => {
  const log = new MetadataLog().do(bootstrap, joinOf('s1', 1), { t: 'assign-shards' });
  t.regex(log.try({ t: 'server-drain', id: 's1', draining: true }), /ERR_UNSUPPORTED: the metadata is at format 1 until every server/);
  t.is(log.try(raise), 'ok');
  t.regex(log.try(raise), /ERR_BUSY/);
});

test('an earlier version stops at the entry that raises the format, by name, and applies nothing of it', (t) => {
  const log = new MetadataLog(1).do(bootstrap, joinOf('s1', 1));
  const before = log.state;
  t.throws(() => log.try(raise), later);
  t.is(log.state, before);
});

test('an earlier version refuses a later snapshot', (t) => {
  const { machine } = MetadataLog.cluster(2, ['s1']);
  t.throws(() => new MetadataMachine(1).restore(machine.snapshot()), later);
  const same = new MetadataMachine();
  same.restore(machine.snapshot());
  t.deepEqual(same.state, machine.state);
  t.deepEqual(same.snapshot(), machine.snapshot());
});
