/**
 * Shards that are to move from a server that lives, and whose data plane the other servers do not reach: real
 * processes. What leads to it (middle.ts) lets those go on who are connected, the clients, and turns away whoever
 * comes, the server that is to have a copy, until it is opened.
 */
import test, { type ExecutionContext } from 'ava';
import { connect, type BufferValue, type Client } from '../../client/index.js';
import { Cluster, farkv } from '../support/cluster.js';
import { ADVERTISED, Middle } from '../support/middle.js';
import { keysOf } from '../support/owners.js';
import { statusOf, statusWhen } from '../support/status.js';
import type { ClusterStatus } from '../../server/status.js';

const KEYS = 40;

interface CutOff {
  readonly cluster: Cluster;
  /** The other servers reach the owner again. */
  readonly open: () => void;
  readonly kv: Client<BufferValue, Buffer>;
  readonly keys: readonly string[];
  /** What each key has. */
  readonly values: Map<string, string>;
  /** Whose these are. */
  readonly shard: number;
}

async function connected(t: ExecutionContext, cluster: Cluster): Promise<Client<BufferValue, Buffer>> {
  const kv = await connect({ servers: cluster.addresses, unavailableAfterMs: Infinity, timeoutMs: 240_000 });
  t.teardown(() => kv.close());
  return kv;
}

/** The first server has values, and no other server reaches its data plane. */
async function cutOff(t: ExecutionContext, servers: number): Promise<CutOff> {
  const cluster = await Cluster.start(t, {
    servers,
    level: 'cache',
    shards: servers,
    args: ['--lease-ms', '300', '--transport', 'tcp', ...ADVERTISED],
  });
  const [middle] = await Promise.all(cluster.servers.map((server) => Middle.before(t, server)));
  const kv = await connected(t, cluster);
  const keys = await keysOf(kv, cluster, 0, KEYS);
  const world = {
    cluster,
    kv,
    keys,
    values: new Map<string, string>(),
    shard: kv.shardOf(keys[0]!),
    open: () => void (middle!.passage = 'open'),
  };
  await change(world, 'before');
  await allThere(t, world);
  middle!.passage = 'settled';
  return world;
}

async function change({ kv, keys, values }: CutOff, when: string): Promise<void> {
  for (const key of keys) {
    await kv.put(key, `value of ${key} ${when}`);
    values.set(key, `value of ${key} ${when}`);
  }
}

async function allThere(t: ExecutionContext, world: CutOff, kv = world.kv): Promise<void> {
  const found = await Promise.all(world.keys.map(async (key) => String(await kv.get(key))));
  t.deepEqual(
    found,
    world.keys.map((key) => world.values.get(key)),
  );
}

/** Reads and changes what is in the shard until `end` has come, and at least once. */
async function used<T>(t: ExecutionContext, world: CutOff, end: Promise<T>): Promise<T> {
  const about = { over: false };
  const ended = end.finally(() => (about.over = true));
  // It is told below, when what is under way has been answered.
  ended.catch(() => undefined);
  for (let round = 1; round === 1 || !about.over; round++) {
    await change(world, `in round ${round}`);
    await allThere(t, world);
  }
  return await ended;
}

test.serial(
  'a shard whose new owner does not reach the old one stays where it is, is used meanwhile, and the command says why; when the way is open it moves',
  async (t) => {
    const world = await cutOff(t, 2);
    const { cluster, shard, open } = world;
    const [old, next] = [cluster.server(0), cluster.server(1)];
    const { epoch } = (await statusOf(old.address)).shards[shard]!;
    const move = (): ReturnType<typeof farkv> =>
      farkv(['shard', 'move', String(shard), 's2', '--wait', '10m', '--connect', next.address]);
    const refused = await used(t, world, move());

    t.is(refused.code, 1, refused.stderr);
    t.regex(
      refused.stderr,
      new RegExp(
        `the move of shard ${shard} to s2 was cancelled: s1 owns it\\. .*after 4 attempts.*s1 was asked at tcp 127\\.0\\.0\\.2`,
        'u',
      ),
    );
    for (const attempt of [1, 2, 3])
      t.regex(
        next.stderr,
        new RegExp(
          `shard ${shard}: no copy could be made here of what s1 has; it is tried again in ${1000 * 2 ** (attempt - 1)} ms \\(attempt ${attempt}\\)`,
          'u',
        ),
      );
    t.regex(
      next.stderr,
      new RegExp(`shard ${shard}: no copy .*; its move to here is called off, .* \\(attempt 4\\)`, 'u'),
    );
    const { shards, moveErrors } = await statusWhen(old.address, (s) => s.moves.length === 0);
    t.like(shards[shard], { owner: 's1', epoch, state: 'serving' });
    t.like(moveErrors, [{ shard, from: 's1', to: 's2', attempts: 4, calledOff: true }]);
    t.regex(
      (await farkv(['status', '--connect', old.address])).stdout,
      new RegExp(`move of shard ${shard} \\(s1 -> s2\\) cancelled after 4 attempts`, 'u'),
    );
    await allThere(t, world);
    await change(world, 'after it was called off');
    await allThere(t, world);

    open();
    const moved = await used(t, world, move());
    t.is(moved.code, 0, moved.stderr);
    await allThere(t, world);
    await allThere(t, world, await connected(t, cluster));
    t.deepEqual((await statusOf(old.address)).moveErrors, []);
  },
);

test.serial(
  'a server that is drained and that another does not reach gives its shards to a third, and it is told meanwhile what is in the way',
  async (t) => {
    const world = await cutOff(t, 3);
    const { cluster, shard, open } = world;
    const asked = cluster.server(1).address;
    const drained = farkv(['drain', 's1', '--wait', '10m', '--connect', asked]);
    const placesIn = (s: ClusterStatus): readonly string[] =>
      s.shards[shard]?.copies?.copies.flatMap(({ member }) => (member === 's1' ? [] : [member])) ?? [];
    const [first] = placesIn(await statusWhen(asked, (s) => placesIn(s).length > 0));
    const on = await used(
      t,
      world,
      statusWhen(asked, (s) => placesIn(s).some((member) => member !== first)),
    );
    const [other] = placesIn(on);
    t.is(on.shards[shard]?.owner, 's1');
    open();
    const { code, stdout, stderr } = await used(t, world, drained);
    t.is(code, 0, stderr);
    t.regex(stdout, /s1 owns no shards/u);
    t.regex(
      stderr,
      new RegExp(
        `no copy of shard ${shard} could be made at ${first}, whose log says why: that of s1 stays meanwhile`,
        'u',
      ),
    );
    t.is((await statusWhen(asked, (s) => s.shards[shard]?.state === 'serving')).shards[shard]?.owner, other);
    await allThere(t, world);
    await allThere(t, world, await connected(t, cluster));
  },
);
