import test from 'ava';
import type { Command } from '../metadata/commands.js';
import { MetadataLog } from '../../test/support/metadata-log.js';
import { ChangedShards } from './changed-shards.js';

function opened(): MetadataLog {
  const log = MetadataLog.cluster(6, ['s1', 's2']);
  for (const { shard } of log.state.shards) log.open(shard, 100 + shard);
  return log;
}
const numbers = (changed: ChangedShards, log: MetadataLog): number[] => changed.since(log.state).map((s) => s.shard);
const all = [0, 1, 2, 3, 4, 5];
const layout = (log: MetadataLog, shard: number): Command => {
  const { incarnation = '', layoutEpoch } = log.shard(shard);
  return {
    t: 'shard-layout',
    shard,
    incarnation,
    from: layoutEpoch,
    layoutEpoch: layoutEpoch + 1,
    buckets: 64,
    add: [],
    remove: [],
  };
};

test('at first all shards are looked at; then those that changed, however many entries were applied meanwhile', (t) => {
  const log = opened();
  const changed = new ChangedShards();
  t.deepEqual(numbers(changed, log), all);
  t.deepEqual(numbers(changed, log), []);
  log.do(layout(log, 3));
  t.deepEqual(numbers(changed, log), [3]);
  for (const shard of [1, 5, 1]) log.do(layout(log, shard), { t: 'no-op' });
  t.deepEqual(numbers(changed, log), [1, 5]);
  t.deepEqual(numbers(changed, log), []);
});

test('a shard that is to be looked at again is, once', (t) => {
  const log = opened();
  const changed = new ChangedShards();
  changed.since(log.state);
  changed.again(2);
  log.do(layout(log, 4));
  t.deepEqual(numbers(changed, log), [2, 4]);
  changed.again(0);
  t.deepEqual(numbers(changed, log), [0]);
  t.deepEqual(numbers(changed, log), []);
});

test('when moves or members change all shards are looked at', (t) => {
  const log = opened();
  const changed = new ChangedShards();
  changed.since(log.state);
  const [shard = 0] = log.ownedBy('s1');
  const s1 = log.state.members.get('s1')!;
  log.do({ t: 'shard-move', shard, epoch: log.shard(shard).epoch, to: 's2' });
  t.deepEqual(numbers(changed, log), all);
  log.do({
    t: 'member-join',
    id: 's1',
    incarnation: '0f'.repeat(8),
    replaces: s1.incarnation,
    instance: s1.instance ?? '',
    control: s1.control,
    fabric: s1.fabric,
    memoryBytes: s1.memoryBytes,
  });
  t.deepEqual(numbers(changed, log), all);
});
