/**
 * What calls cost the threads of a server that serve them, while its metrics are asked for and while nobody asks: in
 * turns of a tenth of a second, as processor time, which others on the machine change less than they change throughput.
 * A turn has a scrape, so there are ten a second while there are any: what one a second costs is a tenth of the
 * difference, and is known ten times as well.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../ycsb/random.js';
import type { Lab } from './lab.js';
import { rate } from './loops.js';
import { median, medianInterval, ratios } from './statistics.js';

const TURN_MS = 100;
const GROUPS = 80;
/** After the last answer the threads go to sleep: the kernel then has accounted what they spent (every 4 ms before). */
const SETTLE_MS = 8;
const KINDS = ['alone', 'again', 'scraped'] as const;
type Kind = (typeof KINDS)[number];

const SCRAPES_A_SECOND = 1000 / TURN_MS;

export interface ScrapedTurns {
  /** Times the processor time of a call, with a scrape each second against none: round by round. */
  readonly scraped: readonly number[];
  /** For a person: both sides, the interval, and what turns without scrapes differ by among themselves. */
  readonly detail: string;
}

export interface Work {
  readonly draw: (count: number) => string[];
  readonly outstanding: number;
  readonly call: (key: string) => unknown;
  /** Resolves when the metrics are there. */
  readonly scrape: () => Promise<unknown>;
  /** What the threads have spent so far. */
  readonly seconds: () => number;
}

export async function scrapedTurns(lab: Lab, work: Work): Promise<ScrapedTurns> {
  const { draw, outstanding, call, scrape, seconds } = work;
  const calls = Math.round(((await rate(draw(100_000), outstanding, call)) * TURN_MS) / 1000);
  const random = new Random(1);
  const ns: Record<Kind, number[]> = { alone: [], again: [], scraped: [] };
  const turn = async (kind: Kind): Promise<number> => {
    const keys = draw(calls);
    await sleep(SETTLE_MS);
    const before = seconds();
    const answered = kind === 'scraped' ? scrape() : undefined;
    await rate(keys, outstanding, call);
    await answered;
    await sleep(SETTLE_MS);
    return ((seconds() - before) * 1e9) / calls;
  };
  for (let round = 0; round <= lab.rounds; round++) {
    for (let group = 0; group < GROUPS; group++) {
      lab.signal.throwIfAborted();
      const drawn = KINDS.map((kind) => ({ kind, at: random.below(2 ** 30) })).sort((a, b) => a.at - b.at);
      for (const { kind } of drawn) {
        const spent = await turn(kind);
        if (round > 0) ns[kind].push(spent); // the first is to warm up
      }
    }
  }
  const ofOneASecond = (ratio: number): number => 1 + (ratio - 1) / SCRAPES_A_SECOND;
  const scraped = ratios(ns.scraped, ns.alone).map(ofOneASecond);
  const again = ratios(ns.again, ns.alone).map(ofOneASecond);
  const show = (of: readonly number[]): string =>
    medianInterval(of)
      .map((x) => x.toFixed(4))
      .join(' to ');
  return {
    scraped: Array.from({ length: lab.rounds }, (_, i) => median(scraped.slice(i * GROUPS, (i + 1) * GROUPS))),
    detail: [
      `with ${SCRAPES_A_SECOND} a second ${median(ns.scraped).toFixed(0)} ns, alone ${median(ns.alone).toFixed(0)} ns`,
      `95 % interval ${show(scraped)} of ${scraped.length} groups of turns`,
      `none against none ${median(again).toFixed(4)} (${show(again)})`,
    ].join('; '),
  };
}
