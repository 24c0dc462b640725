/** A client with the token of a reader, in the SDK: it reads, and each kind of change says why not. */
import test from 'ava';
import { connect } from '../../client/index.js';
import { Cluster } from '../support/cluster.js';

test.serial('a reader is told that it may only read, whichever change it asks for', async (t) => {
  const args = ['--token', 'writes', '--reader-token', 'reads'];
  const cluster = await Cluster.start(t, { memory: '32mb', args });
  const [writer, reader] = await Promise.all(
    ['writes', 'reads'].map((token) => connect({ servers: cluster.addresses, token })),
  );
  t.teardown(() => Promise.all([writer?.close(), reader?.close()]));
  await writer!.put('k', 'v');
  t.is(String(await reader!.get('k')), 'v');
  for (const change of [
    () => reader!.put('k', 'w'),
    () => reader!.putMany([{ key: 'k', value: 'w' }]),
    () => reader!.delete('k'),
    () => reader!.deleteMany(['k']),
    () => reader!.compareAndSwap('k', 0n, 'w'),
    () => reader!.compareAndDelete('k', 1n),
    () => reader!.update('k', () => 'w'),
    () => reader!.increment('k'),
    () => reader!.append('k', 'w'),
    () => reader!.touch('k'),
    () => reader!.namespace(7).put('k', 'w'),
  ])
    await t.throwsAsync(change(), { code: 'ERR_UNAUTHORIZED', message: /it may only read/ }, String(change));
  t.is(String(await writer!.get('k')), 'v');
});
