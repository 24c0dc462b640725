import test from 'ava';
import { bootstrapOf, joinOf, MetadataLog } from '../../test/support/metadata-log.js';
import { MetadataMachine } from './machine.js';
import { EMPTY } from './reduce.js';
import { tenantNumber, tenantRange, tenantRanges } from './tenants.js';

const plain = bootstrapOf(9, ['s1']);
const bootstrap = {
  ...plain,
  tenants: [
    { name: 'a', shards: 4 },
    { name: 'b', shards: 3 },
  ],
};

test('the shards of tenants follow each other and are all there are', (t) => {
  const { state } = new MetadataLog().do(bootstrap);
  t.deepEqual(tenantRanges(state), [
    { first: 0, count: 2 },
    { first: 2, count: 4 },
    { first: 6, count: 3 },
  ]);
  t.deepEqual(
    [undefined, 'a', 'b', 'c', 'default', ''].map((name) => tenantNumber(state, name)),
    [0, 1, 2, undefined, undefined, undefined],
  );
  t.deepEqual(tenantRange(state, 3), { first: 0, count: 0 });
  t.deepEqual(tenantRanges(new MetadataLog().do(plain).state), [{ first: 0, count: 9 }]);
});

test('a cluster of tenants that cannot be is not made', (t) => {
  for (const tenants of [
    [{ name: 'a', shards: 9 }],
    [{ name: 'a', shards: 10 }],
    [{ name: 'a', shards: 0 }],
    [
      { name: 'a', shards: 1 },
      { name: 'a', shards: 1 },
    ],
  ]) {
    const log = new MetadataLog();
    t.regex(log.try({ ...plain, tenants }), /ERR_CONFIG/);
    t.is(log.state, EMPTY);
  }
  const many = Array.from({ length: 16 }, (_, i) => ({ name: `d${i}`, shards: 1 }));
  t.throws(() => new MetadataLog().try({ ...plain, shards: 100, tenants: many }), { code: 'ERR_PROTOCOL' });
});

test('tenants stay as they are when servers come, and in snapshots', (t) => {
  const log = new MetadataLog().do(bootstrap, joinOf('s1', 1), { t: 'assign-shards' });
  const again = new MetadataMachine();
  again.restore(log.machine.snapshot());
  t.deepEqual(again.state, log.state);
  t.deepEqual(again.state.tenants, bootstrap.tenants);
  t.deepEqual(again.snapshot(), log.machine.snapshot());
});
