import test from 'ava';
import type { CallContext } from './calls.js';
import type { ResetDone } from './metadata/leader-duties.js';
import { answerReset } from './shard-reset.js';
import type { NodeStatus } from './status.js';

const PLANNED: ResetDone = { to: 's1', lost: [{ member: 's1', state: 'in-sync', silentMs: 9000 }] };

/** At the leader, s1, which is to lose a copy of its own. */
function leader(status: Partial<NodeStatus>, asked: boolean[] = []) {
  const context = {
    id: 's1',
    driver: { leads: true },
    own: () => Promise.resolve(status),
    peers: { call: () => Promise.reject(new Error('it does not answer')) },
    reset: (_: unknown, accepted: boolean) => {
      asked.push(accepted);
      return Promise.resolve({ ...PLANNED, lost: [...PLANNED.lost, { ...PLANNED.lost[0]!, member: 's2' }] });
    },
  } as unknown as CallContext;
  return (acceptLoss: boolean) => answerReset(context, { shard: 3, acceptLoss });
}

test('copies are not given up while their server reads them from its disk', async (t) => {
  const asked: boolean[] = [];
  const reset = leader({ values: { recovering: { bytes: 50, all: 200 } } }, asked);
  await t.throwsAsync(reset(true), {
    code: 'ERR_BUSY',
    message: /^shard 3 is not lost: s1 reads its values from its disk \(25 % read\), and has a copy: wait for it$/,
  });
  t.deepEqual(asked, [false], 'it was planned alone');
  t.is((await reset(false)).lost.length, 2, 'what it would take is said');
});

test('copies of servers that have come without them, or do not answer, are given up by who accepts that', async (t) => {
  for (const status of [{ leaseHeld: true }, {}, { values: { waitsFor: ['s2'] } }] as Partial<NodeStatus>[]) {
    const asked: boolean[] = [];
    t.is((await leader(status, asked)(true)).lost.length, 2);
    t.deepEqual(asked, [false, true]);
  }
});
