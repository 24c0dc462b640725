/**
 * What it costs to be watched: PUTs and GETs of a server whose metrics are asked for each second, against the same
 * server when nobody asks; and what one such answer takes.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { freePorts } from '../../test/support/cluster.js';
import { ONE_COPY } from '../demo-cluster.js';
import { openFarkv, VALUE_BYTES, withStores } from './copied-stores.js';
import type { Lab } from './lab.js';
import { drawing, rate } from './loops.js';
import { totalSeconds } from './processor-time.js';
import { atLeast, atMost, interleave, part, perSecond, type Part } from './row.js';
import { median, ratios } from './statistics.js';
import { keysOf, valueOf } from './stores.js';

const SCRAPER = new URL('./scraper.js', import.meta.url);
/** Three scrapes fall into a round. */
const ROUND_MS = 3000;
/** More than are made in that time. */
const CALLS = 3_000_000;
const OUTSTANDING = 64;
const SCRAPES = 50;

async function whileScraped<T>(url: string, work: () => Promise<T>): Promise<T> {
  const scraper = new Worker(SCRAPER, { workerData: url });
  try {
    await once(scraper, 'message');
    return await work();
  } finally {
    await scraper.terminate();
  }
}

/** Milliseconds of processor time of all threads of the server, beyond what it spends when nobody asks. */
async function processorMs(url: string, pids: readonly number[]): Promise<number> {
  const [began, before] = [performance.now(), totalSeconds(pids)];
  for (let i = 0; i < SCRAPES; i++) await (await fetch(url)).text();
  const [ms, busy] = [performance.now() - began, totalSeconds(pids) - before];
  const idleFrom = totalSeconds(pids);
  await new Promise((resolve) => setTimeout(resolve, ms));
  return ((busy - (totalSeconds(pids) - idleFrom)) * 1000) / SCRAPES;
}

export async function scrapes(lab: Lab, goals: { readonly share: number; readonly ms: number }): Promise<Part[]> {
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
    const parts: Part[] = [];
    for (const [name, call] of kinds) {
      const measure = (): Promise<number> => rate(draw(CALLS), OUTSTANDING, call, ROUND_MS);
      const [scraped = [], alone = []] = await interleave(lab, [
        { name: 'scraped', run: () => whileScraped(url, measure) },
        { name: 'alone', run: measure },
      ]);
      parts.push(
        part(
          `tcp ${name}, ${OUTSTANDING} outstanding, a scrape each second, against none`,
          atLeast(goals.share, 'times the throughput'),
          ratios(scraped, alone),
          `scraped ${perSecond(median(scraped))}, alone ${perSecond(median(alone))}`,
        ),
      );
    }
    const [costs = []] = await interleave(lab, [{ name: 'scrape', run: () => processorMs(url, cluster.pids) }]);
    parts.push(part('processor time of a scrape, all threads', atMost(goals.ms, 'ms'), costs, `${SCRAPES} in a round`));
    return parts;
  });
}
