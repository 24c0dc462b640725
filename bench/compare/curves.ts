/**
 * Latency curves: `await get` of 1,000 B, one at a time, of every store through its client, in turn, as percentiles.
 * For the report.
 */
import type { Lab } from './lab.js';
import { drawing, latenciesNs } from './loops.js';
import type { Program } from './peers.js';
import { quantileOfSorted } from './statistics.js';

export interface Curve {
  readonly name: string;
  /** Nanoseconds at each of PERCENTILES. */
  readonly ns: readonly number[];
}

/** Fractions of the GETs that were at least as fast; the last is one in ten thousand. */
export const PERCENTILES: readonly number[] = [
  0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9998, 0.9999,
];
export const CURVES = 'latency-curves';
export const CURVES_NEED: readonly Program[] = ['redis-server', 'memcached'];
const GETS = 20_000;

export async function latencyCurves(lab: Lab): Promise<Curve[]> {
  const s = await lab.stores(1000);
  const [shm, tcp, redis, memcached, lmdb] = [
    await s.shm(),
    await s.tcp(),
    (await s.redis()).client,
    (await s.memcached()).client,
    await s.lmdb(),
  ];
  const sides: readonly { readonly name: string; readonly get: (key: string) => unknown }[] = [
    { name: 'farkv shm', get: (key) => shm.get(key) },
    { name: 'farkv tcp', get: (key) => tcp.get(key) },
    { name: 'ioredis', get: (key) => redis.getBuffer(key) },
    { name: 'memcached', get: (key) => memcached.get(key) },
    { name: 'lmdb', get: (key) => lmdb.getBinary(key) },
  ];
  const all = sides.map(({ name, get }) => ({
    name,
    get,
    draw: drawing(s.keys),
    times: new Float64Array(lab.rounds * GETS),
  }));
  for (let round = 0; round <= lab.rounds; round++) {
    for (const { get, draw, times } of all) {
      lab.signal.throwIfAborted();
      const some = await latenciesNs(draw(GETS), get);
      // The first round is a warm-up.
      if (round > 0) times.set(some, (round - 1) * GETS);
    }
  }
  return all.map(({ name, times }) => {
    times.sort();
    return { name, ns: PERCENTILES.map((p) => quantileOfSorted(times, p)) };
  });
}
