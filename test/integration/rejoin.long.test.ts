/**
 * A server that was away for longer than owners know its copies, with real processes: its new copies begin with what it
 * has, and only values that were written meanwhile are copied.
 */
import test, { type ExecutionContext } from 'ava';
import { connect } from '../../client/index.js';
import type { ClusterStatus } from '../../server/status.js';
import { Cluster, type ServerProcess } from '../support/cluster.js';
import { copied, statusWhen } from '../support/status.js';

const KEYS = 3000;
const CHANGED = 60;
const OPTIONS = { servers: 3, shards: 6, args: ['--lease-ms', '400', '--owner-lease-ms', '1000'] } as const;

type Client = Awaited<ReturnType<typeof connect>>;

const keys = Array.from({ length: KEYS }, (_, i) => `key-${i}`);
const changed = keys.slice(0, CHANGED);
const deleted = keys.slice(CHANGED, 2 * CHANGED);
const unchanged = keys.slice(2 * CHANGED);

async function begin(t: ExecutionContext, level: 'replicated' | 'durable') {
  const cluster = await Cluster.start(t, { ...OPTIONS, level });
  const [first, away] = [cluster.server(0), cluster.server(2)];
  await statusWhen(first.address, copied);
  const client = await connect([first.address, cluster.server(1).address]);
  t.teardown(() => client.close());
  await client.putMany(keys.map((key) => ({ key, value: `${key} before` })));
  // With one more record of each shard its copies hear that all before it are committed, and keep their values.
  const one = new Map(unchanged.map((key) => [client.shardOf(key), key]));
  await client.putMany([...one.values()].map((key) => ({ key, value: `${key} before` })));
  return { cluster, first, away, client };
}

const isGone = ({ id }: ServerProcess): ((status: ClusterStatus) => boolean) => {
  return ({ shards }) =>
    shards.every(
      ({ state, owner, copies }) =>
        state === 'serving' && owner !== id && copies?.copies.every(({ member }) => member !== id) === true,
    );
};

/** Other values of some keys, and some that are no more. */
async function change(client: Client): Promise<void> {
  await client.putMany(changed.map((key) => ({ key, value: `${key} meanwhile` })));
  for (const key of deleted) await client.delete(key);
}

/** What its log says of the copies that joined since. */
function said(stderr: string): { readonly copied: number; readonly kept: number; readonly joins: number } {
  const lines = [...stderr.matchAll(/follows it \((\d+) entries copied, \d+ bytes; (\d+) kept that were here\)/g)];
  const sum = (i: number): number => lines.reduce((all, line) => all + Number(line[i]), 0);
  return { copied: sum(1), kept: sum(2), joins: lines.length };
}

async function isRight(t: ExecutionContext, client: Client): Promise<void> {
  const values = await client.getMany(keys);
  const wanted = (key: string, i: number): string | undefined =>
    i < CHANGED ? `${key} meanwhile` : i < 2 * CHANGED ? undefined : `${key} before`;
  t.deepEqual(
    values.map((value) => value?.toString()),
    keys.map(wanted),
  );
}

for (const level of ['replicated', 'durable'] as const)
  test.serial(`${level}: a server that stood still for long is sent only what was written meanwhile`, async (t) => {
    const { cluster, first, away, client } = await begin(t, level);
    away.signal('SIGSTOP');
    await statusWhen(first.address, isGone(away));
    await change(client);
    const before = away.stderr.length;
    away.signal('SIGCONT');
    await statusWhen(first.address, (s) => copied(s) && !isGone(away)(s));
    await away.said(/kept that were here/);
    const { copied: read, kept, joins } = said(away.stderr.slice(before));
    t.log(`${joins} copies: ${read} entries copied, ${kept} kept`);
    t.true(joins > 0 && kept > 0);
    t.true(read <= CHANGED + OPTIONS.shards, away.stderr.slice(before));
    // Whoever else has copies of its shards is killed.
    await cluster.server(1).kill();
    await statusWhen(first.address, ({ shards }) => shards.every((s) => s.owner !== 's2' && s.state === 'serving'));
    await isRight(t, client);
  });
