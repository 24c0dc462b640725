import test from 'ava';
import { joinOf, LEASE, MetadataLog } from '../../test/support/metadata-log.js';
import { FarkvError } from '../errors.js';
import { decodeProposal, encodeProposal } from './commands.js';
import { nextFormat } from './leader-policy.js';
import { MetadataMachine } from './machine.js';
import { EMPTY } from './reduce.js';
import { trustNumber, trustRange, trustRanges } from './trust.js';

const plain = { t: 'bootstrap', clusterId: '1f'.repeat(16), hashSeed: '2f'.repeat(16), ticketSecret: '3f'.repeat(16), shards: 9, voters: ['s1'] } as const;
const bootstrap = { ...plain, trustDomains: [{ name: 'a', shards: 4 }, { name: 'b', shards: 3 }] };
const raise = (format: number) => ({ t: 'raise-format', format, votersMax: 3, ownerLease: LEASE }) as const;
const later = { instanceOf: FarkvError, code: 'ERR_PROTOCOL_VERSION', message: /format 3.*knows format 2: upgrade this server/ } as const;

test('the shards of trust domains follow each other and are all there are', (t) => {
  const { state } = new MetadataLog().do(bootstrap);
  t.deepEqual(trustRanges(state), [{ first: 0, count: 2 }, { first: 2, count: 4 }, { first: 6, count: 3 }]);
  t.deepEqual([undefined, 'a', 'b', 'c', 'default', ''].map((name) => trustNumber(state, name)), [0, 1, 2, undefined, undefined, undefined]);
  t.deepEqual(trustRange(state, 3), { first: 0, count: 0 });
  t.deepEqual(trustRanges(new MetadataLog().do(plain).state), [{ first: 0, count: 9 }]);
});

test('a cluster of trust domains that cannot be is not made', (t) => {
  for (const trustDomains of [[{ name: 'a', shards: 9 }], [{ name: 'a', shards: 10 }], [{ name: 'a', shards: 0 }], [{ name: 'a', shards: 1 }, { name: 'a', shards: 1 }]]) {
    const log = new MetadataLog();
    t.regex(log.try({ ...plain, trustDomains }), /ERR_CONFIG/);
    t.is(log.state, EMPTY);
  }
  const many = Array.from({ length: 16 }, (_, i) => ({ name: `d${i}`, shards: 1 }));
  t.throws(() => new MetadataLog().try({ ...plain, shards: 100, trustDomains: many }), { code: 'ERR_PROTOCOL' });
});

test('trust domains stay as they are when servers come, and in snapshots of every format', (t) => {
  const log = new MetadataLog().do(bootstrap, joinOf('s1', 1), { t: 'assign-shards' });
  for (const more of [undefined, raise(2)]) {
    if (more !== undefined) log.do(more);
    const again = new MetadataMachine();
    again.restore(log.machine.snapshot());
    t.deepEqual(again.state, log.state);
    t.deepEqual(again.state.trustDomains, bootstrap.trustDomains);
    t.deepEqual(again.snapshot(), log.machine.snapshot());
    t.throws(() => new MetadataMachine(2).restore(log.machine.snapshot()), later);
  }
});

test('an earlier version stops at the entry that makes a cluster with trust domains', (t) => {
  t.throws(() => new MetadataLog(2).do(bootstrap), later);
  const bytes = encodeProposal({ proposer: 'aa'.repeat(8), sequence: 1, command: bootstrap });
  t.deepEqual(decodeProposal(bytes).command, bootstrap);
});

test('a cluster without trust domains writes what earlier versions read, and is not raised to a later format', (t) => {
  const [old, now] = [new MetadataLog(2), new MetadataLog()];
  for (const log of [old, now]) log.do(plain, joinOf('s1', 1), { t: 'assign-shards' }, raise(2));
  t.deepEqual(old.machine.snapshot(), now.machine.snapshot());
  const again = new MetadataMachine(2);
  again.restore(now.machine.snapshot());
  t.deepEqual(again.state, now.state);
  t.is(nextFormat(now.state, { known: 3, votersMax: 3, ownerLease: LEASE, knownBy: () => 3 }), undefined);
  t.regex(now.try(raise(3)), /ERR_BUSY/);
});
