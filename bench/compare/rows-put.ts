/** PUTs of 100 B over shm, against ioredis and redis-benchmark. */
import { batchRate, medianNs, rate, walk } from './loops.js';
import { redisBenchmark } from './peers.js';
import { compare, interleave, median, nanoseconds, perSecond, result, type Result } from './row.js';
import { valueOf, type Stores } from './stores.js';

const value = valueOf(100);

export async function sequentialPut(s: Stores, rounds: number, goal: number): Promise<Result> {
  return await compare(
    'shm put, 100 B, one at a time, p50, against ioredis SET', { kind: 'atLeast', value: goal, unit: 'times lower' },
    { name: 'farkv', run: () => medianNs(20_000, (i) => s.shm.put(s.keys[i] ?? '', value), walk(s.keys.length)) },
    { name: 'ioredis', run: () => medianNs(20_000, (i) => s.redis.set(s.keys[i] ?? '', value), walk(s.keys.length)) },
    'time', rounds, nanoseconds,
  );
}

export async function outstandingPuts(s: Stores, rounds: number, goal: number): Promise<Result> {
  return await compare(
    'shm put, 100 B, 64 outstanding, against ioredis with 64 outstanding', { kind: 'atLeast', value: goal, unit: 'times the throughput' },
    { name: 'farkv', run: () => rate(300_000, 64, (i) => s.shm.put(s.keys[i] ?? '', value), walk(s.keys.length)) },
    { name: 'ioredis', run: () => rate(200_000, 64, (i) => s.redis.set(s.keys[i] ?? '', value), walk(s.keys.length)) },
    'rate', rounds, perSecond,
  );
}

export async function putRate(s: Stores, rounds: number, goal: number): Promise<Result> {
  const side = { name: 'farkv', run: () => rate(500_000, 64, (i) => s.shm.put(s.keys[i] ?? '', value), walk(s.keys.length)) };
  const [rates = []] = await interleave([side], rounds);
  return result('shm put, 100 B, 64 outstanding', { kind: 'atLeast', value: goal, unit: '/s' }, rates, perSecond(median(rates)));
}

export async function putMany(s: Stores, rounds: number, goal: number): Promise<Result> {
  const args = ['-t', 'set', '-c', '1', '-P', '100', '-n', '300000', '-d', '100', '-r', String(s.keys.length)];
  return await compare(
    'shm putMany of 100, 100 B, against redis-benchmark SET -c 1 -P 100', { kind: 'atLeast', value: goal, unit: 'times the throughput' },
    { name: 'farkv', run: () => batchRate(3000, 100, (some) => s.shm.putMany(some.map((i) => ({ key: s.keys[i] ?? '', value }))), walk(s.keys.length)) },
    { name: 'redis-benchmark', run: () => redisBenchmark(s.redisPeer.port, args) },
    'rate', rounds, perSecond,
  );
}
