import test from 'ava';
import type { Command } from '../core/metadata/commands.js';
import { EMPTY } from '../core/metadata/reduce.js';
import type { MetadataState } from '../core/metadata/state.js';
import { FarkvError } from '../core/errors.js';
import { answerAdminCall, answerJoin, type AdminContext } from './admin-calls.js';
import { createHash } from 'node:crypto';

const TOKEN = 'of a joiner';

/** A server whose metadata knows one join token; what it proposes is refused. */
function context(guesses: number): { readonly context: AdminContext; readonly proposed: Command[] } {
  const proposed: Command[] = [];
  const hash = createHash('sha256').update(TOKEN, 'utf8').digest('hex');
  const state: MetadataState = {
    ...EMPTY,
    clusterId: '1f'.repeat(16),
    joinTokens: [{ hash, expiresMs: Number.MAX_SAFE_INTEGER }],
  };
  let left = guesses;
  return {
    proposed,
    context: {
      id: 's1',
      driver: { state, leader: 1, leads: true },
      peers: { call: () => Promise.reject(new Error('nobody is asked')), idOf: () => 's1', servers: [] },
      grantor: { current: undefined },
      propose: (command) => {
        proposed.push(command);
        return Promise.resolve({ ok: false, code: 'ERR_UNAUTHORIZED', message: 'the join token is wrong' });
      },
      nowMs: () => 0,
      latestWallMs: () => 0,
      joinTokens: true,
      mayGuess: () => (left -= 1) >= 0,
    },
  };
}

test('of join tokens that nobody has made only so many become entries of the log, and one that was made always does', async (t) => {
  const { context: of, proposed } = context(2);
  const join = (token: string) =>
    answerJoin(of, 's9', { instance: '0a'.repeat(8), control: ['127.0.0.1:1'], peer: ['127.0.0.1:2'], token });
  for (let i = 0; i < 2; i++) await t.throwsAsync(join(`guess ${i}`), { code: 'ERR_UNAUTHORIZED' });
  for (let i = 0; i < 5; i++) await t.throwsAsync(join(`guess ${i}`), { code: 'ERR_BUSY' });
  t.is(proposed.length, 2);
  await t.throwsAsync(join(TOKEN), { code: 'ERR_UNAUTHORIZED' });
  t.is(proposed.length, 3);
});

test('a change that nobody took in time says that there is no leader, where the server that is asked knows none', async (t) => {
  const late = new FarkvError('ERR_TIMEOUT', 'the metadata group did not take a change');
  const { context: of } = context(1);
  const asked = (leader: string | undefined, error: Error, method: string, args: unknown): Promise<unknown> =>
    answerAdminCall(
      { ...of, propose: () => Promise.reject(error), peers: { ...of.peers, idOf: () => leader } },
      method,
      args,
    );
  const policy = { level: 'replicated', replicas: 2, minInSync: 1, onLoss: 'wait' };
  for (const [method, args] of [
    ['drain', { id: 's1', draining: true }],
    ['replication-set', policy],
    ['join-token-add', { hash: '0a'.repeat(32), ttlMs: 1000 }],
  ] as const) {
    await t.throwsAsync(asked(undefined, late, method, args), {
      code: 'ERR_NO_LEADER',
      message: /^the metadata group has no leader at present: more than half of its voters are needed/,
    });
    await t.throwsAsync(asked('s2', late, method, args), { is: late });
    const closed = new FarkvError('ERR_CLOSED', 'the server is closing');
    await t.throwsAsync(asked(undefined, closed, method, args), { is: closed });
  }
});

test('a move is made of the shard as it was seen', async (t) => {
  const { context: of, proposed } = context(1);
  const shard = { shard: 0, owner: 's1', worker: 0, epoch: 7, layoutEpoch: 0, buckets: 0, regions: [] };
  const state = { ...of.driver.state, shards: [shard], moves: [{ shard: 0, to: 's2', planned: 5 }] };
  const asked = (args: object) => answerAdminCall({ ...of, driver: { ...of.driver, state } }, 'shard-move', args);
  await t.throwsAsync(asked({ shard: 0, to: 's1' }));
  await t.throwsAsync(asked({ shard: 0, to: 's2', epoch: 6 }));
  t.like(proposed, [
    { t: 'shard-move', epoch: 7 },
    { t: 'shard-move', epoch: 6 },
  ]);
});
