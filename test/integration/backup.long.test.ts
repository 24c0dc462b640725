/**
 * Backups of three real servers: under writes, cut off in the middle, of several tenants; restored into a cluster of
 * another size.
 */
import test, { type ExecutionContext } from 'ava';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type BufferValue, type Client } from '../../client/index.js';
import { readChunks } from '../../tools/backup/chunk-reader.js';
import { readManifest } from '../../tools/backup/manifest.js';
import { CLI, Cluster, farkv } from '../support/cluster.js';

const PATIENCE = { timeoutMs: 120_000, connectTimeoutMs: 120_000, unavailableAfterMs: 120_000 };

function directoryOf(t: ExecutionContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-backup-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function clientOf(t: ExecutionContext, cluster: Cluster, token?: string): Promise<Client<BufferValue, Buffer>> {
  const servers = cluster.addresses;
  const client = await connect({ servers, ...PATIENCE, ...(token === undefined ? {} : { token }) });
  t.teardown(() => client.close());
  return client;
}

const at = (cluster: Cluster): Record<string, string> => ({ FARKV_CONNECT: cluster.addresses.join(',') });
const run = (cluster: Cluster, ...args: string[]) =>
  farkv(args.includes('--timeout') ? args : [...args, '--timeout', '2m'], { env: at(cluster) });

/** A key that is written again and again: its value says which write it is of, and so does its expiry. */
const KEYS = 60;
const LASTING_MS = 3_600_000;
/** Some values come with the scan's reply, some are read by themselves. */
const valueOf = (key: number, write: number): string => `${key}:${write}:`.padEnd(key % 3 === 0 ? 40_000 : 100, 'x');

test('each key of a backup under writes has a value that it had meanwhile, with the expiry of the same write', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, memory: '128mb' });
  const client = await clientOf(t, cluster);
  const still = Array.from({ length: 3000 }, (_, i) => ({ key: `still ${i}`, value: `value ${i}`, flags: i }));
  await client.namespace(9).putMany(still);
  const acked = new Array<number>(KEYS).fill(0);
  const sent = new Array<number>(KEYS).fill(0);
  const write = async (key: number): Promise<void> => {
    const number = (sent[key] = (sent[key] ?? 0) + 1);
    const how = number % 2 === 0 ? {} : { ttlMs: LASTING_MS };
    await client.put(`changing ${key}`, valueOf(key, number), { flags: number, ...how });
    acked[key] = number;
  };
  for (let key = 0; key < KEYS; key++) await write(key);
  let goOn = true;
  const writers = Array.from({ length: KEYS }, async (_, key) => {
    while (goOn) {
      await write(key);
      await new Promise((resolve) => setImmediate(resolve));
    }
  });
  const before = [...acked];
  const directory = join(directoryOf(t), 'backup');
  const done = await run(cluster, 'backup', directory);
  const after = [...sent];
  goOn = false;
  await Promise.all(writers);
  t.is(done.code, 0, done.stderr);
  t.true(
    after.some((number, key) => number > (before[key] ?? 0)),
    'there were writes meanwhile',
  );
  t.is((await farkv(['values', 'check', directory])).code, 0);

  const target = await Cluster.start(t, { servers: 1, shards: 5, memory: '128mb' });
  const restored = await run(target, 'restore', directory);
  t.is(restored.code, 0, restored.stderr);
  const other = await clientOf(t, target);
  const found = new Map<string, number | undefined>();
  for await (const { key, expiresAtMs, value, flags } of other.scan({ values: true })) {
    const [, changing = ''] = /^changing (\d+)$/.exec(String(key)) ?? [];
    const [, number = ''] = /^\d+:(\d+):/.exec(String(value)) ?? [];
    t.is(String(value), valueOf(Number(changing), Number(number)));
    t.is(flags, Number(number));
    t.is(expiresAtMs === undefined, Number(number) % 2 === 0, `${String(key)}, write ${number}`);
    found.set(String(key), Number(number));
  }
  t.is(found.size, KEYS);
  for (let key = 0; key < KEYS; key++) {
    const number = found.get(`changing ${key}`) ?? 0;
    t.true(number >= (before[key] ?? 0) && number <= (after[key] ?? 0), `${before[key]} <= ${number} <= ${after[key]}`);
  }
  const values = await other.namespace(9).getMany(still.map(({ key }) => key));
  t.deepEqual(
    values.map(String),
    still.map(({ value }) => value),
  );
  t.is((await other.namespace(9).getEntry('still 17'))?.flags, 17);
});

test('a backup of one durable server goes to three servers with more shards, whose values are durable again', async (t) => {
  const source = await Cluster.start(t, { servers: 1, shards: 2, memory: '64mb', level: 'durable' });
  const from = await clientOf(t, source);
  const entries = Array.from({ length: 2000 }, (_, i) => ({
    key: `key ${i}`,
    value: `value ${i}`.padEnd(i % 100 === 0 ? 50_000 : 0, '.'),
    flags: i,
  }));
  await from.namespace(3).putMany(entries);
  const directory = join(directoryOf(t), 'backup');
  t.is((await run(source, 'backup', directory)).code, 0);

  const target = await Cluster.start(t, {
    servers: 3,
    shards: 12,
    memory: '64mb',
    level: 'durable',
    args: ['--lease-ms', '400', '--owner-lease-ms', '1000'],
  });
  const restored = await run(target, 'restore', directory);
  t.is(restored.code, 0, restored.stderr);
  await Promise.all(target.servers.map((server) => server.kill()));
  await Promise.all(target.servers.map((server) => server.start()));
  const there = (await clientOf(t, target)).namespace(3);
  t.deepEqual(
    (await there.getMany(entries.map(({ key }) => key))).map(String),
    entries.map(({ value }) => value),
  );
  t.is((await there.getEntry('key 1999'))?.flags, 1999);
});

/** The keys of a backup, each with how many bytes its value has. */
async function keysOf(directory: string): Promise<Map<string, number>> {
  const manifest = await readManifest(directory);
  const keys = new Map<string, number>();
  for (const { name, tenant, shard } of manifest.files)
    for await (const part of readChunks(join(directory, name), { backup: manifest.id, tenant, shard }))
      if (part.kind === 'chunk') for (const { key, value } of part.entries) keys.set(String(key), value.length);
  return keys;
}

test('a backup goes on when a server is killed and its shards go on at others', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 24, memory: '128mb', level: 'replicated' });
  const client = await clientOf(t, cluster);
  const items = Array.from({ length: 5000 }, (_, i) => ({ key: `small ${i}`, value: `value ${i}` }));
  await client.putMany(items);
  for (let i = 0; i < 60; i++) await client.put(`large ${i}`, Buffer.alloc(300_000, i));
  const parent = directoryOf(t);
  const directory = join(parent, 'backup');
  const begun = new Promise<void>((resolve) => {
    const watcher = watch(parent, { recursive: true }, () => {
      watcher.close();
      resolve();
    });
  });
  const done = run(cluster, 'backup', directory, '--timeout', '5s');
  await begun;
  await cluster.server(1).kill();
  const { code, stderr } = await done;
  t.is(code, 0, stderr);
  const keys = await keysOf(directory);
  t.is(keys.size, 5060);
  for (let i = 0; i < 60; i++) t.is(keys.get(`large ${i}`), 300_000);
});

/** Starts `farkv ...` and kills it once `ready` holds, looking whenever a file of the directory changes. */
async function killed(cluster: Cluster, args: readonly string[], parent: string, ready: () => boolean): Promise<void> {
  const child: ChildProcess = spawn(process.execPath, [CLI, ...args], {
    env: { ...process.env, ...at(cluster) },
    stdio: 'ignore',
  });
  const watcher = watch(parent, { recursive: true }, () => ready() && child.kill('SIGKILL'));
  await once(child, 'close');
  watcher.close();
}

test('a backup that was killed is refused by check and restore, which say what is missing', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, memory: '256mb', level: 'cache' });
  const client = await clientOf(t, cluster);
  for (let i = 0; i < 200; i++) await client.put(`key ${i}`, Buffer.alloc(500_000, i));
  const parent = directoryOf(t);
  let directory = '';
  // One that was faster than the kill is whole: another one is made.
  for (let i = 0; directory === '' || existsSync(join(directory, 'manifest.json')); i++) {
    directory = join(parent, `backup ${i}`);
    await killed(cluster, ['backup', directory], parent, () => existsSync(join(directory, '0-0001.chunks')));
  }
  t.true(readdirSync(directory).length > 0);
  for (const command of [
    ['values', 'check', directory],
    ['restore', directory],
  ]) {
    const { code, stderr } = await farkv(command, { env: at(cluster) });
    t.is(code, 1);
    t.regex(stderr, /was not finished: manifest.json, which is written last, is missing; there are \d+ of its files/);
  }
  t.regex((await run(cluster, 'backup', directory)).stderr, /is not empty/);
  t.is((await run(cluster, 'backup', join(parent, 'again'))).code, 0);
});

test('a restore that was killed can be run again', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, memory: '256mb' });
  const client = await clientOf(t, cluster);
  const keys = Array.from({ length: 200 }, (_, i) => `key ${i}`);
  for (const [i, key] of keys.entries()) await client.put(key, Buffer.alloc(400_000, i));
  const directory = join(directoryOf(t), 'backup');
  t.is((await run(cluster, 'backup', directory)).code, 0);
  for (const key of keys) await client.delete(key);
  const child = spawn(process.execPath, [CLI, 'restore', directory], {
    env: { ...process.env, ...at(cluster) },
    stdio: 'ignore',
  });
  const ended = once(child, 'close');
  while (child.exitCode === null && (await client.scanPage({ batch: 1 })).entries.length === 0) continue;
  child.kill('SIGKILL');
  await ended;
  const again = await run(cluster, 'restore', directory, '--keep-newer');
  t.is(again.code, 0, again.stderr);
  for (const [i, key] of keys.entries()) t.true((await client.get(key))?.equals(Buffer.alloc(400_000, i)), key);
});

test('a backup of several tenants goes to a cluster that has them, and to no other', async (t) => {
  const files = directoryOf(t);
  const tokenFile = (tenant: string): string => {
    const path = join(files, tenant);
    writeFileSync(path, `of ${tenant}\n`, { mode: 0o600 });
    return path;
  };
  const [rest, a, b] = ['rest', 'a', 'b'].map(tokenFile) as [string, string, string];
  const args = (...tenants: string[]): string[] => [
    ...['--token-file', rest, '--peer-token', 'of servers'],
    ...tenants.flatMap((name, i) => ['--tenants', `${name},shards=${i + 2},token-file=${join(files, name)}`]),
  ];
  const cluster = await Cluster.start(t, { servers: 1, shards: 3, args: args('a', 'b') });
  for (const tenant of ['rest', 'a', 'b'])
    await (await clientOf(t, cluster, `of ${tenant}`)).put('key', `value of ${tenant}`);
  const directory = join(files, 'backup');
  const tokens = ['--token-file', b, '--tenant-token-file', rest, '--tenant-token-file', a];
  const done = await run(cluster, 'backup', directory, ...tokens);
  t.is(done.code, 0, done.stderr);
  t.regex(done.stdout, /3 entries/);

  const without = await Cluster.start(t, { servers: 1, shards: 3, args: args('a') });
  const refused = await run(without, 'restore', directory, '--token-file', rest, '--tenant-token-file', a);
  t.is(refused.code, 2);
  t.regex(refused.stderr, /the backup has tenant b, which none of the given tokens opens .*nothing was written/);
  t.is(await (await clientOf(t, without, 'of a')).get('key'), undefined);

  const other = await Cluster.start(t, { servers: 1, shards: 1, args: args('b', 'a') });
  const restored = await run(other, 'restore', directory, ...tokens);
  t.is(restored.code, 0, restored.stderr);
  for (const tenant of ['rest', 'a', 'b'])
    t.is(String(await (await clientOf(t, other, `of ${tenant}`)).get('key')), `value of ${tenant}`);
});

test('the token of a reader is enough for a backup and not for a restore', async (t) => {
  const cluster = await Cluster.start(t, { args: ['--token', 'of writers', '--reader-token', 'of readers'] });
  await (await clientOf(t, cluster, 'of writers')).put('key', 'value');
  const directory = join(directoryOf(t), 'backup');
  t.like(await run(cluster, 'backup', directory, '--token', 'of readers'), { code: 0 });
  t.like(await run(cluster, 'restore', directory, '--token', 'of readers'), { code: 77 });
  t.like(await run(cluster, 'restore', directory, '--token', 'of writers'), { code: 0 });
});
