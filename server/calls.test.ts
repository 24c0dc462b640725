import test from 'ava';
import { EMPTY } from '../core/metadata/reduce.js';
import { answerCall, type CallContext } from './calls.js';
import { OWN_READINESS } from './http/bounds.js';
import type { ClusterStatus } from './status.js';

test('a server that was removed is answered nothing more on the connection that it has', async (t) => {
  let ids = ['s1', 's2'];
  const context = { peers: { ids: [] }, stays: () => true } as unknown as CallContext;
  Object.defineProperty(context.peers, 'ids', { get: () => ids });
  t.deepEqual(await answerCall(context, 'peer', 'stays', {}, 's2'), { stays: true });
  ids = ['s1'];
  for (const method of ['stays', 'is-at', 'propose', 'lease', 'status', 'shard-reset'])
    await t.throwsAsync(answerCall(context, 'peer', method, {}, 's2'), { code: 'ERR_UNAUTHORIZED' }, method);
});

test('a leader says that it leads when a quorum has confirmed it', async (t) => {
  let confirm = (): void => undefined;
  const driver = { leads: true, confirmLeader: () => new Promise<void>((resolve) => (confirm = resolve)) };
  const context = { driver, peers: { ids: ['s2'] } } as unknown as CallContext;
  let answered = false;
  const answer = answerCall(context, 'peer', 'leads', {}, 's2').then(() => (answered = true));
  await new Promise((resolve) => setImmediate(resolve));
  t.false(answered);
  confirm();
  await answer;
  t.true(answered);
});

test('a server says where it is for itself alone, and nobody else says anything', async (t) => {
  const told: unknown[] = [];
  const peers = { ids: ['s1', 's2'], isAt: (...said: unknown[]) => told.push(said) };
  const context = { peers } as unknown as CallContext;
  const peer = ['10.0.0.2:9400'];
  await answerCall(context, 'peer', 'is-at', { peer, id: 's1' }, 's2');
  t.deepEqual(told, [['s2', peer]]);
  for (const args of [{}, { peer: 'x' }, { peer: ['no address'] }, { peer: Array<string>(65).fill(peer[0]!) }])
    await t.throwsAsync(
      answerCall(context, 'peer', 'is-at', args, 's2'),
      { code: 'ERR_PROTOCOL' },
      JSON.stringify(args),
    );
  await t.throwsAsync(answerCall(context, 'peer', 'is-at', { peer }));
  for (const access of ['joiner', 'operator', 'monitor'] as const)
    await t.throwsAsync(answerCall(context, access, 'is-at', { peer }, 's2'), undefined, access);
  t.is(told.length, 1);
});

test('what probes need is answered without a question to the data plane, and to nobody else', async (t) => {
  const context = {
    id: 's1',
    driver: { state: EMPTY, leader: 0 },
    peers: { ids: ['s1'], idOf: () => undefined },
    stays: () => true,
    parts: () => ({ lease: { held: true }, values: undefined, shards: { serving: [] }, dataPlane: undefined }),
    own: () => Promise.reject(new Error('the data plane is asked')),
  } as unknown as CallContext;
  t.like(await answerCall(context, 'monitor', OWN_READINESS, {}), { role: 'starting', leaseHeld: true, waiting: [] });
  for (const access of ['joiner', 'operator', 'peer'] as const)
    await t.throwsAsync(answerCall(context, access, OWN_READINESS, {}), undefined, access);
});

test('of a status other servers have less time where its caller has little, and a second at most', async (t) => {
  const asked: number[] = [];
  const context = {
    id: 's1',
    driver: { state: EMPTY, leader: 0, status: () => ({ term: 1 }) },
    peers: {
      ids: ['s1', 's2'],
      idOf: () => undefined,
      call: (_id: string, _method: string, _args: unknown, timeoutMs: number) => {
        asked.push(timeoutMs);
        return Promise.reject(new Error('it stands still'));
      },
    },
    own: () => Promise.resolve({ moveErrors: [], heldBack: [], fullCopies: [], movedVotes: [], failovers: [] }),
  } as unknown as CallContext;
  for (const call of [{ timeoutMs: 500 }, { timeoutMs: 1 }, { timeoutMs: 60_000 }, {}]) {
    const { members } = (await answerCall(context, 'operator', 'status', call)) as ClusterStatus;
    t.deepEqual(
      members.map(({ id, state }) => `${id} ${state}`),
      ['s1 up', 's2 absent'],
    );
  }
  t.deepEqual(asked, [250, 250, 1000, 1000]);
  await t.throwsAsync(answerCall(context, 'operator', 'status', { timeoutMs: -1 }), { code: 'ERR_PROTOCOL' });
});
