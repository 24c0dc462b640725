/** FARKV_TRACE=1: where one operation spends its time, at the client and at the owner, and no key or value in it. */
import test from 'ava';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { connect } from '../../client/index.js';
import { Cluster, farkv, type ServerProcess } from '../support/cluster.js';
import { patient } from '../support/sdk-clients.js';
import { copied, statusWhen } from '../support/status.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const KEY = 'a-key-that-is-private';
const VALUE = 'a-value-that-is-private';

test('the steps of an operation are written at both ends under one hash', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, env: { FARKV_TRACE: '1' } });
  const at = ['--connect', cluster.addresses.join(), '--transport', 'tcp'];
  const put = await farkv(['put', KEY, VALUE, ...at], { env: { FARKV_TRACE: '1' } });
  t.is(put.code, 0, put.stderr);
  const hash = /^farkv trace: put, namespace 0, key ([0-9a-f]{16}) of 21 B, shard \d+$/m.exec(put.stderr)?.[1];
  t.truthy(hash, put.stderr);
  t.regex(put.stderr, /^ {2}\+\d+\.\d{3} ms {2}SDK: the call has returned$/m);
  t.regex(put.stderr, /^ {2}\+\d+\.\d{3} ms {2}native client: put of \d+ B sent to the owner over tcp$/m);
  t.regex(put.stderr, /^ {2}\+\d+\.\d{3} ms {2}native client: put answered with \d+ B: ok$/m);
  t.regex(put.stderr, /^ {2}\+\d+\.\d{3} ms {2}SDK: ended, with /m);
  const get = await farkv(['get', KEY, ...at], { env: { FARKV_TRACE: '1' } });
  t.is(get.stdout, `${VALUE}\n`);
  t.true(get.stderr.includes(`, key ${String(hash)} of 21 B, `), get.stderr);
  t.regex(get.stderr, /native client: READ of \d+ B posted over tcp$/m);
  t.regex(get.stderr, /native client: READ landed, \d+ B$/m);
  for (const { stderr } of [put, get]) {
    const times = Array.from(stderr.matchAll(/^ {2}\+(\d+\.\d{3}) ms /gm), ([, ms]) => Number(ms));
    t.true(times.length >= 4, stderr);
    t.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
      'the steps are in their order',
    );
  }
  await cluster
    .server(0)
    .waitUntil(() => cluster.server(0).stderr.includes(`put of key ${String(hash)} by client `), 'the owner to say so');
  for (const text of [put.stderr, get.stderr, cluster.server(0).stderr])
    for (const secret of [KEY, VALUE]) t.false(text.includes(secret));
  const silent = await farkv(['get', KEY, ...at]);
  t.is(silent.stderr, '');
});

/** Key hashes of the requests of this kind that a server has written, of clients by their id. */
const requests = (server: ServerProcess, operation: string): { hash: string; shard: number }[] =>
  Array.from(
    server.stderr.matchAll(
      new RegExp(`\\binfo +${operation} of key ([0-9a-f]{16}) by client [0-9a-f]+ took .* shard (\\d+): `, 'gm'),
    ),
    ([, hash = '', shard]) => ({ hash, shard: Number(shard) }),
  );

test("a PUT's lines of the client and of the owner, on standard error of each, are joined by the hash", async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 6, env: { FARKV_TRACE: '1' } });
  const { shards } = await statusWhen(cluster.server(0).address, copied);
  const keys = Array.from({ length: 4 }, (_, i) => `${KEY}-${i}`);
  const hashes = new Map<string, string>();
  for (const key of keys) {
    const put = await farkv(['put', key, VALUE, '--connect', cluster.addresses.join()], { env: { FARKV_TRACE: '1' } });
    t.is(put.code, 0, put.stderr);
    const [begin = '', ...steps] = put.stderr.trimEnd().split('\n');
    const [, hash = '', shard] = /^farkv trace: put, .*, key ([0-9a-f]{16}) of \d+ B, shard (\d+)$/.exec(begin) ?? [];
    hashes.set(key, hash);
    t.true(steps.some((step) => /native client: put of \d+ B sent to the owner over /.test(step)) && steps.length >= 4);
    t.false(put.stdout.includes('trace'), 'what a program reads of a command stays what it is');
    // The owner of the shard that the client names has the other half, once; nobody else has.
    const owner = cluster.servers.find(({ id }) => id === shards[Number(shard)]?.owner)!;
    const mine = (server: ServerProcess) => requests(server, 'put').filter((one) => one.hash === hash);
    await owner.waitUntil(() => mine(owner).length > 0, `put of key ${hash}`);
    for (const server of cluster.servers) {
      t.deepEqual(mine(server), server === owner ? [{ hash, shard: Number(shard) }] : [], `${key} at ${server.id}`);
      t.false(server.stdout.includes(hash));
    }
  }
  t.is(new Set(hashes.values()).size, keys.length, 'each key has a hash of its own');
});

test('scans, of which copies make many, do not take the lines of other requests', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, shards: 1, env: { FARKV_TRACE: '1' } });
  const server = cluster.server(0);
  const kv = await patient(t, cluster.addresses);
  // More than are written in ten seconds.
  for (let i = 0; i < 1100; i++) for await (const key of kv.scan()) t.fail(`there is an entry: ${typeof key}`);
  await kv.put(KEY, VALUE);
  await server.waitUntil(() => requests(server, 'put').length > 0, 'its line');
  t.is(requests(server, 'put').length, 1);
});

test('a server says for whom a change waited', async (t) => {
  for (const [servers, args, whom] of [
    [
      3,
      [],
      /\bput of key .* by client .* took [\d.]+ ms .*: ok \([\d.]+ ms until its turn, [\d.]+ ms until s\d had it\)$/m,
    ],
    [
      1,
      ['--level', 'durable'],
      /\bput of key .*: ok \([\d.]+ ms until its turn, [\d.]+ ms until it was on the disk\)$/m,
    ],
  ] as const) {
    const cluster = await Cluster.start(t, { servers, args: [...args], env: { FARKV_TRACE: '1' } });
    await statusWhen(cluster.server(0).address, copied);
    const kv = await connect({ servers: cluster.addresses, transport: 'tcp' });
    await kv.put(KEY, VALUE);
    await kv.close();
    await Promise.race(cluster.servers.map((server) => server.said(whom)));
    t.pass();
  }
});

/** A program with clients of two clusters, whose lines nobody reads to their end. */
const PROGRAM = `
  import { connect } from 'farkv';
  const [a, b] = await Promise.all(process.argv.slice(1).map((servers) => connect({ servers, transport: 'tcp' })));
  await a.get('key');
  await b.get('key');
  await a.close();
  await b.namespace(0).get('key');
  console.log('read');
  process.stdin.once('data', async () => {
    for (let i = 0; i < 100; i++) await b.get('key');
    console.log('done');
    await b.close();
    process.stdin.destroy();
  });
`;

test('of several clients each call has the hash of its own, and a program goes on when nobody reads', async (t) => {
  const clusters = await Promise.all([Cluster.start(t, { servers: 1 }), Cluster.start(t, { servers: 1 })]);
  const addresses = clusters.map((cluster) => cluster.addresses.join());
  const hashOf = (stderr: string): string[] =>
    Array.from(stderr.matchAll(/, key ([0-9a-f]{16}) of 3 B, /g), ([, h = '']) => h);
  const alone = await Promise.all(
    addresses.map(async (at) => {
      const { stderr } = await farkv(['get', 'key', '--connect', at, '--transport', 'tcp'], {
        env: { FARKV_TRACE: '1' },
      });
      return hashOf(stderr)[0];
    }),
  );
  t.not(alone[0], alone[1], 'each cluster has a seed of its own');
  const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, ...addresses], {
    cwd: ROOT,
    env: { ...process.env, FARKV_TRACE: '1' },
  });
  t.teardown(() => child.kill());
  let [out, err] = ['', ''];
  child.stderr.on('data', (data: Buffer) => (err += data.toString()));
  const said = (word: string): Promise<void> =>
    new Promise((resolve) =>
      child.stdout.on('data', (data: Buffer) => (out += data.toString()).includes(word) && resolve()),
    );
  await said('read');
  while (hashOf(err).length < 3) await once(child.stderr, 'data');
  t.deepEqual(hashOf(err), [alone[0], alone[1], alone[1]], err);
  child.stderr.destroy();
  child.stdin.write('go on\n');
  const [code] = (await once(child, 'exit')) as [number | null];
  t.is(code, 0);
  t.true(out.includes('done'));
});
