/**
 * `--slow-ms` of real servers whose changes really wait: for a disk that takes its time, and for a copy at a server that
 * stands still. What took less is in no line. Not for: what a line says of whom a change waited for (slow-lines.test.ts).
 */
import test, { type ExecutionContext } from 'ava';
import { Cluster, farkv, type ServerProcess } from '../support/cluster.js';
import { open } from '../support/durable-writes.js';
import { FailingDisk } from '../support/failing-disk.js';
import { patient } from '../support/sdk-clients.js';
import { copied, statusWhen } from '../support/status.js';

const KEY = 'a-key-that-is-private';
const VALUE = 'a-value-that-is-private';
/** Of native/node/lines.h: so many lines in ten seconds. */
const LINES = 20;
const HASH = /^[0-9a-f]{16}$/;

interface Line {
  readonly level?: string;
  readonly event?: string;
  readonly tookMs?: number;
  readonly operation?: string;
  readonly keyHash?: string;
  readonly shard?: number;
  readonly result?: string;
  readonly last?: string;
  readonly heldMs?: number;
  readonly count?: number;
  readonly of?: string;
}

/** What the server has said of slow requests, in order. */
function slowLines(server: ServerProcess): Line[] {
  const lines = server.stderr.split('\n').filter((line) => line.startsWith('{'));
  return lines
    .map((line) => JSON.parse(line) as Line)
    .filter(({ event, of }) => event === 'slow-request' || (event === 'omitted' && of === 'slow-request'));
}

/** The hash of a key, as a traced client of the cluster prints it. */
async function hashOf(cluster: Cluster, key: string): Promise<string> {
  const at = ['--connect', cluster.addresses.join()];
  const { stderr } = await farkv(['get', key, ...at], { env: { FARKV_TRACE: '1' } });
  return /^farkv trace: .*, key ([0-9a-f]{16}) of /m.exec(stderr)?.[1] ?? `none: ${stderr}`;
}

/** What the server has said of the key, which is one line; client and server have ended then. */
async function onlyLineOf(
  t: ExecutionContext,
  key: string,
  { cluster, server, client }: { cluster: Cluster; server: ServerProcess; client: { close(): Promise<void> } },
): Promise<Line> {
  const keyHash = await hashOf(cluster, key);
  t.regex(keyHash, HASH);
  await server.said(`"keyHash":"${keyHash}"`);
  await client.close();
  await server.stop();
  const own = slowLines(server).filter((line) => line.keyHash === keyHash);
  t.is(own.length, 1);
  return own[0] ?? {};
}

/** A server of durable values, whose disk takes `ms` longer for each sync of the log while it is told to. */
async function withSlowDisk(t: ExecutionContext, ms: number, slowMs: string, env: Record<string, string> = {}) {
  const cluster = await Cluster.start(t, {
    ...{ servers: 1, shards: 2, level: 'durable', ready: false, absent: [0], env },
    args: ['--slow-ms', slowMs, '--log-format', 'json', '--data-plane-threads', '1'],
  });
  const server = cluster.server(0);
  const disk = new FailingDisk(cluster.directory);
  server.launcher = disk.slowLauncher(ms, '/values/0-');
  await server.start();
  return { cluster, server, disk, client: await open(t, cluster) };
}

test('a change that waits longer than --slow-ms is one line with its hash, and quicker ones are none', async (t) => {
  const SLOW_MS = 400;
  const { cluster, server, disk, client } = await withSlowDisk(t, 2 * SLOW_MS, String(SLOW_MS));
  // The owner had none of them for longer than its client did.
  let late = 0;
  for (let i = 0; i < 50; i++) {
    const begin = performance.now();
    await client.put(`quick-${i}`, 'a value');
    if (performance.now() - begin >= SLOW_MS) late++;
  }
  disk.fail();
  await client.put(KEY, VALUE);
  disk.repair();
  const line = await onlyLineOf(t, KEY, { cluster, server, client });
  t.like(line, { event: 'slow-request', operation: 'put', result: 'ok', last: 'disk' });
  t.true((line.tookMs ?? 0) >= 2 * SLOW_MS && (line.heldMs ?? 0) <= (line.tookMs ?? 0), JSON.stringify(line));
  t.true(slowLines(server).length <= 1 + late, server.stderr);
  for (const secret of [KEY, VALUE]) t.false(server.stderr.includes(secret));
});

test('where every request is traced, those over --slow-ms are lines by their own name', async (t) => {
  const SLOW_MS = 400;
  const env = { FARKV_TRACE: '1' };
  const { cluster, server, disk, client } = await withSlowDisk(t, 2 * SLOW_MS, String(SLOW_MS), env);
  // More than lines of traced requests may be in ten seconds.
  for (let i = 0; i < 30; i++)
    await Promise.all(Array.from({ length: 50 }, (_, j) => client.put(`quick-${i}-${j}`, 'a value')));
  disk.fail();
  await client.put(KEY, VALUE);
  disk.repair();
  const line = await onlyLineOf(t, KEY, { cluster, server, client });
  t.like(line, { event: 'slow-request', level: 'warn', operation: 'put', result: 'ok', last: 'disk' });
  t.regex(server.stderr, /"event":"request"/);
});

for (const [slowMs, why] of [
  ['1h', 'it took less'],
  ['0', 'none is written'],
] as const)
  test(`with --slow-ms ${slowMs} there is no line of a change that waits for the disk: ${why}`, async (t) => {
    const { server, disk, client } = await withSlowDisk(t, 300, slowMs);
    disk.fail();
    const begin = performance.now();
    await client.put(KEY, VALUE);
    t.true(performance.now() - begin >= 300);
    await client.close();
    await server.stop();
    t.deepEqual(slowLines(server), []);
  });

test('of many slow requests twenty in ten seconds are lines, and one says how many were not', async (t) => {
  const { server, disk, client } = await withSlowDisk(t, 10, '1');
  disk.fail();
  const omissions = (): Line[] => slowLines(server).filter(({ event }) => event === 'omitted');
  let changes = 0;
  while (omissions().length === 0) {
    await Promise.all(Array.from({ length: 8 }, (_, i) => client.put(`key-${i}`, `value ${changes++}`)));
  }
  await client.close();
  await server.stop();
  const lines = slowLines(server);
  const at = lines.findIndex(({ event }) => event === 'omitted');
  t.is(at, LINES, 'those of the first ten seconds');
  t.is(omissions().length, 1);
  const after = lines.length - 1 - at;
  t.true(after >= 1 && after <= LINES, `${after} lines`);
  const { count = 0 } = lines[at]!;
  // What was left out after the last line has none to say it.
  const untold = changes - LINES - count - after;
  t.true(count > 0 && (after < LINES ? untold === 0 : untold >= 0), `${changes} changes, ${count} were left out`);
  t.log(`${changes} changes, ${count} were left out`);
});

test('a change that waits for a copy at a server that stands still is one line at its owner', async (t) => {
  const cluster = await Cluster.start(t, {
    ...{ servers: 3, shards: 6, level: 'replicated' },
    // A copy that acknowledges nothing for a second is late.
    args: ['--slow-ms', '500', '--log-format', 'json'],
  });
  const status = await statusWhen(cluster.server(0).address, copied);
  const kv = await patient(t, cluster.addresses);
  const still = cluster.servers.find(({ id }) => id !== status.leader)!;
  const held = status.shards.find(
    ({ owner, copies }) => owner !== still.id && copies?.copies.some(({ member }) => member === still.id),
  )!;
  const owner = cluster.servers.find(({ id }) => id === held.owner)!;
  const key = Array.from({ length: 1000 }, (_, i) => `${KEY}-${i}`).find((k) => kv.shardOf(k) === held.shard) ?? '';
  // What is sent over a connection that is there is with the owner before it has done without the copy.
  await kv.put(key, 'before');
  still.signal('SIGSTOP');
  try {
    await kv.put(key, VALUE);
  } finally {
    still.signal('SIGCONT');
  }
  const line = await onlyLineOf(t, key, { cluster, server: owner, client: kv });
  t.like(line, { operation: 'put', result: 'ok', shard: held.shard });
  t.true((line.heldMs ?? 0) >= 500, JSON.stringify(line));
  for (const server of cluster.servers)
    for (const secret of [KEY, VALUE]) t.false(server.stderr.includes(secret), server.id);
});
