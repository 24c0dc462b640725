/** GETs: over shm against lmdb, the C loop and ioredis; over tcp against ioredis. */
import { batchRate, meanNs, medianNs, rate, walk } from './loops.js';
import { redisBenchmark } from './peers.js';
import { regionLoop } from './region-loop.js';
import { compare, interleave, median, nanoseconds, perSecond, result, type Result } from './row.js';
import { ratios } from './statistics.js';
import type { Stores } from './stores.js';

export async function getInto(s: Stores, rounds: number, goal: number): Promise<Result> {
  const target = Buffer.alloc(s.value.length + 64);
  const { keys } = s;
  const n = 300_000;
  const ours = walk(keys.length);
  const theirs = walk(keys.length);
  return await compare(
    `shm getInto, ${s.value.length} B, ${keys.length} keys, uniform, against lmdb getBinaryFast`, { kind: 'atLeast', value: goal, unit: 'times faster' },
    { name: 'farkv', run: () => meanNs(n, (i) => s.shm.getInto(keys[i] ?? '', target), ours) },
    { name: 'lmdb', run: () => meanNs(n, (i) => s.lmdb.getBinaryFast(keys[i] ?? ''), theirs) },
    'time', rounds, nanoseconds,
  );
}

export async function getIntoAgainstC(s: Stores, rounds: number, goal: number): Promise<Result> {
  const target = Buffer.alloc(s.value.length + 64);
  const next = walk(s.keys.length);
  const loop = regionLoop(s.keys.length, s.value.length);
  const [ours = [], floor = []] = await interleave([
    { name: 'farkv', run: () => meanNs(300_000, (i) => s.shm.getInto(s.keys[i] ?? '', target), next) },
    { name: 'C', run: async () => (await loop()).plainNs },
  ], rounds);
  return result(
    `shm getInto, ${s.value.length} B, ${s.keys.length} keys, against the C loop over such a region`, { kind: 'atMost', value: goal, unit: 'times the time' },
    ratios(ours, floor), `farkv ${nanoseconds(median(ours))}, C loop ${nanoseconds(median(floor))}`,
  );
}

export async function awaitGet(s: Stores, transport: 'shm' | 'tcp', rounds: number, goal: number): Promise<Result> {
  const client = s[transport];
  return await compare(
    `${transport} await get, one at a time, p50, against ioredis`, { kind: 'atLeast', value: goal, unit: 'times lower' },
    { name: 'farkv', run: () => medianNs(30_000, (i) => client.get(s.keys[i] ?? ''), walk(s.keys.length)) },
    { name: 'ioredis', run: () => medianNs(30_000, (i) => s.redis.getBuffer(s.keys[i] ?? ''), walk(s.keys.length)) },
    'time', rounds, nanoseconds,
  );
}

export async function outstandingGets(s: Stores, outstanding: number, rounds: number, goal: number): Promise<Result> {
  return await compare(
    `tcp get, ${s.value.length} B, ${outstanding} outstanding, against ioredis`, { kind: 'atLeast', value: goal, unit: 'times the throughput' },
    { name: 'farkv', run: () => rate(200_000, outstanding, (i) => s.tcp.get(s.keys[i] ?? ''), walk(s.keys.length)) },
    { name: 'ioredis', run: () => rate(200_000, outstanding, (i) => s.redis.getBuffer(s.keys[i] ?? ''), walk(s.keys.length)) },
    'rate', rounds, perSecond,
  );
}

export async function tcpGetMany(s: Stores, rounds: number, goal: number): Promise<Result> {
  const prefix = ['-t', 'get', '-c', '1', '-P', '100', '-n', '200000', '-d', String(s.value.length), '-r', String(s.keys.length)];
  return await compare(
    `tcp getMany of 100, ${s.value.length} B, against redis-benchmark GET -c 1 -P 100`, { kind: 'atLeast', value: goal, unit: 'times the throughput' },
    { name: 'farkv', run: () => batchRate(2000, 100, (some) => s.tcp.getMany(some.map((i) => s.keys[i] ?? '')), walk(s.keys.length)) },
    { name: 'redis-benchmark', run: () => redisBenchmark(s.redisPeer.port, prefix) },
    'rate', rounds, perSecond,
  );
}

export async function shmGetMany(s: Stores, rounds: number, goal: number): Promise<Result> {
  const loop = regionLoop(s.keys.length, s.value.length);
  const [ours = [], floor = []] = await interleave([
    { name: 'farkv', run: async () => 1e9 / (await batchRate(5000, 100, (some) => s.shm.getMany(some.map((i) => s.keys[i] ?? '')), walk(s.keys.length))) },
    { name: 'C', run: async () => (await loop()).plainNs },
  ], rounds);
  return result(
    `shm getMany of 100, ${s.value.length} B, ${s.keys.length} keys, against the C loop without prefetch, a key`, { kind: 'atLeast', value: goal, unit: 'times as fast' },
    ratios(floor, ours), `farkv ${nanoseconds(median(ours))} a key, C loop ${nanoseconds(median(floor))}`,
  );
}
