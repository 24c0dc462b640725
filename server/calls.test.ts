import test from 'ava';
import { answerCall, type CallContext } from './calls.js';

test('a server that was removed is answered nothing more on the connection that it has', async (t) => {
  let ids = ['s1', 's2'];
  const context = { peers: { ids: [] }, stays: () => true } as unknown as CallContext;
  Object.defineProperty(context.peers, 'ids', { get: () => ids });
  t.deepEqual(await answerCall(context, 'peer', 'stays', {}, 's2'), { stays: true });
  ids = ['s1'];
  for (const method of ['stays', 'propose', 'lease', 'status', 'shard-reset'])
    await t.throwsAsync(answerCall(context, 'peer', method, {}, 's2'), { code: 'ERR_UNAUTHORIZED' }, method);
});
