/**
 * A backup that is paused for longer than its owner waits, with real processes and a policy by which changes need two
 * copies: they are refused meanwhile, change nothing, and go on with the copy that it has when it is back.
 */
import test from 'ava';
import type { ClusterStatus } from '../../server/status.js';
import { Cluster, farkv, succeeds } from '../support/cluster.js';
import { patient } from '../support/sdk-clients.js';
import { statusWhen } from '../support/status.js';

/** By default nobody is taken for dead so soon: the paused server is late, and no more. */
const THREE = { servers: 3, shards: 6, args: ['--lease-ms', '400'] } as const;

const kept = (status: ClusterStatus): boolean =>
  status.shards.every((s) => s.state === 'serving' && s.copies?.inSync === 2 && s.copies.copies.length === 2);

test('changes without enough copies change nothing, and go on when a paused backup is back', async (t) => {
  const cluster = await Cluster.start(t, THREE);
  const { address } = cluster.server(0);
  await statusWhen(address, (s) => s.replication.length > 0);
  // It votes, and has no copies: nobody takes the place of the server that is paused.
  await succeeds(t, cluster, 'drain', 's3');
  const policy = ['--level', 'replicated', '--min-in-sync', '2'];
  const { code, stderr } = await farkv(['replication', 'set', ...policy, '--connect', address]);
  t.is(code, 0, stderr);
  await statusWhen(address, kept);
  const paused = cluster.server(1);

  const client = await patient(t, cluster.addresses);
  const keys = Array.from({ length: 60 }, (_, i) => `key-${i}`);
  for (const key of keys) await client.put(key, Buffer.from('one'));
  paused.signal('SIGSTOP');
  await statusWhen(address, (s) => s.shards.some((one) => one.copies?.trouble === 'too few'));
  const outcomes = await Promise.all(
    keys.map((key) =>
      client.put(key, Buffer.from('two'), { timeoutMs: 1000 }).then(
        () => 'ok',
        (error: unknown) => String((error as { readonly code?: string }).code),
      ),
    ),
  );
  const refused = keys.filter((_, i) => outcomes[i] === 'ERR_TOO_FEW_COPIES');
  t.true(refused.length > 0, JSON.stringify(outcomes));
  for (const key of refused) t.is((await client.get(key))?.toString(), 'one');

  paused.signal('SIGCONT');
  await statusWhen(address, kept);
  for (const key of refused) await client.put(key, Buffer.from('three'));
  for (const key of refused) t.is((await client.get(key))?.toString(), 'three');
});
