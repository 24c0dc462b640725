import test from 'ava';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { MetadataState, Shard } from '../../core/metadata/state.js';
import { applyChange, StateFeed, type StateChange } from './state-feed.js';

const shard = (n: number, layoutEpoch = 1): Shard => ({
  shard: n,
  worker: 0,
  epoch: 1,
  layoutEpoch,
  buckets: 1,
  regions: [],
});
const first: MetadataState = { ...EMPTY, clusterId: 'ab'.repeat(16), mapEpoch: 1, shards: [shard(0), shard(1)] };

test('the other end has the same state, and what did not change is what it had', (t) => {
  const sent: StateChange[] = [];
  const feed = new StateFeed((change) => sent.push(structuredClone(change)));
  let there = EMPTY;
  const take = (): void => {
    there = applyChange(there, sent.shift()!);
    feed.taken();
  };
  feed.offer(first);
  take();
  t.deepEqual(there, first);
  const [kept] = there.shards;
  const second = { ...first, mapEpoch: 2, shards: [first.shards[0]!, shard(1, 2)] };
  feed.offer(second);
  t.is(sent[0]?.shards.length, 1);
  take();
  t.deepEqual(there, second);
  t.is(there.shards[0], kept);
  const { members } = there;
  feed.offer({ ...second, mapEpoch: 3 });
  take();
  t.is(there.members, members);
  feed.offer({ ...EMPTY });
  take();
  t.deepEqual(there, EMPTY);
});

test('copies of shards stay behind', (t) => {
  const sent: StateChange[] = [];
  const copySets = first.shards.map(() => ({ config: 1, copies: [] }));
  new StateFeed((change) => sent.push(change)).offer({ ...first, copySets });
  t.deepEqual(applyChange(EMPTY, sent[0]!), first);
});

test('one change is on its way at a time, and then the newest follows', (t) => {
  const sent: StateChange[] = [];
  const feed = new StateFeed((change) => sent.push(change));
  for (let mapEpoch = 1; mapEpoch <= 100; mapEpoch++) feed.offer({ ...first, mapEpoch });
  t.deepEqual(
    sent.map((change) => change.rest.mapEpoch),
    [1],
  );
  feed.taken();
  t.deepEqual(
    sent.map((change) => change.rest.mapEpoch),
    [1, 100],
  );
  feed.taken();
  t.is(sent.length, 2);
});
