import test from 'ava';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { MetadataState, Shard } from '../../core/metadata/state.js';
import { OwnerNews } from './owner-news.js';

/** Shards 0, 1, ... with these owners. */
const state = (...owners: readonly (string | undefined)[]): MetadataState => ({
  ...EMPTY,
  shards: owners.map((owner, shard) => ({ shard, ...(owner === undefined ? {} : { owner }) }) as Shard),
});
const failover = (agoMs: number, more: { readonly from?: string; readonly to?: string } = {}) =>
  ({ from: 's1', to: 's2', shards: 9, why: 'silent', values: 'all', agoMs, ...more }) as const;
const WHY = 'since s1 did not answer: with all values, from a copy';

test('a planned change of owners is said when a status knows of no failover, and once', (t) => {
  const news = new OwnerNews();
  news.add(state('s1', 's2', 's2', undefined), state('s1', 's1', 's1', 's3'), 10_000);
  t.deepEqual(news.lines([], 10_500), [], 'this status was asked for before');
  news.ask();
  t.deepEqual(news.lines([failover(90_000, { from: 's2', to: 's1' })], 10_500), [
    { atMs: 10_000, text: 'from s2 to s1: shards 1, 2' },
    { atMs: 10_000, text: 's3 owns shard 3' },
  ]);
  news.ask();
  t.deepEqual(news.lines([], 11_500), []);
});

test('a failover is one line with its shards and its reason, when it is over, however often and late a status has it', (t) => {
  const news = new OwnerNews();
  news.add(state('s1', 's1', 's1'), state('s1', 's2', 's1'), 10_000);
  news.ask();
  t.deepEqual(news.lines([failover(500)], 10_500), [], 'more shards may come');
  news.add(state('s1', 's2', 's1'), state('s2', 's2', 's3'), 10_600);
  news.ask();
  // The status was on its way for a second: one of the servers stands still.
  t.deepEqual(news.lines([failover(1000), failover(1000, { to: 's3' })], 12_600), [
    { atMs: 10_000, text: `failover: shards 0, 1 from s1 to s2, ${WHY}` },
    { atMs: 10_600, text: `failover: shard 2 from s1 to s3, ${WHY}` },
  ]);
  news.ask();
  t.deepEqual(news.lines([failover(1500), failover(1600, { to: 's3' })], 16_000), [], 'as a later status has it');
});

test('a shard that had no owner meanwhile has failed over from the one before', (t) => {
  const news = new OwnerNews();
  news.add(state('s1'), state(undefined), 10_000);
  news.add(state(undefined), state('s2'), 10_100);
  news.ask();
  t.deepEqual(news.lines([{ ...failover(2000), values: 'none' }], 12_100), [
    { atMs: 10_100, text: 'failover: shard 0 from s1 to s2, since s1 did not answer: empty, since s2 had no copy' },
  ]);
});
