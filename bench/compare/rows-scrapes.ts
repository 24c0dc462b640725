/**
 * What it costs to be watched: PUTs and GETs of a server whose metrics are asked for each second, against the same
 * server when nobody asks; and what one such answer takes.
 */
import { fileURLToPath } from 'node:url';
import { freePorts } from '../../test/support/cluster.js';
import { ONE_COPY } from '../demo-cluster.js';
import { openFarkv, VALUE_BYTES, withStores } from './copied-stores.js';
import type { Lab } from './lab.js';
import { LineProcess } from './line-process.js';
import { drawing, rate } from './loops.js';
import { threadsSeconds, totalSeconds } from './processor-time.js';
import { atLeast, atMost, interleave, part, perSecond, type Part } from './row.js';
import { scrapedTurns } from './scraped-turns.js';
import { median, ratios } from './statistics.js';
import { keysOf, valueOf } from './stores.js';

const SCRAPER = fileURLToPath(new URL('./scraper.js', import.meta.url));
/** A turn with a scrape, and one without, follow each other so many times in a round: both have the same neighbours. */
const TURNS = 6;
const TURN_MS = 1000;
/** More than are made in that time. */
const CALLS = 1_000_000;
const OUTSTANDING = 64;
const SCRAPES = 50;
/** Names of its threads (native/serve/loop.c), and of that which answers READs over tcp. */
const DATA_PLANE = 'farkv-data';
const RESPONDER = 'farkv-tcp';

/** Of all threads of the servers whose names begin so. */
const secondsOf = (pids: readonly number[], ...names: readonly string[]): number =>
  pids.reduce((sum, pid) => names.reduce((more, name) => more + threadsSeconds(pid, name), sum), 0);

/** Milliseconds of what the server spends on an answer, beyond what it spends in that time when nobody asks. */
async function costMs(url: string, seconds: () => number): Promise<number> {
  const [began, before] = [performance.now(), seconds()];
  for (let i = 0; i < SCRAPES; i++) await (await fetch(url)).text();
  const [ms, busy] = [performance.now() - began, seconds() - before];
  const idleFrom = seconds();
  await new Promise((resolve) => setTimeout(resolve, ms));
  return ((busy - (seconds() - idleFrom)) * 1000) / SCRAPES;
}

export interface ScrapeGoals {
  /** Of the throughput without scrapes. */
  readonly share: number;
  /** Times the processor time without scrapes. */
  readonly time: number;
  /** Of all threads, a scrape. */
  readonly ms: number;
}

export async function scrapes(lab: Lab, goals: ScrapeGoals): Promise<Part[]> {
  return await withStores(async (undo) => {
    const [port = 0] = await freePorts(1);
    const url = `http://127.0.0.1:${port}/metrics`;
    const options = [...ONE_COPY, '--http-listen', `127.0.0.1:${port}`];
    const { cluster, client } = await openFarkv(lab, 'tcp', { servers: 1, valueBytes: VALUE_BYTES, options }, undo);
    const [value, draw] = [valueOf(VALUE_BYTES), drawing(keysOf(lab.keys))];
    const kinds = [
      ['put', (key: string) => client.put(key, value)],
      ['get', (key: string) => client.get(key)],
    ] as const;
    const { pids } = cluster;
    const scraper = new LineProcess(process.execPath, [SCRAPER, url]);
    undo(() => scraper.stop());
    await scraper.heard();
    const scrape = (): Promise<string> => scraper.ask('scrape');
    const parts: Part[] = [];
    for (const [name, call] of kinds) {
      const measure = (): Promise<number> => rate(draw(CALLS), OUTSTANDING, call, TURN_MS);
      const [scraped, alone]: [number[], number[]] = [[], []];
      for (let round = 0; round <= lab.rounds; round++) {
        let [withScrape, without] = [0, 0];
        for (let turn = 0; turn < TURNS; turn++) {
          lab.signal.throwIfAborted();
          without += await measure();
          const answered = scrape();
          withScrape += await measure();
          await answered;
        }
        if (round === 0) continue; // to warm up
        scraped.push(withScrape / TURNS);
        alone.push(without / TURNS);
      }
      parts.push(
        part(
          `tcp ${name}, ${OUTSTANDING} outstanding, a scrape each second, against none`,
          atLeast(goals.share, 'times the throughput'),
          ratios(scraped, alone),
          `scraped ${perSecond(median(scraped))}, alone ${perSecond(median(alone))}`,
        ),
      );
      const seconds = (): number => secondsOf(pids, DATA_PLANE, RESPONDER);
      const turns = await scrapedTurns(lab, { draw, outstanding: OUTSTANDING, call, scrape, seconds });
      parts.push(
        part(
          `tcp ${name}, processor time of the threads that serve it, a scrape each second, against none`,
          atMost(goals.time, 'times'),
          turns.scraped,
          turns.detail,
        ),
      );
    }
    const [all = [], data = []] = await interleave(lab, [
      { name: 'all', run: () => costMs(url, () => totalSeconds(pids)) },
      { name: 'data plane', run: () => costMs(url, () => secondsOf(pids, DATA_PLANE)) },
    ]);
    const detail = `${SCRAPES} answers a round`;
    parts.push(part('processor time of a scrape, all threads', atMost(goals.ms, 'ms'), all, detail));
    parts.push(part('of that the data plane', atMost(1000 * (1 - goals.share), 'ms (1 % of a second)'), data, detail));
    return parts;
  });
}
