/**
 * Both copies of a shard are lost, and a third server has one that joins, with real processes: `farkv shard reset --from`
 * serves what that copy has. Where it has none any more, that is said, and no server ends.
 */
import test from 'ava';
import { connect } from '../../client/index.js';
import type { ClusterStatus } from '../../server/status.js';
import { Cluster, farkv, type ServerProcess } from '../support/cluster.js';
import { statusWhen } from '../support/status.js';

const THREE = { servers: 3, shards: 1, args: ['--lease-ms', '400', '--owner-lease-ms', '2000'] } as const;
const KEYS = Array.from({ length: 40 }, (_, i) => `key-${i}`);

interface Lost {
  readonly owner: ServerProcess;
  /** Its copy was in sync, and joins. */
  readonly joins: ServerProcess;
  /** Has nothing of the shard. */
  readonly other: ServerProcess;
  readonly reset: (...more: string[]) => ReturnType<typeof farkv>;
}

const isGone = (s: ClusterStatus): boolean => s.shards[0]?.copies?.gone === true;

/** The owner has ended, and started again without what it had, while the only other copy was away. */
async function lost(cluster: Cluster): Promise<Lost> {
  const isKept = (s: ClusterStatus): boolean => s.shards[0]?.state === 'serving' && s.shards[0].copies?.inSync === 2;
  const status = await statusWhen(cluster.server(0).address, isKept);
  const client = await connect({ servers: cluster.addresses });
  for (const key of KEYS) await client.put(key, Buffer.from(key));
  await client.close();
  const members = status.shards[0]!.copies!.copies.map(({ member }) => member);
  const owner = cluster.servers.find(({ id }) => id === status.shards[0]!.owner)!;
  const joins = cluster.servers.find(({ id }) => id !== owner.id && members.includes(id))!;
  const other = cluster.servers.find(({ id }) => !members.includes(id))!;
  joins.signal('SIGSTOP');
  await statusWhen(other.address, (s) =>
    s.shards[0]!.copies!.copies.some(({ member, state }) => member === joins.id && state === 'joining'),
  );
  await owner.kill();
  joins.signal('SIGCONT');
  await owner.start();
  const reset = (...more: string[]): ReturnType<typeof farkv> =>
    farkv(['shard', 'reset', '0', ...more, '--connect', other.address]);
  await statusWhen(other.address, (s) => isGone(s) && s.members.every(({ state }) => state === 'up'));
  return { owner, joins, other, reset };
}

/** As soon as nobody can rely on the last owner any more. */
async function patiently(ask: () => ReturnType<typeof farkv>): ReturnType<typeof farkv> {
  let asked = await ask();
  while (asked.stderr.includes('may still rely')) asked = await ask();
  return asked;
}

test('a shard is served with the only copy that is left, which joined', async (t) => {
  const cluster = await Cluster.start(t, THREE);
  const { joins, other, reset } = await lost(cluster);
  const asked = await patiently(() => reset('--from', joins.id));
  t.is(asked.code, 1, asked.stderr);
  t.regex(asked.stdout, new RegExp(`${joins.id} serves shard 0 with its copy`));
  const wrong = await reset('--from', other.id, '--accept-loss');
  t.is(wrong.code, 2, wrong.stderr);
  t.regex(wrong.stderr, new RegExp(`${other.id} has no copy of shard 0 to begin with; these have one: ${joins.id}`));
  const done = await reset('--from', joins.id, '--accept-loss');
  t.is(done.code, 0, done.stderr);
  t.regex(done.stdout, /shard 0 is served again/);
  const client = await connect({ servers: cluster.addresses });
  t.teardown(() => client.close());
  t.deepEqual(
    (await client.getMany(KEYS)).map((value) => value?.toString()),
    KEYS,
  );
  await client.put('key-0', Buffer.from('again'));
  t.is((await client.get('key-0'))?.toString(), 'again');
  t.true(cluster.servers.every(({ running }) => running));
});

test('a server whose copy is not there any more is not given the shard with it, and nobody ends', async (t) => {
  const cluster = await Cluster.start(t, THREE);
  const { joins, other, reset } = await lost(cluster);
  await joins.stop();
  await joins.start();
  await statusWhen(other.address, (s) => isGone(s) && s.members.every(({ state }) => state === 'up'));
  const refused = await patiently(() => reset('--from', joins.id, '--accept-loss'));
  t.is(refused.code, 2, refused.stderr);
  t.regex(refused.stderr, /has no copy of shard 0 to begin with; no server has one: say --accept-loss without --from/);
  const done = await reset('--accept-loss');
  t.is(done.code, 0, done.stderr);
  const client = await connect({ servers: cluster.addresses });
  t.teardown(() => client.close());
  t.is(await client.get('key-0'), undefined);
  t.true(cluster.servers.every(({ running }) => running));
});
