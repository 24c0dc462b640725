/**
 * Every copy of a shard is lost, with real processes: the shard waits until an operator gives the values up, or is served
 * empty at once where the tenant's policy says so.
 */
import test, { type ExecutionContext } from 'ava';
import { connect, type BufferValue, type Client } from '../../client/index.js';
import type { ClusterStatus, ShardStatus } from '../../server/status.js';
import { Cluster, farkv } from '../support/cluster.js';
import { patient } from '../support/sdk-clients.js';
import { statusWhen } from '../support/status.js';

/** Three of five vote on when two are dead. Nobody is taken for that because a busy machine does not let it run. */
const FIVE = { servers: 5, shards: 5, args: ['--lease-ms', '400', '--owner-lease-ms', '15000'] } as const;
const KEYS = Array.from({ length: 40 }, (_, i) => `key-${i}`);

const kept = (status: ClusterStatus): boolean =>
  status.shards.every((s) => s.state === 'serving' && s.copies?.inSync === 2 && s.copies.copies.length === 2);

interface Loss {
  readonly cluster: Cluster;
  readonly client: Client<BufferValue, Buffer>;
  /** A shard both of whose copies are to be lost. */
  readonly doomed: ShardStatus;
  readonly holders: readonly string[];
  /** A server that stays. */
  readonly address: string;
}

async function twoCopies(t: ExecutionContext, onLoss: 'wait' | 'empty'): Promise<Loss> {
  const cluster = await Cluster.start(t, FIVE);
  const first = cluster.server(0).address;
  await statusWhen(first, (s) => s.replication.length > 0);
  const set = await farkv(['replication', 'set', '--level', 'replicated', '--on-loss', onLoss, '--connect', first]);
  t.is(set.code, 0, set.stderr);
  await statusWhen(first, kept);
  const writer = await patient(t, cluster.addresses);
  for (const key of KEYS) await writer.put(key, Buffer.from(key));
  const client = await connect({ servers: cluster.addresses, connectTimeoutMs: 600_000, unavailableAfterMs: 500 });
  t.teardown(() => client.close());
  // Last, since a copy may have come in the place of another meanwhile.
  const status = await statusWhen(first, kept);
  const doomed = status.shards[0]!;
  const holders = doomed.copies!.copies.map((c) => c.member);
  const address = cluster.servers.find((s) => !holders.includes(s.id))!.address;
  return { cluster, client, doomed, holders, address };
}

async function kill({ cluster, holders }: Loss): Promise<void> {
  await Promise.all(cluster.servers.filter((s) => holders.includes(s.id)).map((s) => s.kill()));
}

/** What became of each key: its value, that it is missing, or the code of the error. */
async function readAll(client: Client<BufferValue, Buffer>): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const key of KEYS) {
    const value = await client.get(key).then(
      (one) => one?.toString() ?? 'missing',
      (error: unknown) => String((error as { readonly code?: string }).code),
    );
    found.set(key, value);
  }
  return found;
}

test('a shard whose copies are all killed waits, is reset only with the flag, and is served empty', async (t) => {
  const loss = await twoCopies(t, 'wait');
  const { client, cluster, doomed, holders, address } = loss;
  const reset = (...more: string[]): ReturnType<typeof farkv> =>
    farkv(['shard', 'reset', String(doomed.shard), ...more, '--connect', address]);
  const early = await reset('--accept-loss');
  t.is(early.code, 1);
  t.regex(early.stderr, new RegExp(`shard ${doomed.shard} is not lost: .*(${holders.join('|')})`));

  await kill(loss);
  const isLost = (s: ClusterStatus): boolean => s.shards[doomed.shard]?.copies?.trouble === 'lost';
  await statusWhen(address, (s) => isLost(s) && s.shards.every((one) => one.state === 'serving' || isLostOne(one)));
  const waiting = await readAll(client);
  const gone = KEYS.filter((key) => waiting.get(key) !== key);
  t.true(gone.length > 0);
  t.true(
    gone.every((key) => waiting.get(key) === 'ERR_SHARD_UNAVAILABLE'),
    JSON.stringify([...waiting]),
  );

  let asked = await reset();
  for (; /is not lost|may still rely/.test(asked.stderr); asked = await reset()) t.is(asked.stdout, '');
  t.is(asked.code, 1, asked.stderr);
  while (!/silent for [1-9]/.test(asked.stdout)) asked = await reset();
  // Whichever was found dead first was an owner whose shard went to the other one, for a moment.
  const named = [...asked.stdout.matchAll(/copy of (\S+): in-sync, silent for \d+ s/g)].map((match) => match[1] ?? '');
  t.true(named.length > 0 && named.every((id) => holders.includes(id)), `${asked.stdout}${asked.stderr}`);
  t.regex(asked.stderr, /nothing was done.*--accept-loss/);
  const done = await reset('--accept-loss');
  t.is(done.code, 0, done.stderr);
  t.regex(done.stdout, new RegExp(`shard ${doomed.shard} is served again`));
  const asker = cluster.servers.find((s) => s.address === address)!;
  await asker.said(/shard-reset.*shard=?\D*\d.*acceptLoss\D*true.*ok/);

  const after = await readAll(client);
  t.true(gone.some((key) => after.get(key) === 'missing'));
  t.deepEqual(
    KEYS.filter((key) => !gone.includes(key) && after.get(key) !== key),
    [],
    'what others have stays',
  );
  const missing = gone.find((key) => after.get(key) === 'missing')!;
  await client.put(missing, Buffer.from('again'));
  t.is((await client.get(missing))?.toString(), 'again');
});

function isLostOne({ copies }: ShardStatus): boolean {
  return copies?.trouble === 'lost';
}

test('a shard whose copies are all killed is served empty at once where the policy says so', async (t) => {
  const loss = await twoCopies(t, 'empty');
  const { client, doomed, holders, address } = loss;
  await kill(loss);
  await statusWhen(address, (s) => s.shards.every((one) => one.state === 'serving' && !holders.includes(one.owner!)));
  const after = await readAll(client);
  const gone = KEYS.filter((key) => after.get(key) !== key);
  t.true(gone.length > 0, `shard ${doomed.shard} had none of the keys`);
  t.true(
    gone.every((key) => after.get(key) === 'missing'),
    JSON.stringify([...after]),
  );
});

test('servers that were all restarted are ready, say what is lost, and serve again when an operator has seen it', async (t) => {
  const cluster = await Cluster.start(t, { ...FIVE, servers: 3, shards: 3 });
  const { address } = cluster.server(0);
  const writer = await patient(t, cluster.addresses);
  for (const key of KEYS) await writer.put(key, Buffer.from(key));
  await writer.close();
  await Promise.all(cluster.servers.map((s) => s.stop()));
  await Promise.all(cluster.servers.map((s) => s.start()));
  const gone = (s: ClusterStatus): boolean => s.shards.every((one) => one.owner === undefined && isLostOne(one));
  await statusWhen(address, (s) => gone(s) && s.members.every(({ state }) => state === 'up'));
  await Promise.any(cluster.servers.map((s) => s.said(/shards .* are lost: .*farkv shard reset all --accept-loss/)));
  const reset = (...more: string[]): ReturnType<typeof farkv> =>
    farkv(['shard', 'reset', 'all', ...more, '--connect', address]);
  let asked = await reset();
  for (; asked.stderr.includes('may still rely'); asked = await reset()) t.is(asked.code, 1);
  t.regex(asked.stdout, /serves shard 2 empty: all its values are lost\n.*has started again since/);
  t.regex(asked.stderr, /nothing was done.*--accept-loss/);
  const done = await reset('--accept-loss');
  t.is(done.code, 0, done.stderr);
  t.regex(done.stdout, /shard 0 is served again\nshard 1 is served again\nshard 2 is served again\n$/);
  const client = await patient(t, cluster.addresses);
  t.is(await client.get(KEYS[0]!), undefined);
  await client.put(KEYS[0]!, Buffer.from('again'));
  t.is((await reset()).stdout, 'no shard is lost for good: of others name the number\n');
});

test('a new client is not kept waiting for one shard that is lost', async (t) => {
  const loss = await twoCopies(t, 'wait');
  const { cluster, doomed, holders, address } = loss;
  await kill(loss);
  await Promise.all(cluster.servers.filter((s) => holders.includes(s.id)).map((s) => s.start()));
  await statusWhen(
    address,
    (s) => s.shards[doomed.shard]?.owner === undefined && s.shards.some(({ state }) => state === 'serving'),
  );
  const client = await connect({ servers: cluster.addresses, connectTimeoutMs: 600_000, unavailableAfterMs: 500 });
  t.teardown(() => client.close());
  const found = await readAll(client);
  const missed = KEYS.filter(
    (key) => client.shardOf(key) === doomed.shard && found.get(key) !== 'ERR_SHARD_UNAVAILABLE',
  );
  t.deepEqual(missed, []);
});
