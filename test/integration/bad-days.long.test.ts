/**
 * Bad days of replicated shards, with real processes: a backup that is full, a server that is slow, one that stands still
 * again and again, and one that comes back with an old disk. What was acknowledged is there each time, and what is refused says why.
 */
import test, { type ExecutionContext } from 'ava';
import { cp, rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BufferValue, Client } from '../../client/index.js';
import type { ClusterStatus } from '../../server/status.js';
import { Cluster, farkv, succeeds } from '../support/cluster.js';
import { patient } from '../support/sdk-clients.js';
import { statusWhen } from '../support/status.js';

type Kv = Client<BufferValue, Buffer>;

const THREE = { servers: 3, shards: 6, args: ['--lease-ms', '400'] } as const;

const kept = (status: ClusterStatus): boolean =>
  status.shards.every((s) => s.state === 'serving' && s.copies?.inSync === 2 && s.copies.copies.length === 2);

async function replicate(t: ExecutionContext, address: string): Promise<void> {
  await statusWhen(address, (s) => s.replication.length > 0);
  const { code, stderr } = await farkv(['replication', 'set', '--level', 'replicated', '--connect', address]);
  t.is(code, 0, stderr);
  await statusWhen(address, kept);
}

const codeOf = (error: unknown): string => String((error as { readonly code?: string }).code);

const inSync = (copies: ClusterStatus['shards'][number]['copies'], id: string): boolean =>
  copies?.copies.some((one) => one.member === id && one.state === 'in-sync') === true;

/** Writes all the time; what was acknowledged last of each key, and how calls have failed. */
class Writer {
  readonly acknowledged = new Map<string, string>();
  readonly failures: string[] = [];
  /** Changes that were acknowledged. */
  count = 0;
  readonly #kv: Kv;
  readonly #awaited: { readonly count: number; readonly reached: () => void }[] = [];
  #stopped = false;
  readonly #done: Promise<unknown>;

  constructor(kv: Kv) {
    this.#kv = kv;
    this.#done = Promise.all([0, 1, 2, 3].map((n) => this.#write(n)));
  }

  async #write(n: number): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
      const [key, value] = [`key-${n}-${i % 100}`, `value-${n}-${i}`];
      try {
        await this.#kv.put(key, Buffer.from(value));
        this.acknowledged.set(key, value);
        this.count += 1;
        while ((this.#awaited[0]?.count ?? Infinity) <= this.count) this.#awaited.shift()?.reached();
      } catch (error) {
        this.failures.push(codeOf(error));
        if (codeOf(error) !== 'ERR_TOO_FEW_COPIES') this.acknowledged.delete(key);
      }
    }
  }

  /** When so many more were acknowledged; one wait at a time. */
  async more(count: number): Promise<void> {
    await new Promise<void>((reached) => this.#awaited.push({ count: this.count + count, reached }));
  }

  /** Keys whose last acknowledged value is not there, once nothing is written any more. */
  async missing(): Promise<string[]> {
    this.#stopped = true;
    await this.#done;
    const found = await this.#kv.getMany([...this.acknowledged.keys()]);
    return [...this.acknowledged].flatMap(([key, value], i) => (found[i]?.toString() === value ? [] : [key]));
  }
}

test('what a full backup has no room for is refused, and there is room again when something is deleted', async (t) => {
  const cluster = await Cluster.start(t, { ...THREE, memory: '256mb', absent: [1] });
  const [large, small] = [cluster.server(0), cluster.server(1)];
  small.args = small.args.map((arg) => (arg === '256mb' ? '64mb' : arg));
  await small.start();
  // It votes, and has no copies.
  await succeeds(t, cluster, 'drain', 's3');
  await statusWhen(large.address, (s) => s.shards.every((one) => one.owner !== 's3' && one.state === 'serving'));
  await replicate(t, large.address);

  const kv = await patient(t, cluster.addresses);
  const value = Buffer.alloc(60_000, 'v');
  const stored: string[] = [];
  let refused: string | undefined;
  for (let i = 0; refused === undefined; i++) {
    const outcome = await kv.put(`key-${i}`, value).then(
      () => undefined,
      (error: unknown) => codeOf(error),
    );
    if (outcome === undefined) stored.push(`key-${i}`);
    else refused = outcome;
  }
  t.is(refused, 'ERR_TABLE_FULL');
  t.true(stored.length * value.length < 64 * 2 ** 20, `${stored.length} were taken`);
  for (const key of stored) t.is((await kv.get(key))?.length, value.length);
  for (const key of stored) await kv.delete(key);
  for (const key of stored.slice(0, 100)) await kv.put(key, value);
  await statusWhen(large.address, kept);
});

test('a server that is slow holds changes up and fails none, and its copies are in sync afterwards', async (t) => {
  const cluster = await Cluster.start(t, THREE);
  const { address } = cluster.server(0);
  await replicate(t, address);
  const slow = cluster.server(2);
  const writer = new Writer(await patient(t, cluster.addresses));
  await writer.more(400);
  const before = writer.count;
  // It gets a quarter of its time, in pieces that are too short for a lease to end.
  for (let piece = 0; piece < 60; piece++) {
    slow.signal('SIGSTOP');
    await sleep(60);
    slow.signal('SIGCONT');
    await sleep(20);
  }
  t.log(`${writer.count - before} changes while it was slow`);
  await writer.more(400);
  await statusWhen(address, kept);
  t.deepEqual(await writer.missing(), []);
  t.deepEqual(writer.failures, []);
});

test('a server that stands still again and again loses nothing, fails no call, and its copies come back', async (t) => {
  const cluster = await Cluster.start(t, THREE);
  const { address } = cluster.server(0);
  await replicate(t, address);
  const flapping = cluster.server(2);
  const writer = new Writer(await patient(t, cluster.addresses));
  for (let round = 0; round < 3; round++) {
    flapping.signal('SIGSTOP');
    await statusWhen(address, (s) =>
      s.shards.every(({ owner, copies }) => owner !== flapping.id && !inSync(copies, flapping.id)),
    );
    flapping.signal('SIGCONT');
    await statusWhen(address, kept);
  }
  t.deepEqual(await writer.missing(), []);
  t.deepEqual(writer.failures, []);
});

test('a server with an old disk ends with the command that helps, and gets copies anew', async (t) => {
  const cluster = await Cluster.start(t, THREE);
  const { address } = cluster.server(0);
  await replicate(t, address);
  const late = cluster.server(2);
  const old = `${late.dataDir}.old`;
  t.teardown(() => rm(old, { recursive: true, force: true }));
  await late.stop();
  await cp(late.dataDir, old, { recursive: true });
  await late.start();
  await statusWhen(address, kept);
  const writer = new Writer(await patient(t, cluster.addresses));
  await late.kill();
  await statusWhen(address, (s) => s.shards.every((one) => one.owner !== late.id && one.state === 'serving'));
  await rm(late.dataDir, { recursive: true });
  await cp(old, late.dataDir, { recursive: true });
  late.launch();
  t.is((await late.exit).code, 1);
  t.regex(late.stderr, /is older than what this server has acknowledged.*farkv member remove s3/);
  await succeeds(t, cluster, 'member', 'remove', 's3');
  await (await cluster.joiner('s3', [])).start();
  await statusWhen(address, (s) => kept(s) && s.members.length === 3);
  t.deepEqual(await writer.missing(), []);
  t.deepEqual(writer.failures, []);
});
