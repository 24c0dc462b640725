/** What a PUT costs at each level, three servers and one client. The README's table of levels. */
import { ONE_COPY } from '../demo-cluster.js';
import { copiesMade } from '../copies/status.js';
import { openFarkv, VALUE_BYTES, withStores } from './copied-stores.js';
import type { Lab } from './lab.js';
import { drawing, medianNs, rate } from './loops.js';
import { atLeast, atMost, nanoseconds, part, perSecond, type Part } from './row.js';
import { LIMIT_MS, SEQUENTIAL, SOME } from './rows-durable-put.js';
import { keysOf, valueOf } from './stores.js';
import { median, ratios } from './statistics.js';

const PUTS = 100_000;
const SERVERS = 3;

export interface LevelGoals {
  /** Of `replicated`: times the time of a cache. */
  readonly replicated: number;
  /** Of `--sync 50ms`, which waits for the same servers: times the time of `replicated`, and its throughput. */
  readonly early: { readonly time: number; readonly rate: number };
}

const LEVELS = {
  cache: ONE_COPY,
  replicated: ['--level', 'replicated'],
  'durable --sync 50ms': ['--level', 'durable', '--sync', '50ms'],
  durable: ['--level', 'durable'],
} as const;
type Level = keyof typeof LEVELS;
const NAMES = Object.keys(LEVELS) as Level[];

/** Each round starts its servers: twelve at once would be measured on two processors with nine that do nothing. */
async function once(lab: Lab, level: Level, draw: (count: number) => string[]): Promise<readonly [number, number]> {
  return await withStores(async (undo) => {
    const copied = level === 'cache' ? {} : { copied: copiesMade };
    const shape = { servers: SERVERS, valueBytes: VALUE_BYTES, options: LEVELS[level], ...copied };
    const { client } = await openFarkv(lab, 'tcp', shape, undo);
    const value = valueOf(VALUE_BYTES);
    const put = (key: string): Promise<void> => client.put(key, value);
    await medianNs(draw(SEQUENTIAL / 10), put, 1, LIMIT_MS);
    return [await medianNs(draw(SEQUENTIAL), put, 1, LIMIT_MS), await rate(draw(PUTS), SOME, put, LIMIT_MS)];
  });
}

export async function levelPuts(lab: Lab, goals: LevelGoals): Promise<Part[]> {
  const draw = drawing(keysOf(lab.keys));
  const times = new Map(NAMES.map((name): [Level, number[]] => [name, []]));
  const rates = new Map(NAMES.map((name): [Level, number[]] => [name, []]));
  for (let round = 0; round < lab.rounds; round++)
    for (const name of NAMES) {
      lab.signal.throwIfAborted();
      const [time, some] = await once(lab, name, draw);
      times.get(name)?.push(time);
      rates.get(name)?.push(some);
    }
  const all = (measured: ReadonlyMap<Level, readonly number[]>, show: (value: number) => string): string =>
    NAMES.map((name) => `${name} ${show(median(measured.get(name) ?? []))}`).join(', ');
  const against = (measured: ReadonlyMap<Level, readonly number[]>, one: Level, other: Level): number[] =>
    ratios(measured.get(one) ?? [], measured.get(other) ?? []);
  const early = 'durable --sync 50ms';
  const [alone, some] = ['three servers, one at a time, p50', `three servers, ${SOME} outstanding`];
  return [
    part(
      `${alone}, replicated against a cache`,
      atMost(goals.replicated, 'times a cache'),
      against(times, 'replicated', 'cache'),
      all(times, nanoseconds),
    ),
    part(
      `${alone}, ${early} against replicated`,
      atMost(goals.early.time, 'times replicated'),
      against(times, early, 'replicated'),
      all(times, nanoseconds),
    ),
    part(
      `${some}, ${early} against replicated`,
      atLeast(goals.early.rate, 'times replicated'),
      against(rates, early, 'replicated'),
      all(rates, perSecond),
    ),
  ];
}
