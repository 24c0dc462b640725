/** A client with the token of a reader, in the SDK: it reads, and each kind of change says why not. */
import test from 'ava';
import { connect } from '../../client/index.js';
import { CALLS } from '../chaos/calls.js';
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
  for (const kv of [reader!, reader!.namespace(7)])
    for (const { name, plain } of CALLS.filter(({ changes }) => changes))
      await t.throwsAsync(
        async () => await plain!(kv, 'k'),
        { code: 'ERR_UNAUTHORIZED', message: /it may only read/ },
        name,
      );
  t.is(String(await writer!.get('k')), 'v');
});
