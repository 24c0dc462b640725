/** What operators read while they wait for shards that move. */
import test from 'ava';
import { errorLines, roomLines } from './move-lines.js';
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
