/** PUTs of 100 B over shm, against ioredis and redis-benchmark. The keys are there already: nothing grows. */
import type { Lab } from './lab.js';
import { batches, batchRate, drawing, medianNs, rate } from './loops.js';
import { redisBenchmark } from './peers.js';
import { atLeast, compare, interleave, part, perSecond, type Part } from './row.js';
import { median } from './statistics.js';

const BATCH = 100;
const OUTSTANDING = 64;

export async function sequentialPut(lab: Lab, goal: number): Promise<Part[]> {
  const s = await lab.stores(100);
  const [shm, redis] = [await s.shm(), (await s.redis()).client];
  const [ours, theirs] = [drawing(s.keys), drawing(s.keys)];
  return [
    await compare(
      lab,
      'shm put, one at a time, p50, against ioredis SET',
      atLeast(goal, 'times lower'),
      { name: 'farkv', run: () => medianNs(ours(20_000), (key) => shm.put(key, s.value)) },
      { name: 'ioredis', run: () => medianNs(theirs(20_000), (key) => redis.set(key, s.value)) },
      'time',
    ),
  ];
}

export async function outstandingPuts(lab: Lab, goal: number): Promise<Part[]> {
  const s = await lab.stores(100);
  const [shm, redis] = [await s.shm(), (await s.redis()).client];
  const [ours, theirs] = [drawing(s.keys), drawing(s.keys)];
  return [
    await compare(
      lab,
      'shm put, 64 outstanding, against ioredis',
      atLeast(goal, 'times the throughput'),
      { name: 'farkv', run: () => rate(ours(200_000), OUTSTANDING, (key) => shm.put(key, s.value)) },
      { name: 'ioredis', run: () => rate(theirs(200_000), OUTSTANDING, (key) => redis.set(key, s.value)) },
      'rate',
    ),
  ];
}

export async function putRate(lab: Lab, goal: number): Promise<Part[]> {
  const s = await lab.stores(100);
  const shm = await s.shm();
  const draw = drawing(s.keys);
  const [rates = []] = await interleave(lab, [
    { name: 'farkv', run: () => rate(draw(500_000), OUTSTANDING, (key) => shm.put(key, s.value)) },
  ]);
  return [part('shm put, 64 outstanding', atLeast(goal, 'a second'), rates, `farkv ${perSecond(median(rates))}`)];
}

export async function putManyAgainstRedis(lab: Lab, goal: number): Promise<Part[]> {
  const s = await lab.stores(100);
  const [shm, redis] = [await s.shm(), (await s.redis()).peer];
  const draw = drawing(s.keys);
  const items = (count: number): { key: string; value: Buffer }[] =>
    draw(count).map((key) => ({ key, value: s.value }));
  return [
    await compare(
      lab,
      'shm putMany of 100 against redis-benchmark SET -c 1 -P 100',
      atLeast(goal, 'times the throughput'),
      { name: 'farkv', run: () => batchRate(batches(items, 3000, BATCH), (batch) => shm.putMany(batch)) },
      {
        name: 'redis-benchmark',
        run: () =>
          redisBenchmark(redis.port, s.keys.length, 300_000, ['SET', 'user__rand_int__', 'v'.repeat(s.value.length)]),
      },
      'rate',
    ),
  ];
}
