import test from 'ava';
import { raftIdOf } from '../../core/metadata/placement.js';
import { hexOf, MetadataLog } from '../../test/support/metadata-log.js';
import { changesTo, nearTo } from './group-members.js';

const [S1, S2, S3, S4] = ['s1', 's2', 's3', 's4'].map(raftIdOf) as [number, number, number, number];

test('votes move only while most of those who will vote answer', (t) => {
  const log = MetadataLog.cluster(1, ['s1', 's2', 's3']).do({
    ...{ t: 'server-add', id: 's4', raftId: S4, instance: hexOf(S4), control: [] },
  });
  const config = { voters: [S1, S2, S3], outgoing: [], learners: [S4] };
  t.deepEqual(changesTo(log.state, { ...config, learners: [] }, new Set([S1])), [{ kind: 'learner', id: S4 }]);
  t.deepEqual(changesTo(log.state, config, new Set([S1])), []);
  log.do({ t: 'voters-set', voters: ['s1', 's2', 's4'] });
  t.deepEqual(changesTo(log.state, config, new Set([S1])), [], 'the vote of s3 stays where it is');
  for (const near of [
    [S1, S4],
    [S1, S2],
  ])
    t.deepEqual(changesTo(log.state, config, new Set(near)), [
      { kind: 'learner', id: S3 },
      { kind: 'voter', id: S4 },
    ]);
  t.deepEqual(changesTo(log.state, { ...config, outgoing: [S1] }, new Set([S1, S4])), []);
  // The server that was to vote is removed: nothing waits for it.
  log.do({ t: 'server-remove', id: 's4', raftId: S4 });
  t.deepEqual(changesTo(log.state, config, new Set([S1])), [{ kind: 'remove', id: S4 }]);
  t.deepEqual(changesTo(log.state, config, new Set([S1, S2])), [
    { kind: 'learner', id: S3 },
    { kind: 'remove', id: S4 },
  ]);
});

test('a member is near when it has answered in this term, lately, and lacks few entries', (t) => {
  const progress = (
    [
      [1, 'replicate', 100, true],
      [2, 'probe', 90, true],
      [3, 'snapshot', 90, true],
      [4, 'replicate', 36, true],
      [5, 'replicate', 35, true],
      [6, 'replicate', 100, false],
    ] as const
  ).map(([id, state, match, active]) => ({ id, state, match, active }));
  t.deepEqual([...nearTo({ progress, lastIndex: 100, id: 1 })].sort(), [1, 4]);
  t.deepEqual([...nearTo({ progress: [], lastIndex: 100, id: 1 })], [1]);
});
