/**
 * Servers that die, or have no room, while a shard of many values is on its way between them: real processes, seen to
 * be in the middle of the copy.
 */
import test, { type ExecutionContext } from 'ava';
import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { connect, type BufferValue, type Client } from '../../client/index.js';
import { Cluster, farkv, type ServerProcess } from '../support/cluster.js';
import { certainly, keysOf, LASTING } from '../support/owners.js';
import { leaderOf, statusOf, statusWhen } from '../support/status.js';

const VALUE_BYTES = 64 << 10;
const VALUES = 900;
/** So much has come when it is the middle. */
const SOME_BYTES = 8 << 20;

function residentBytes(pid: number): number {
  const pages = readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1];
  return Number(pages) * 4096;
}

const valueOf = (key: string): Buffer => Buffer.alloc(VALUE_BYTES, `${key} `);

async function move(
  shard: number,
  to: ServerProcess,
  wait: string,
  ask: ServerProcess,
): Promise<Awaited<ReturnType<typeof farkv>>> {
  return await farkv([
    'shard',
    'move',
    String(shard),
    to.id,
    '--wait',
    wait,
    '--timeout',
    '2m',
    '--connect',
    ask.address,
  ]);
}

/**
 * Moves the shard until its new owner stands still in the middle of the copy: something has come, and the metadata does
 * not say that all has.
 */
async function inTheMiddle(
  t: ExecutionContext,
  shard: number,
  from: ServerProcess,
  to: ServerProcess,
  ask: ServerProcess,
): Promise<{ readonly waiting: Promise<unknown> }> {
  for (;;) {
    const before = residentBytes(to.pid);
    const said = to.stderr.length;
    const waiting = move(shard, to, '1s', ask);
    const says = (text: string): boolean => to.stderr.slice(said).includes(`shard ${shard}: ${text}`);
    const copied = (): boolean => says('the copy here has all');
    const begun = (): boolean => says(`a copy is made here, from ${from.id}`);
    while (!(begun() && residentBytes(to.pid) >= before + SOME_BYTES) && !copied()) await setImmediate();
    process.kill(to.pid, 'SIGSTOP');
    const { moves, shards } = await statusOf(ask.address);
    if (moves.some((m) => m.shard === shard && m.to === to.id) && !copied()) {
      t.is(shards[shard]?.owner, from.id);
      return { waiting };
    }
    // It was done before this process had its turn: back, and once more.
    process.kill(to.pid, 'SIGCONT');
    await statusWhen(ask.address, (s) =>
      s.shards.some((one) => one.shard === shard && one.owner === to.id && one.state === 'serving'),
    );
    await waiting;
    t.is((await move(shard, from, '5m', ask)).code, 0);
  }
}

async function filled(
  t: ExecutionContext,
  cluster: Cluster,
  from: number,
): Promise<{ readonly kv: Client<BufferValue, Buffer>; readonly keys: readonly string[]; readonly shard: number }> {
  const kv = await connect({ servers: cluster.addresses, timeoutMs: 120_000, unavailableAfterMs: 120_000 });
  t.teardown(() => kv.close());
  const [first = ''] = await keysOf(kv, cluster, from, 1);
  const shard = kv.shardOf(first);
  const keys: string[] = [];
  for (let i = 0; keys.length < VALUES; i++) if (kv.shardOf(`large-${i}`) === shard) keys.push(`large-${i}`);
  for (const key of keys) await kv.put(key, valueOf(key));
  return { kv, keys, shard };
}

async function allThere(t: ExecutionContext, kv: Client<BufferValue, Buffer>, keys: readonly string[]): Promise<void> {
  let wrong = 0;
  for (const key of keys) if ((await kv.get(key))?.equals(valueOf(key)) !== true) wrong += 1;
  t.is(wrong, 0, `of ${keys.length} values ${wrong} are not what was put`);
}

for (const dies of ['new', 'old'] as const) {
  test.serial(`kill -9 of the ${dies} owner of a shard in the middle of the copy`, async (t) => {
    const cluster = await Cluster.start(t, { servers: 3, level: 'cache', shards: 3, memory: '256mb', args: LASTING });
    const lead = await leaderOf(cluster);
    const [ask, from, to] = [cluster.server(lead), cluster.server((lead + 1) % 3), cluster.server((lead + 2) % 3)];
    const { kv, keys, shard } = await filled(t, cluster, (lead + 1) % 3);
    const { waiting } = await inTheMiddle(t, shard, from, to, ask);
    const { epoch } = (await statusOf(ask.address)).shards[shard]!;
    if (dies === 'new') {
      await to.kill();
      const after = await statusWhen(ask.address, (s) => s.moves.length === 0);
      t.is(after.shards[shard]?.owner, from.id);
      t.is(after.shards[shard]?.epoch, epoch);
      await allThere(t, kv, keys);
      await certainly(() => kv.put(keys[0]!, valueOf(keys[0]!)));
      // Once it is back, it gets the shard with everything.
      await to.start();
      t.is((await move(shard, to, '5m', ask)).code, 0);
      await allThere(t, kv, keys);
    } else {
      await from.kill();
      process.kill(to.pid, 'SIGCONT');
      const after = await statusWhen(ask.address, (s) =>
        s.shards.some((one) => one.shard === shard && one.owner !== from.id && one.state === 'serving'),
      );
      t.deepEqual(after.moves, []);
      // What had come of the copy is worth nothing: as after any death of an owner, a miss for every key.
      t.deepEqual(
        (await kv.getMany(keys)).filter((value) => value !== undefined),
        [],
      );
      await certainly(() => kv.put(keys[0]!, valueOf(keys[1]!)));
      t.true((await kv.get(keys[0]!))?.equals(valueOf(keys[1]!)));
    }
    await waiting;
  });
}

test.serial(
  'a server without the memory for a shard does not get it: its owner goes on, the move is called off, and what was put stays',
  async (t) => {
    const cluster = await Cluster.start(t, { servers: 1, shards: 1, memory: '256mb', args: LASTING });
    const small = await cluster.joiner('s2', LASTING);
    small.args = small.args.map((arg) => (arg === '64mb' ? '16mb' : arg));
    await small.start();
    const owner = cluster.server(0);
    const { kv, keys, shard } = await filled(t, cluster, 0);
    const refused = await move(shard, small, '5m', owner);
    t.not(refused.code, 0);
    t.regex(refused.stderr, /the move of shard 0 to s2 was cancelled: s1 owns it/u);
    t.regex(
      small.stderr,
      /for want of memory \(--memory\); its move to here is called off, and s1 goes on to serve it \(attempt 1\)/u,
    );
    const { moves, shards } = await statusOf(owner.address);
    t.deepEqual(moves, []);
    t.like(shards[shard], { owner: owner.id, state: 'serving', epoch: 1 });
    await allThere(t, kv, keys);
  },
);
