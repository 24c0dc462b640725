import test from 'ava';
import { Bucket, Buckets } from './bucket.js';

test('one that is not there yet can be reserved, in turn, as long as nobody waits too long', (t) => {
  const bucket = new Bucket({ perSecond: 10, burst: 2 }, 0);
  t.deepEqual(
    Array.from({ length: 6 }, () => bucket.reserve(0, 300)),
    [0, 0, 100, 200, 300, undefined],
  );
  t.is(bucket.reserve(100, 300), 300);
  t.is(bucket.reserve(100, 300), undefined);
  t.is(bucket.reserve(10_000, 300), 0);
});

test('each name has a bucket of its own, and those used last are remembered', (t) => {
  const buckets = new Buckets({ perSecond: 1, burst: 1 }, 2);
  t.true(buckets.of('a', 0).take(0));
  t.true(buckets.of('b', 0).take(0));
  t.false(buckets.of('a', 0).take(0));
  t.true(buckets.of('c', 0).take(0));
  t.false(buckets.of('a', 0).take(0));
  t.true(buckets.of('b', 0).take(0), 'forgotten, so it begins anew');
});
