/** What operators read while they wait for shards that move. */
import test from 'ava';
import { errorLines, failoverLines } from './move-lines.js';
import type { ClusterStatus } from './status.js';

const error = { shard: 3, from: 's1', to: 's2', attempts: 2, reason: 'nobody answers', agoMs: 5 };

test('what is in the way of a move is told of the server that gives the shard away, and whether it goes on', (t) => {
  const status = {
    moveErrors: [
      { ...error, calledOff: false },
      { ...error, shard: 4, from: 's3', attempts: 4, calledOff: true },
    ],
  } as unknown as ClusterStatus;
  t.deepEqual(errorLines(status), [
    'shard 3 could not be copied yet (s1 -> s2, 2 attempts); it will be retried: nobody answers',
    'move of shard 4 (s3 -> s2) cancelled after 4 attempts; s3 keeps serving it: nobody answers',
  ]);
  t.is(errorLines(status, 's1').length, 1);
});

test('of owners that were replaced together each is told, and of earlier ones how many there were lately', (t) => {
  const of = (from: string, to: string, agoMs: number) =>
    ({ from, to, shards: 2, why: 'silent', values: 'all', agoMs }) as const;
  const lines = failoverLines({
    failovers: [of('s3', 's1', 7000), of('s4', 's1', 7900), of('s4', 's2', 8100), of('s2', 's1', 600_000)],
  });
  t.deepEqual(
    lines.map((line) => /^last failover: (.*) s ago, since \S+ did not answer/.exec(line)?.[1]),
    ['2 shards from s3 to s1 7', '2 shards from s4 to s1 8', '2 shards from s4 to s2 8'],
  );
  t.deepEqual(failoverLines({ failovers: [] }), []);
  const earlier = [of('s3', 's1', 7000), of('s2', 's1', 12_000), of('s4', 's2', 599_999), of('s1', 's2', 600_000)];
  t.deepEqual(failoverLines({ failovers: earlier }).slice(1), [
    'and 2 more in the last ten minutes: farkv status --json has them (failovers)',
  ]);
});
