import test from 'ava';
import { bootstrapOf, joinOf, MetadataLog } from '../../test/support/metadata-log.js';
import { MetadataMachine } from './machine.js';
import { EMPTY } from './reduce.js';
import { trustNumber, trustRange, trustRanges } from './trust.js';

const plain = bootstrapOf(9, ['s1']);
const bootstrap = {
  ...plain,
  trustDomains: [
    { name: 'a', shards: 4 },
    { name: 'b', shards: 3 },
  ],
};

test('the shards of trust domains follow each other and are all there are', (t) => {
  const { state } = new MetadataLog().do(bootstrap);
  t.deepEqual(trustRanges(state), [
    { first: 0, count: 2 },
    { first: 2, count: 4 },
    { first: 6, count: 3 },
  ]);
  t.deepEqual(
    [undefined, 'a', 'b', 'c', 'default', ''].map((name) => trustNumber(state, name)),
    [0, 1, 2, undefined, undefined, undefined],
  );
  t.deepEqual(trustRange(state, 3), { first: 0, count: 0 });
  t.deepEqual(trustRanges(new MetadataLog().do(plain).state), [{ first: 0, count: 9 }]);
});

test('a cluster of trust domains that cannot be is not made', (t) => {
  for (const trustDomains of [
    [{ name: 'a', shards: 9 }],
    [{ name: 'a', shards: 10 }],
    [{ name: 'a', shards: 0 }],
    [
      { name: 'a', shards: 1 },
      { name: 'a', shards: 1 },
    ],
  ]) {
    const log = new MetadataLog();
    t.regex(log.try({ ...plain, trustDomains }), /ERR_CONFIG/);
    t.is(log.state, EMPTY);
  }
  const many = Array.from({ length: 16 }, (_, i) => ({ name: `d${i}`, shards: 1 }));
  t.throws(() => new MetadataLog().try({ ...plain, shards: 100, trustDomains: many }), { code: 'ERR_PROTOCOL' });
});

test('trust domains stay as they are when servers come, and in snapshots', (t) => {
  const log = new MetadataLog().do(bootstrap, joinOf('s1', 1), { t: 'assign-shards' });
  const again = new MetadataMachine();
  again.restore(log.machine.snapshot());
  t.deepEqual(again.state, log.state);
  t.deepEqual(again.state.trustDomains, bootstrap.trustDomains);
  t.deepEqual(again.snapshot(), log.machine.snapshot());
});
