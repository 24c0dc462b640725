/** `farkv drain` and `farkv member remove`, with copies that others can take and with some that nobody can. */
import test from 'ava';
import { Cluster, farkv, succeeds } from '../support/cluster.js';
import { copied, statusWhen } from '../support/status.js';

test('a drain says which copies stay and what makes the server removable, and that does', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 4, level: 'replicated' });
  const { address } = cluster.server(0);
  await statusWhen(address, copied);
  await succeeds(t, cluster, 'replication', 'set', '--replicas', '3');
  await statusWhen(address, copied);

  const drained = await farkv(['drain', 's3', '--connect', address]);
  t.is(drained.code, 1, drained.stdout);
  t.regex(
    drained.stderr,
    /s3 owns no shards and gets none, but the copies of shards 0, 1, 2, 3 stay there: 3 copies of each value are wanted, and 2 other servers keep values; s3 may be stopped: .*\(farkv replication set --replicas 2\), then farkv drain s3 again\n/,
  );
  const kept = await farkv(['member', 'remove', 's3', '--connect', address]);
  t.is(kept.code, 1);
  t.regex(
    kept.stderr,
    /s3 is drained, and still has copies of 4 shards, since 2 other servers keep values: .*\(farkv replication set --replicas 2\); they go then\n/,
  );

  await succeeds(t, cluster, 'replication', 'set', '--replicas', '2');
  t.regex(await succeeds(t, cluster, 'drain', 's3'), /^s3 owns no shards, has no copies, and gets none: /);
  await succeeds(t, cluster, 'member', 'remove', 's3');
  t.is((await cluster.server(2).exit).code, 4);
});

test('a drain waits until others have the copies too, so that the server can be removed at once', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 3, level: 'replicated' });
  const { address } = cluster.server(0);
  await statusWhen(address, copied);
  // A server that is away keeps its place for a minute: no shard is to wait for that to leave s2.
  for (const shard of Array(3).keys()) await succeeds(t, cluster, 'shard', 'move', String(shard), 's1');
  await statusWhen(address, copied);
  await cluster.server(2).kill();
  await statusWhen(address, (s) => s.members.some(({ id, state }) => id === 's3' && state === 'unreachable'));
  const vain = await farkv(['drain', 's2', '--wait', '0', '--connect', address]);
  t.is(vain.code, 1, vain.stdout);
  t.regex(vain.stderr, /copies of shards [\d, ]+ stay at s2 until their place is taken at s3, which cannot be reached/);
  t.regex(vain.stderr, /did not happen within 0 ms; .*; s2 still (owns shards? [\d, ]+|has copies of shards? [\d, ]+)/);
  const line = /\ns2 is being drained, and still (owns|has copies of) \d /;
  t.regex((await farkv(['status', '--connect', address])).stdout, line);
  t.regex(await succeeds(t, cluster, 'member', 'list'), line);

  await cluster.server(2).start();
  await succeeds(t, cluster, 'drain', 's2');
  await succeeds(t, cluster, 'member', 'remove', 's2');

  t.regex(await succeeds(t, cluster, 'drain', 's3', '--undo'), /^s3 is not being drained: nothing was changed\n/);
  for (const ask of [['s2', '--undo'], ['s2']]) {
    const gone = await farkv(['drain', ...ask, '--connect', address]);
    t.is(gone.code, 2, gone.stdout);
    t.regex(gone.stderr, /s2 is not one of the servers/);
  }

  await cluster.server(2).kill();
  const alone = await farkv(['drain', 's3', '--connect', address]);
  t.is(alone.code, 69, alone.stdout);
  t.regex(
    alone.stderr,
    /the metadata group has no leader at present: .*\nfarkv status names the servers to start again/,
  );
  t.notRegex(alone.stderr, /--timeout/);
});
