/**
 * The commands of `farkv gateway` that look through all keys, beside a real redis-server, which has to be installed
 * (apt-get install redis-server).
 */
import test from 'ava';
import { Redis } from 'ioredis';
import { connect } from '../../client/index.js';
import { both, startGateway } from '../support/gateway.js';
import { seeded } from '../support/random.js';

async function scanned(redis: Redis, pattern: string, count: number): Promise<string[]> {
  const found: string[] = [];
  for await (const page of redis.scanStream({ match: pattern, count })) found.push(...(page as string[]));
  return found;
}

/** A key that is listed may come twice. */
const sorted = (keys: readonly string[]): string[] => [...new Set(keys)].sort();

test('the keys that are counted and listed are those of redis-server', async (t) => {
  const { port, redisPort } = await both(t);
  const [farkv, redis] = [port, redisPort].map((one) => new Redis({ host: '127.0.0.1', port: one }));
  if (farkv === undefined || redis === undefined) throw new Error('two clients');
  t.teardown(() => [farkv, redis].forEach((one) => one.disconnect()));
  const random = seeded(t, import.meta.filename);
  const text = (): string =>
    Array.from({ length: 1 + random.below(6) }, () => random.pick(Array.from('ab[]^-*?\\'))).join('');
  const keys = [...new Set(Array.from({ length: 6000 }, (_, n) => (n < 3000 ? text() : `user:${n}`)))];
  for (const one of [farkv, redis]) await one.mset(keys.flatMap((key) => [key, 'x']));
  t.is(await farkv.dbsize(), keys.length);
  t.true(keys.includes((await farkv.randomkey()) ?? ''));
  for (const pattern of ['*', 'user:*', 'user:?5*', 'user:4999', 'none*', ...Array.from({ length: 60 }, text)]) {
    const theirs = sorted(await redis.keys(pattern));
    t.deepEqual(sorted(await farkv.keys(pattern)), theirs, pattern);
    t.deepEqual(sorted(await scanned(farkv, pattern, 1 + random.below(2000))), theirs, `SCAN: ${pattern}`);
  }
  // A command behind a change sees it, and one behind a listing is not seen by it.
  const piped = await farkv.pipeline().set('last', '1').keys('last').del('last').dbsize().exec();
  t.deepEqual(
    piped,
    [null, null, null, null].map((error, n) => [error, ['OK', ['last'], 1, keys.length][n]]),
  );
  await farkv.mset(Array.from({ length: 17_000 }, (_, n) => [`${n}`.padEnd(1024, 'k'), '']).flat());
  await t.throwsAsync(farkv.keys('*'), { message: /^ERR KEYS would answer more than 16777216 bytes: use SCAN/ });
  t.is(new Set(await scanned(farkv, '*', 1000)).size, keys.length + 17_000);
});

test('a flush takes the keys of its databases and no others', async (t) => {
  const { cluster, port } = await startGateway(t, '--namespace', '100');
  const client = await connect({ servers: cluster.addresses, timeoutMs: 60_000 });
  t.teardown(() => client.close());
  const [zero, seven] = [0, 7].map((db) => new Redis({ host: '127.0.0.1', port, db }));
  if (zero === undefined || seven === undefined) throw new Error('two clients');
  t.teardown(() => [zero, seven].forEach((one) => one.disconnect()));
  const many = Array.from({ length: 3000 }, (_, n) => [`key${n}`, 'x']).flat();
  await Promise.all([zero.mset(many), seven.mset(many), client.put('kept', 'x')]);
  await client.namespace(99).put('kept', 'x');
  t.is(await seven.flushdb(), 'OK');
  t.deepEqual([await zero.dbsize(), await seven.dbsize()], [3000, 0]);
  await seven.set('a', '1');
  t.deepEqual(await zero.pipeline().set('b', '1').flushall('ASYNC').set('c', '1').keys('*').exec(), [
    [null, 'OK'],
    [null, 'OK'],
    [null, 'OK'],
    [null, ['c']],
  ]);
  t.is(await seven.dbsize(), 0);
  t.true((await client.has('kept')) && (await client.namespace(99).has('kept')));
});
