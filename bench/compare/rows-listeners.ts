/**
 * What calls of the SDK pay for being watched: for the question whether somebody listens (client/call-channel.ts) when
 * nobody does, and for `latencies` of connect(). Processor time of calls over shm, with the same SDK without that.
 */
import { turnsOf, type Turns } from './call-turns.js';
import { CALLS } from './call-loops.js';
import type { Variant } from './client-variants.js';
import type { Lab } from './lab.js';
import { atMost, nanoseconds, part, type Part } from './row.js';
import { median, medianInterval, ratios } from './statistics.js';
import { keyOf } from './stores.js';

/** Where V8 puts the code of a process is chance, and decides over a hundredth. */
const PROCESSES_PER_ROUND = 6;

const TITLES = { getIntoSync: 'shm getIntoSync', get: 'shm await get', getMany: 'shm getMany of 10' } as const;

export async function listeners(lab: Lab, goal: number): Promise<Part[]> {
  const { addresses } = await (await lab.stores(100)).cluster();
  const parts: Part[] = [];
  for (const call of CALLS) {
    const all: Turns[] = [];
    for (let seed = 1; seed <= PROCESSES_PER_ROUND * lab.rounds; seed++) {
      lab.signal.throwIfAborted();
      all.push(await turnsOf(call, addresses[0] ?? '', keyOf(0), seed));
    }
    const against = (a: Variant, b: Variant): number[] => all.map((turns) => median(ratios(turns[a], turns[b])));
    const nsOf = (variant: Variant): string => nanoseconds(median(all.map((turns) => median(turns[variant]))));
    const error = shown(against('again', 'bare'));
    const compared = (what: string, a: Variant, b: Variant, names: readonly [string, string]): Part => {
      const of = against(a, b);
      const detail = [
        `${names[0]} ${nsOf(a)}, ${names[1]} ${nsOf(b)}`,
        `95 % interval ${intervalOf(of)}`,
        `the same code against itself ${error}`,
        `${all.length} processes`,
      ].join('; ');
      return part(`${TITLES[call]}, ${what}`, atMost(goal, 'times the processor time'), of, detail);
    };
    parts.push(
      compared('nobody listens, against calls that do not ask', 'guarded', 'bare', ['asks', 'does not']),
      compared('`latencies`, against none', 'timed', 'guarded', ['with', 'without']),
    );
  }
  return parts;
}

const times = (ratio: number): string => ratio.toFixed(4);

function intervalOf(values: readonly number[]): string {
  const [low, high] = medianInterval(values);
  return `${times(low)} to ${times(high)}`;
}

const shown = (values: readonly number[]): string => `${times(median(values))} (${intervalOf(values)})`;
