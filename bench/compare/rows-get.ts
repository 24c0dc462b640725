/**
 * GETs: over shm against lmdb, the C loop and ioredis; over tcp against ioredis and redis-benchmark; both against
 * memcached; and with ten times as many keys.
 */
import { connect } from '../../client/index.js';
import { DemoCluster, ONE_COPY } from '../demo-cluster.js';
import { Random } from '../ycsb/random.js';
import type { Lab } from './lab.js';
import { batches, batchRate, drawing, drawingNumbers, meanNs, medianNs, rate } from './loops.js';
import { redisBenchmark } from './peers.js';
import { atLeast, atMost, compare, interleave, nanoseconds, part, perSecond, type Part, type Side } from './row.js';
import { median, ratios } from './statistics.js';
import { inParts, keyOf, memoryFor, valueOf, type FarkvClient } from './stores.js';

const GETS = 300_000;
const SEQUENTIAL = 30_000;
const BATCH = 100;

type Draw = (count: number) => string[];

export async function getIntoAgainstLmdb(lab: Lab, goal: number): Promise<Part[]> {
  const s = await lab.stores(1000);
  const [shm, lmdb] = [await s.shm(), await s.lmdb()];
  const target = Buffer.alloc(s.value.length + 64);
  const [ours, theirs] = [drawing(s.keys), drawing(s.keys)];
  return [
    await compare(
      lab,
      'shm getInto against lmdb getBinaryFast',
      atLeast(goal, 'times faster'),
      { name: 'farkv', run: () => meanNs(ours(GETS), (key) => shm.getInto(key, target)) },
      { name: 'lmdb', run: () => meanNs(theirs(GETS), (key) => lmdb.getBinaryFast(key)) },
      'time',
    ),
  ];
}

export async function getIntoAgainstC(lab: Lab, goal: number): Promise<Part[]> {
  const s = await lab.stores(1000);
  const [shm, loop] = [await s.shm(), await s.regionLoop()];
  const target = Buffer.alloc(s.value.length + 64);
  const [draw, order] = [drawing(s.keys), drawingNumbers(s.keys.length)];
  const [ours = [], floor = []] = await interleave(lab, [
    { name: 'farkv', run: () => meanNs(draw(GETS), (key) => shm.getInto(key, target)) },
    { name: 'C loop', run: () => loop.plainNs(order(GETS)) },
  ]);
  return [
    part(
      'shm getInto against the C loop',
      atMost(goal, 'times its time'),
      ratios(ours, floor),
      `farkv ${nanoseconds(median(ours))}, C loop ${nanoseconds(median(floor))}`,
    ),
  ];
}

/** Batches of 100 keys, 100 B, a key, against the C loop over the same keys. */
async function batchAgainstC(
  lab: Lab,
  goal: number,
  call: string,
  get: (shm: FarkvClient, keys: readonly string[]) => Promise<unknown>,
): Promise<Part[]> {
  const s = await lab.stores(100);
  const [shm, loop] = [await s.shm(), await s.regionLoop()];
  const [draw, order] = [drawing(s.keys), drawingNumbers(s.keys.length)];
  const [ours = [], floor = []] = await interleave(lab, [
    {
      name: 'farkv',
      run: async () => 1e9 / (await batchRate(batches(draw, GETS / BATCH, BATCH), (keys) => get(shm, keys))),
    },
    { name: 'C loop', run: () => loop.plainNs(order(GETS)) },
  ]);
  const detail = `farkv ${nanoseconds(median(ours))} a key, C loop ${nanoseconds(median(floor))}`;
  return [
    part(`shm ${call} of 100 against the C loop, a key`, atLeast(goal, 'times as fast'), ratios(floor, ours), detail),
  ];
}

export function getManyAgainstC(lab: Lab, goal: number): Promise<Part[]> {
  return batchAgainstC(lab, goal, 'getMany', (shm, keys) => shm.getMany(keys));
}

/** Into the caller's memory, which is the same for every batch. */
export function getManyIntoAgainstC(lab: Lab, goal: number): Promise<Part[]> {
  const [target, spans] = [Buffer.alloc(64 * 1024), new Uint32Array(2 * BATCH)];
  return batchAgainstC(lab, goal, 'getManyInto', async (shm, keys) => await shm.getManyInto(keys, target, spans));
}

export async function sequentialGet(lab: Lab, transport: 'shm' | 'tcp', goal: number): Promise<Part[]> {
  const s = await lab.stores(1000);
  const [client, redis] = [await s[transport](), (await s.redis()).client];
  const [ours, theirs] = [drawing(s.keys), drawing(s.keys)];
  return [
    await compare(
      lab,
      `${transport} await get, one at a time, p50, against ioredis`,
      atLeast(goal, 'times lower'),
      { name: 'farkv', run: () => medianNs(ours(SEQUENTIAL), (key) => client.get(key)) },
      { name: 'ioredis', run: () => medianNs(theirs(SEQUENTIAL), (key) => redis.getBuffer(key)) },
      'time',
    ),
  ];
}

/**
 * 100 GETs outstanding against ioredis; with a second goal getMany of 100 against redis-benchmark with a pipeline of
 * 100.
 */
export async function tcpThroughput(lab: Lab, goal: number, manyGoal?: number): Promise<Part[]> {
  const s = await lab.stores(1000);
  const [tcp, redis] = [await s.tcp(), await s.redis()];
  const [ours, theirs] = [drawing(s.keys), drawing(s.keys)];
  const parts = [
    await compare(
      lab,
      'tcp get, 100 outstanding, against ioredis',
      atLeast(goal, 'times the throughput'),
      { name: 'farkv', run: () => rate(ours(200_000), BATCH, (key) => tcp.get(key)) },
      { name: 'ioredis', run: () => rate(theirs(200_000), BATCH, (key) => redis.client.getBuffer(key)) },
      'rate',
    ),
  ];
  if (manyGoal !== undefined) {
    parts.push(
      await compare(
        lab,
        'tcp getMany of 100 against redis-benchmark GET -c 1 -P 100',
        atLeast(manyGoal, 'times the throughput'),
        { name: 'farkv', run: () => batchRate(batches(ours, 2000, BATCH), (keys) => tcp.getMany(keys)) },
        {
          name: 'redis-benchmark',
          run: () => redisBenchmark(redis.peer.port, s.keys.length, 200_000, ['GET', 'user__rand_int__']),
        },
        'rate',
      ),
    );
  }
  return parts;
}

/**
 * The same two questions to memcached, which has no goal of its own: farkv over either transport is to be ahead of it.
 */
async function againstMemcached(
  lab: Lab,
  how: string,
  unit: string,
  what: 'time' | 'rate',
  measure: (draw: Draw, get: (key: string) => unknown) => Promise<number>,
): Promise<Part[]> {
  const s = await lab.stores(1000);
  const [shm, tcp, memcached] = [await s.shm(), await s.tcp(), (await s.memcached()).client];
  const side = (name: string, get: (key: string) => unknown): Side => {
    const draw = drawing(s.keys);
    return { name, run: () => measure(draw, get) };
  };
  const [overShm = [], overTcp = [], theirs = []] = await interleave(lab, [
    side('shm', (key) => shm.get(key)),
    side('tcp', (key) => tcp.get(key)),
    side('memcached', (key) => memcached.get(key)),
  ]);
  const show = what === 'time' ? nanoseconds : perSecond;
  return (
    [
      ['shm', overShm],
      ['tcp', overTcp],
    ] as const
  ).map(([transport, ours]) =>
    part(
      `${transport} ${how}, against memcached`,
      atLeast(1, unit),
      what === 'time' ? ratios(theirs, ours) : ratios(ours, theirs),
      `farkv ${show(median(ours))}, memcached ${show(median(theirs))}`,
    ),
  );
}

export function sequentialGetAgainstMemcached(lab: Lab): Promise<Part[]> {
  return againstMemcached(lab, 'await get, one at a time, p50', 'times lower', 'time', (draw, get) =>
    medianNs(draw(SEQUENTIAL), get),
  );
}

export function throughputAgainstMemcached(lab: Lab): Promise<Part[]> {
  return againstMemcached(lab, 'get, 100 outstanding', 'times the throughput', 'rate', (draw, get) =>
    rate(draw(200_000), BATCH, get),
  );
}

/** One at a time over shm, 100 B: a table of ten times the keys beside that of the other rows. */
export async function getOfTenTimesTheKeys(lab: Lab, goal: number): Promise<Part[]> {
  const s = await lab.stores(100);
  const small = await s.shm();
  const count = 10 * lab.keys;
  lab.note(`starting farkv (${count.toLocaleString('en')} records of 100 B)`);
  const cluster = await DemoCluster.start(
    lab.servers,
    `${Math.ceil(memoryFor(count, 100) / lab.servers)}b`,
    lab.signal,
    ONE_COPY,
  );
  try {
    const large = await connect({ servers: cluster.addresses, transport: 'shm', strict: true });
    const value = valueOf(100);
    await inParts(count, lab.signal, (numbers) => large.putMany(numbers.map((i) => ({ key: keyOf(i), value }))));
    // The keys of both sides are made when they are drawn: ten million texts would take the caches that are to be
    // measured.
    const side = (name: string, client: FarkvClient, keys: number): Side => {
      const random = new Random(1);
      const draw = (): string[] => Array.from({ length: SEQUENTIAL }, () => keyOf(random.below(keys)));
      return { name, run: () => medianNs(draw(), (key) => client.get(key)) };
    };
    const [many = [], few = []] = await interleave(lab, [side('large', large, count), side('small', small, lab.keys)]);
    await large.close();
    const detail = `${count.toLocaleString('en')} keys ${nanoseconds(median(many))}, ${lab.keys.toLocaleString('en')} keys ${nanoseconds(median(few))}`;
    return [
      part('shm await get, p50, with ten times the keys', atMost(goal, 'times the time'), ratios(many, few), detail),
    ];
  } finally {
    await cluster.stop();
  }
}
