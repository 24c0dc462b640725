/**
 * READs for each GET with a location cache, by the distribution of the keys, over tcp: over shm no location is cached.
 */
import { connect } from '../../client/index.js';
import { ExactZipfianGenerator } from '../ycsb/generators/exact-zipfian.js';
import { ScrambledZipfianGenerator } from '../ycsb/generators/scrambled-zipfian.js';
import { UniformGenerator } from '../ycsb/generators/uniform.js';
import type { Generator } from '../ycsb/generators/generator.js';
import { Random } from '../ycsb/random.js';
import type { Lab } from './lab.js';
import { atMost, interleave, part, type Part } from './row.js';
import { median } from './statistics.js';

const BATCH = 100;
/** GETs before anything is counted, for each key. */
const WARM_UP = 4;
const GETS_A_ROUND = 200_000;

interface Kind {
  readonly title: string;
  /** Of the keys, how many have a place in the cache. */
  readonly cached: number;
  readonly generator: (random: Random, keys: number) => Generator;
}

const uniform = (random: Random, keys: number): Generator => new UniformGenerator(random, 0, keys - 1);
const KINDS: readonly Kind[] = [
  {
    title: 'exact zipfian 0.99, 25 % cached',
    cached: 0.25,
    generator: (random, keys) => new ExactZipfianGenerator(random, 0, keys - 1),
  },
  {
    title: "YCSB's scrambled zipfian, 25 % cached",
    cached: 0.25,
    generator: (random, keys) => new ScrambledZipfianGenerator(random, 0, keys - 1),
  },
  { title: 'uniform, 10 % cached', cached: 0.1, generator: uniform },
  { title: 'uniform, nothing cached', cached: 0, generator: uniform },
];

export async function readsPerGet(lab: Lab, goals: readonly number[]): Promise<Part[]> {
  const s = await lab.stores(1000);
  const { addresses } = await s.cluster();
  const sides = await Promise.all(
    KINDS.map(async (kind) => {
      const client = await connect({
        servers: addresses,
        transport: 'tcp',
        strict: true,
        cachedLocations: Math.floor(kind.cached * lab.keys),
      });
      const chosen = kind.generator(new Random(1), lab.keys);
      const read = async (gets: number): Promise<number> => {
        const before = client.stats();
        for (let i = 0; i < gets; i += BATCH) {
          if (i % 100_000 === 0) lab.signal.throwIfAborted();
          await client.getMany(Array.from({ length: BATCH }, () => s.keys[chosen.next()] ?? ''));
        }
        const after = client.stats();
        // What a responder followed by itself is one request, but two places that were looked at: those are what the
        // cache saves.
        return (after.reads + after.followedReads - before.reads - before.followedReads) / (after.gets - before.gets);
      };
      return { name: kind.title, client, read };
    }),
  );
  try {
    for (const { name, read } of sides) {
      lab.note(`warming up: ${name}`);
      await read(name.endsWith('nothing cached') ? GETS_A_ROUND : WARM_UP * lab.keys);
    }
    const measured = await interleave(
      lab,
      sides.map(({ name, read }) => ({ name, run: () => read(GETS_A_ROUND) })),
    );
    return KINDS.map(({ title, cached }, i) => {
      const detail = `${median(measured[i] ?? []).toFixed(3)} with ${Math.floor(cached * lab.keys).toLocaleString('en')} places for ${lab.keys.toLocaleString('en')} keys`;
      return part(`READs a GET, ${title}`, atMost(goals[i] ?? Number.NaN, 'READs'), measured[i] ?? [], detail);
    });
  } finally {
    await Promise.all(sides.map(({ client }) => client.close()));
  }
}
