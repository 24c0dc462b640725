/**
 * Shards with copies leave a living owner without a call that fails, with real processes: all servers are restarted one
 * after the other while clients write, one is drained, and shards are moved.
 */
import test, { type ExecutionContext } from 'ava';
import type { BufferValue, Client } from '../../client/index.js';
import type { ClusterStatus } from '../../server/status.js';
import { Cluster, farkv, succeeds } from '../support/cluster.js';
import { patient } from '../support/sdk-clients.js';
import { statusWhen } from '../support/status.js';

/** A busy machine takes longer to hand over than the product's own time for it. */
const SMALL = { servers: 3, shards: 6, memory: '64mb', args: ['--drain-ms', '120000'] } as const;
const WRITERS = 4;

const kept = (status: ClusterStatus): boolean =>
  status.shards.every((s) => s.state === 'serving' && s.copies?.inSync === 2 && s.copies.copies.length === 2);

async function replicated(t: ExecutionContext): Promise<Cluster> {
  const cluster = await Cluster.start(t, SMALL);
  const { address } = cluster.server(0);
  await statusWhen(address, (s) => s.replication.length > 0);
  const set = await farkv(['replication', 'set', '--level', 'replicated', '--replicas', '2', '--connect', address]);
  t.is(set.code, 0, set.stderr);
  await statusWhen(address, kept);
  return cluster;
}

/** Writes and reads until it is told to stop. No call may fail. */
class Load {
  readonly value = new Map<string, string>();
  calls = 0;
  slowestMs = 0;
  #stopped = false;
  readonly #loops: Promise<void>[];

  constructor(private readonly client: Client<BufferValue, Buffer>) {
    this.#loops = Array.from({ length: WRITERS }, (_, n) => this.#loop(n));
  }

  async #loop(n: number): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
      const [key, value] = [`key-${n}-${i % 100}`, `value-${n}-${i}`];
      const began = performance.now();
      await this.client.put(key, Buffer.from(value));
      this.slowestMs = Math.max(this.slowestMs, performance.now() - began);
      this.value.set(key, value);
      const found = await this.client.get(key);
      if (found?.toString() !== value) throw new Error(`${key} is ${found?.toString() ?? 'gone'}, not ${value}`);
      this.calls += 2;
    }
  }

  async stop(t: ExecutionContext): Promise<void> {
    this.#stopped = true;
    await t.notThrowsAsync(Promise.all(this.#loops));
    for (const [key, value] of this.value) t.is((await this.client.get(key))?.toString(), value, key);
    t.log(`${this.calls} calls; the slowest change took ${this.slowestMs.toFixed(0)} ms`);
  }
}

for (const level of ['replicated', 'durable'] as const)
  test.serial(
    `${level}: all servers are restarted one after the other while clients write: no call fails`,
    async (t) => {
      const cluster = await Cluster.start(t, { ...SMALL, level });
      await statusWhen(cluster.server(0).address, kept);
      const client = await patient(t, cluster.addresses);
      const load = new Load(client);
      for (const server of cluster.servers) {
        const other = cluster.servers.find((s) => s !== server)!;
        await statusWhen(other.address, kept);
        // As an operator does; who asks may not have heard of a server for a moment.
        const safe = ['status', '--safe-to-stop', server.id, '--connect', other.address];
        while ((await farkv(safe)).code !== 0);
        t.deepEqual(await server.stop(), { code: 0, signal: null });
        t.notRegex(server.stderr, /no other server has taken over/);
        await statusWhen(other.address, (s) =>
          s.shards.every((one) => one.owner !== server.id && one.state === 'serving'),
        );
        await server.start();
        await statusWhen(other.address, kept);
      }
      await load.stop(t);
    },
  );

test.serial('a server that ends with the only copies waits until others have them', async (t) => {
  const cluster = await Cluster.start(t, { ...SMALL, level: 'cache' });
  const { address } = cluster.server(0);
  await statusWhen(address, (s) => s.replication.length > 0);
  const client = await patient(t, cluster.addresses);
  for (let i = 0; i < 100; i++) await client.put(`key-${i}`, Buffer.from(`value-${i}`));
  const set = await farkv(['replication', 'set', '--level', 'replicated', '--replicas', '2', '--connect', address]);
  t.is(set.code, 0, set.stderr);
  const last = cluster.server(2);
  t.deepEqual(await last.stop(), { code: 0, signal: null });
  t.notRegex(last.stderr, /no other server has taken over/);
  for (let i = 0; i < 100; i++) t.is((await client.get(`key-${i}`))?.toString(), `value-${i}`);
});

test.serial(
  'servers that all end at the same time do not wait for each other, and say what ends with them',
  async (t) => {
    const cluster = await Cluster.start(t, { ...SMALL, level: 'replicated' });
    await statusWhen(cluster.server(0).address, kept);
    const began = performance.now();
    const ends = await Promise.all(cluster.servers.map((server) => server.stop()));
    t.deepEqual(
      ends.map(({ code }) => code),
      [0, 0, 0],
    );
    t.true(performance.now() - began < 100_000);
    const said = cluster.servers.map(({ stderr }) => stderr).join('');
    t.regex(
      said,
      /no other server has taken over shards [\d, ]+: no server that stays has a copy in sync: their values end with/,
    );
  },
);

test.serial('a drained server hands its shards over and stays, without one that is its', async (t) => {
  const cluster = await replicated(t);
  const client = await patient(t, cluster.addresses);
  const load = new Load(client);
  const [drained, other] = [cluster.server(2), cluster.server(0)];
  const run = await farkv(['drain', drained.id, '--connect', other.address]);
  t.is(run.code, 0, run.stderr);
  await statusWhen(
    other.address,
    (s) => kept(s) && s.shards.every((one) => one.copies?.copies.every((copy) => copy.member !== drained.id) === true),
  );
  await drained.said(/was handed over, and is a copy here/);
  await load.stop(t);
});

test.serial('shards are moved to servers that have no copy, and to one that comes: no call fails', async (t) => {
  const cluster = await replicated(t);
  const [first] = cluster.servers;
  const client = await patient(t, cluster.addresses);
  const load = new Load(client);
  const status = await statusWhen(first!.address, kept);
  const { shard, copies } = status.shards[0]!;
  const to = cluster.servers.find(({ id }) => copies!.copies.every((copy) => copy.member !== id))!.id;
  t.regex(
    await succeeds(t, cluster, 'shard', 'move', String(shard), to),
    new RegExp(`shard ${shard} is served by ${to}`),
  );
  await statusWhen(first!.address, (s) => kept(s) && s.shards[shard]?.owner === to);

  const comer = await cluster.joiner('s4');
  await comer.start();
  t.regex(await succeeds(t, cluster, 'shard', 'rebalance'), /\d shards? (was|were) moved/);
  const spread = await statusWhen(first!.address, kept);
  const owned = cluster.servers.map(({ id }) => spread.shards.filter((s) => s.owner === id).length);
  t.deepEqual(owned.toSorted(), [1, 1, 2, 2], JSON.stringify(owned));
  const at = spread.shards.flatMap((s) => s.copies!.copies.map(({ member }) => member));
  const copiesAt = cluster.servers.map(({ id }) => at.filter((x) => x === id).length);
  t.deepEqual(copiesAt, [3, 3, 3, 3], 'copies are spread, too');
  t.regex(await succeeds(t, cluster, 'shard', 'rebalance'), /balanced/);
  await load.stop(t);
});
