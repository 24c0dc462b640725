/** What operators read while they wait for shards that move. */
import test from 'ava';
import { errorLines, failoverLines, roomLines } from './move-lines.js';
import type { ClusterStatus } from './status.js';

const waiting = (copies: object, handover: object = { handover: true }): ClusterStatus =>
  ({
    moves: [{ shard: 3, to: 's2', planned: 1, ...handover }],
    moveErrors: [],
    shards: [0, 1, 2, 3].map((shard) => ({ shard, owner: 's1', ...(shard === 3 ? { copies } : {}) })),
  }) as unknown as ClusterStatus;

const LINE =
  'shard 3 (s1 -> s2): s2 lacks memory for a copy of it, and tries again: start s2 again with more --memory, or move the shard to another server (farkv shard move)';

test('a handover that waits for a copy without room is told, whether the copy is being made or was given up', (t) => {
  const full = { member: 's2', full: true };
  t.deepEqual(errorLines(waiting({ copies: [{ ...full, state: 'joining' }] })), [LINE]);
  t.deepEqual(errorLines(waiting({ copies: [], notCopied: [{ ...full, times: 2 }] }), 's1'), [LINE]);
  t.deepEqual(errorLines(waiting({ copies: [full] }), 's2'), [], 'of another server');
});

test('a handover is not said to wait for room that it does not wait for', (t) => {
  const full = { member: 's2', full: true };
  const every = (): boolean => true;
  t.deepEqual(roomLines(waiting({ copies: [{ member: 's2', state: 'joining' }] }), every), []);
  t.deepEqual(roomLines(waiting({ copies: [{ ...full, member: 's3' }] }), every), [], 'the copy of a third one');
  t.deepEqual(roomLines(waiting({ copies: [full] }, {}), every), [], 'a move says so itself');
  t.deepEqual(
    roomLines(waiting({ copies: [full] }), ({ to }) => to === 's3'),
    [],
  );
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
