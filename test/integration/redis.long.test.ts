/**
 * `farkv import redis://...` from a real redis-server, which has to be installed: apt-get install redis-server. Without
 * it these tests fail; `npm run deep` leaves them out and says so. What a key alone can do is tested without it, in
 * tools/redis/import-redis.test.ts.
 */
import test, { type ExecutionContext } from 'ava';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { connect } from '../../client/index.js';
import { Cluster, farkv, freePorts } from '../support/cluster.js';
import { startRedis } from '../support/redis-server.js';
import { tlsFile } from '../support/tls-files.js';

async function start(t: ExecutionContext) {
  const cluster = await Cluster.start(t, { servers: 1, memory: '256mb' });
  const client = await connect({ servers: cluster.addresses, timeoutMs: 120_000 });
  t.teardown(() => client.close());
  const run = (...args: string[]) => farkv(args, { env: { FARKV_CONNECT: cluster.addresses.join(',') } });
  const [port = 0] = await freePorts(1);
  return { client, run, port, address: cluster.server(0).address };
}

function redisOf(t: ExecutionContext, port: number, more: { db?: number; password?: string } = {}): Redis {
  const redis = new Redis({ host: '127.0.0.1', port, ...more });
  t.teardown(() => redis.disconnect());
  return redis;
}

test('strings come with their times to live, whatever their bytes; other types are counted and named', async (t) => {
  const { client, run, port } = await start(t);
  await startRedis(t, port);
  const redis = redisOf(t, port, { db: 2 });
  const pipeline = redis.pipeline();
  for (let i = 0; i < 5000; i++) pipeline.set(`key ${i}`, `value ${i}`);
  await pipeline.exec();
  const large = Buffer.alloc(3_000_000, 'large');
  await redis.set('large', large);
  await redis.set(Buffer.from([0xff, 0x00]), Buffer.from([0xc0]));
  await redis.set('empty', '');
  await redis.set('an hour', 'x', 'PX', 3_600_000);
  await redis.set('k'.repeat(1025), 'too long');
  for (let i = 0; i < 12; i++) await redis.rpush(`list ${i}`, 'a');
  await redis.hset('hash', 'a', '1');

  const imported = await run('import', `redis://127.0.0.1:${port}/2`, '-n', '4');
  t.like(imported, { code: 1, stdout: '5,004 entries written\n' });
  t.regex(imported.stderr, /^not imported, type list: 12 \((?:list \d+, ){10}\.\.\.\)$/m);
  t.regex(imported.stderr, /^not imported, type hash: 1 \(hash\)$/m);
  t.regex(imported.stderr, /^not imported, keys of 0 or more than 1024 bytes: 1 \(k{80}\.\.\.\)$/m);
  const space = client.namespace(4);
  const keys = Array.from({ length: 5000 }, (_, i) => `key ${i}`);
  t.deepEqual(
    (await space.getMany(keys)).map(String),
    keys.map((key) => key.replace('key', 'value')),
  );
  t.true((await space.get('large'))?.equals(large));
  t.deepEqual(await space.get(Buffer.from([0xff, 0x00])), Buffer.from([0xc0]));
  t.is((await space.get('empty'))?.length, 0);
  for await (const { key, expiresAtMs } of space.scan()) {
    const left = (expiresAtMs ?? 0) - Date.now();
    if (String(key) === 'an hour') t.true(left > 3_000_000 && left <= 3_600_000);
    else t.is(expiresAtMs, undefined);
  }

  await space.put('key 1', 'written since');
  await space.delete('key 2');
  t.like(await run('import', `redis://127.0.0.1:${port}/2`, '-n', '4', '--keep-newer'), {
    stdout: '1 entries written, 5,003 were there already\n',
  });
  t.is(String(await space.get('key 1')), 'written since');
  t.is(String(await space.get('key 2')), 'value 2');
  t.like(await run('import', `redis://127.0.0.1:${port}/0`), { code: 0, stdout: '0 entries written\n', stderr: '' });
});

test('one key that cannot be imported is named, and the rest goes on', async (t) => {
  const { client, run, port } = await start(t);
  await startRedis(t, port);
  const redis = redisOf(t, port);
  const pipeline = redis.pipeline();
  for (let i = 0; i < 2000; i++) pipeline.set(`key ${i}`, `value ${i}`);
  await pipeline.exec();
  await redis.set('far', 'x', 'EX', 999_999_999_999);
  await redis.call('SET', 'farther', 'x');
  await redis.call('PEXPIRE', 'farther', '9000000000000000000');
  await redis.set('secret', 'x');
  const rights = ['+ping', '+select', '+dbsize', '+scan', '+type', '+strlen', '+get', '+pttl', '+multi', '+exec'];
  await redis.call('ACL', 'SETUSER', 'farkv', 'on', '>word', '~key*', '~far*', 'resetchannels', '-@all', ...rights);

  const imported = await run('import', `redis://farkv:word@127.0.0.1:${port}`);
  t.like(imported, { code: 1, stdout: '2,000 entries written\n' });
  t.regex(
    imported.stderr,
    /^not imported, a time to live over [\d,]+ ms \(2,230 years\): 2 \((?:far, farther|farther, far)\)$/m,
  );
  t.regex(imported.stderr, /^not imported, refused by Redis: NOPERM [^\n]*: 1 \(secret\)$/m);
  t.is(await client.count(), 2000);

  const stopped = await run('import', `redis://farkv:word@127.0.0.1:${port}`, '--on-error', 'stop');
  t.is(stopped.code, 1);
  t.regex(stopped.stderr, /^farkv import: stopped at a key that was refused; .*--on-error skip goes on$/m);

  await redis.call('ACL', 'SETUSER', 'farkv', '-strlen');
  const denied = await run('import', `redis://farkv:word@127.0.0.1:${port}`);
  t.is(denied.code, 77);
  t.regex(denied.stderr, /^farkv import: the Redis server refuses STRLEN: NOPERM .*an import takes ping, /);
});

test('no value gets the time to live of another write', async (t) => {
  const { client, run, port } = await start(t);
  await startRedis(t, port);
  const redis = redisOf(t, port);
  const keys = Array.from({ length: 300 }, (_, i) => `key ${i}`);
  const stop = new AbortController();
  const write = async (n: number): Promise<void> => {
    const pipeline = redis.pipeline();
    for (const key of keys)
      if (n % 2 === 0) pipeline.set(key, 'stays');
      else pipeline.set(key, 'goes', 'PX', 3_600_000);
    await pipeline.exec();
  };
  await write(0);
  const writing = (async () => {
    for (let n = 1; !stop.signal.aborted; n++) await write(n);
  })();
  for (let i = 0; i < 3; i++) {
    t.like(await run('import', `redis://127.0.0.1:${port}`), { code: 0 });
    let seen = 0;
    for await (const { value, expiresAtMs } of client.scan({ values: true })) {
      t.is(String(value), expiresAtMs === undefined ? 'stays' : 'goes');
      seen++;
    }
    t.is(seen, keys.length);
  }
  stop.abort();
  await writing;
});

test('a password, from the address or the environment, and TLS', async (t) => {
  const { client, run, port } = await start(t);
  const [tlsPort = 0] = await freePorts(1);
  const tls = [
    '--tls-port',
    String(tlsPort),
    '--tls-cert-file',
    tlsFile('server.pem'),
    '--tls-key-file',
    tlsFile('server-key.pem'),
  ];
  await startRedis(t, port, [
    '--requirepass',
    'open sesame',
    ...tls,
    '--tls-ca-cert-file',
    tlsFile('ca.pem'),
    '--tls-auth-clients',
    'no',
  ]);
  await redisOf(t, port, { password: 'open sesame' }).set('key', 'value');
  const refused = await run('import', `redis://127.0.0.1:${port}`);
  t.is(refused.code, 77);
  t.regex(refused.stderr, /^farkv import: the Redis server refuses PING: NOAUTH [^\n]*\n$/);
  t.like(await run('import', `redis://:wrong@127.0.0.1:${port}`), { code: 77 });
  const plain = await run('import', `redis://:open%20sesame@127.0.0.1:${port}`, '--redis-ca', tlsFile('ca.pem'));
  t.is(plain.code, 2);
  t.regex(plain.stderr, /^farkv import: --redis-ca: it is for an address with TLS: rediss:\/\/, not redis:\/\/$/m);
  const nobody = await run('import', `redis://nobody@127.0.0.1:${port}`);
  t.is(nobody.code, 77);
  t.regex(nobody.stderr, /the Redis server refuses AUTH: WRONGPASS/);
  t.like(await run('import', `redis://default:open%20sesame@127.0.0.1:${port}`), {
    code: 0,
    stdout: '1 entries written\n',
  });
  t.is(String(await client.get('key')), 'value');
  const secured = ['import', `rediss://:open%20sesame@127.0.0.1:${tlsPort}`];
  t.like(await run(...secured, '--redis-ca', tlsFile('ca.pem')), { code: 0 });
  const distrusted = await run(...secured);
  t.is(distrusted.code, 69);
  t.regex(distrusted.stderr, /certificate/);
});

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Runs a program of the tutorial as it stands, but for addresses and the place of its file. */
async function runs(t: ExecutionContext, program: string): Promise<string> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { cwd: ROOT, stdio: 'pipe' });
  const [stdout, stderr, [code]] = (await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ])) as unknown as [string, string, [number]];
  t.is(code, 0, `${program}\n${stderr}`);
  return stdout;
}

test('the tutorial is as it says: what the import prints, its programs, and the way back to Redis', async (t) => {
  const guide = readFileSync(join(ROOT, 'docs/from-redis.md'), 'utf8');
  const fenced = Array.from(guide.matchAll(/^```(\w*)\n(.*?)^```$/gms), ([, language = '', block = '']) => ({
    language,
    block,
  }));
  const blocks = (of: string): readonly string[] => fenced.filter((b) => b.language === of).map(({ block }) => block);
  const directory = mkdtempSync(join(tmpdir(), 'farkv-tutorial-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const { client, run, port, address } = await start(t);
  await startRedis(t, port);
  const redis = redisOf(t, port);
  const pipeline = redis.pipeline();
  for (let i = 0; i < 20_002; i++) pipeline.set(`key ${i}`, `value ${i}`);
  await pipeline.set('an hour', 'x', 'PX', 3_600_000).exec();
  await redis.rpush('queue', 'a');
  for (const key of ['user:1', 'user:2']) await redis.hset(key, 'a', '1');

  const imported = await run('import', `redis://127.0.0.1:${port}/0`);
  t.is(imported.code, 1);
  const [printed = ''] = blocks('').filter((block) => block.includes('entries written'));
  // Redis names keys in any order.
  const facts = (printed: string): readonly string[] =>
    printed
      .trim()
      .split('\n')
      .map((line) => line.replace(/\((.*)\)/, (_, names: string) => names.split(', ').sort().join(', ')))
      .sort();
  t.deepEqual(facts(`${imported.stdout}${imported.stderr}`), facts(printed));
  const [service = '', back = '', ...more] = blocks('js');
  t.deepEqual(more, []);
  t.is(await runs(t, service.replaceAll('127.0.0.1:7400', address)), 'Ada\n');
  await client.namespace(2).put(Buffer.from([0xff]), Buffer.from([0xc0, 0]));
  const file = join(directory, 'all.jsonl');
  t.is((await run('export', file)).code, 0);
  await redis.flushall();
  await runs(t, back.replace('6379', String(port)).replace("'all.jsonl'", JSON.stringify(file)));
  t.is(await redis.dbsize(), 20_004);
  t.is(await redis.get('key 20001'), 'value 20001');
  t.is(await redis.get('session:7'), 'Ada');
  const left = await redis.pttl('an hour');
  t.true(left > 3_000_000 && left <= 3_600_000);
  await redis.select(2);
  t.deepEqual(await redis.getBuffer(Buffer.from([0xff])), Buffer.from([0xc0, 0]));
});
