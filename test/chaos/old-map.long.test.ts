/**
 * A client that still holds the old map, because its event loop stands still (old-map-client.ts): nobody can tell it
 * that its shard has moved, or that its server was killed and started again. The old owner's memory is still mapped,
 * its sockets are still open. What the client reads then, and when the owner goes on, is never the old value.
 */
import test, { type ExecutionContext } from 'ava';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { connect } from '../../client/index.js';
import { Cluster, type ServerProcess } from '../support/cluster.js';
import { certainly, keysOf, QUICK } from '../support/owners.js';
import { leaderOf, statusWhen } from '../support/status.js';
import type { OldMapReads } from './old-map-client.js';

const CHILD = fileURLToPath(new URL('old-map-client.js', import.meta.url));

class OldMapClient {
  readonly #ask: () => void;
  readonly #lines: AsyncIterator<string>;

  private constructor(ask: () => void, lines: AsyncIterator<string>) {
    this.#ask = ask;
    this.#lines = lines;
  }

  /** It has put and read the value "old", and its event loop stands still from then on. */
  static async start(
    t: ExecutionContext,
    servers: readonly ServerProcess[],
    transport: string,
    key: string,
  ): Promise<OldMapClient> {
    const child = spawn(
      process.execPath,
      ['--enable-source-maps', CHILD, servers.map((s) => s.address).join(), transport, key],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    );
    const ended = once(child, 'close');
    t.teardown(async () => {
      child.stdin.end();
      await ended;
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const client = new OldMapClient(() => void child.stdin.write('read\n'), lines);
    t.is((await client.#lines.next()).value, 'ready');
    return client;
  }

  async read(): Promise<OldMapReads> {
    this.#ask();
    return JSON.parse(String((await this.#lines.next()).value)) as OldMapReads;
  }

  /** Until it reads the value: everything that it has read, without what could not be read in time. */
  async readUntil(value: string): Promise<Set<string>> {
    const seen = new Set<string>();
    while (!seen.has(value)) for (const one of (await this.read()).values) if (one !== null) seen.add(one);
    return seen;
  }
}

for (const transport of ['shm', 'tcp'] as const) {
  test.serial(
    `${transport}: a client with the old map does not read the old value from a paused owner whose shard has moved, nor when the owner goes on`,
    async (t) => {
      const cluster = await Cluster.start(t, { servers: 3, level: 'cache', shards: 3, args: QUICK });
      const at = ((await leaderOf(cluster)) + 1) % 3;
      const owner = cluster.server(at);
      const fresh = await connect({
        servers: cluster.servers.filter((s) => s !== owner).map((s) => s.address),
        transport,
        strict: true,
        unavailableAfterMs: Infinity,
        timeoutMs: 120_000,
      });
      t.teardown(() => fresh.close());
      const [key = ''] = await keysOf(fresh, cluster, at, 1);
      const during = await OldMapClient.start(t, [owner], transport, key);
      const after = await OldMapClient.start(t, [owner], transport, key);

      owner.signal('SIGSTOP');
      const other = cluster.servers.find((s) => s !== owner)!;
      await statusWhen(other.address, (s) => s.shards[fresh.shardOf(key)]?.owner !== owner.id);
      await certainly(() => fresh.put(key, 'new'));
      const paused = await during.read();
      t.true(paused.oldMap);
      t.false(paused.values.includes('old'), 'while the owner is paused');
      if (transport === 'shm') t.is(paused.values[0], null, 'nobody may answer for the paused owner');

      owner.signal('SIGCONT');
      const running = await after.read();
      t.true(running.oldMap);
      t.deepEqual(
        running.values.filter((value) => value !== null && value !== 'new'),
        [],
        'when the owner goes on',
      );
      for (const client of [during, after]) t.deepEqual([...(await client.readUntil('new'))], ['new']);
      t.is(String(await fresh.get(key)), 'new');
    },
  );

  test.serial(
    `${transport}: a client that never noticed that its server was killed and started again reads no value of before`,
    async (t) => {
      const cluster = await Cluster.start(t, { servers: 1, shards: 1, args: QUICK });
      const server = cluster.server(0);
      const stale = await OldMapClient.start(t, [server], transport, 'key');
      await server.kill();
      await server.start();
      const fresh = await connect({ servers: server.address, transport, strict: true });
      t.teardown(() => fresh.close());
      t.is(await fresh.get('key', { timeoutMs: 120_000 }), undefined);
      await fresh.put('key', 'new', { timeoutMs: 120_000 });
      const first = await stale.read();
      t.true(first.oldMap);
      t.false(first.values.includes('old'));
      t.deepEqual([...(await stale.readUntil('new'))], ['new']);
    },
  );
}
