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
import { threadsSeconds, totalSeconds } from './processor-time.js';
import { atLeast, atMost, interleave, part, perSecond, type Part } from './row.js';
import { median, ratios } from './statistics.js';
import { keysOf, valueOf } from './stores.js';

const SCRAPER = new URL('./scraper.js', import.meta.url);
/** A turn with a scrape, and one without, follow each other so many times in a round: both have the same neighbours. */
const TURNS = 6;
const TURN_MS = 1000;
/** More than are made in that time. */
const CALLS = 1_000_000;
const OUTSTANDING = 64;
const SCRAPES = 50;
/** Names of its threads (native/dataplane/loop.c). */
const DATA_PLANE = 'farkv-data';

/** Milliseconds of what the server spends on an answer, beyond what it spends in that time when nobody asks. */
async function costMs(url: string, seconds: () => number): Promise<number> {
  const [began, before] = [performance.now(), seconds()];
  for (let i = 0; i < SCRAPES; i++) await (await fetch(url)).text();
  const [ms, busy] = [performance.now() - began, seconds() - before];
  const idleFrom = seconds();
  await new Promise((resolve) => setTimeout(resolve, ms));
  return ((busy - (seconds() - idleFrom)) * 1000) / SCRAPES;
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
    const scraper = new Worker(SCRAPER, { workerData: url });
    undo(() => scraper.terminate());
    const parts: Part[] = [];
    for (const [name, call] of kinds) {
      const measure = (): Promise<number> => rate(draw(CALLS), OUTSTANDING, call, TURN_MS);
      const [scraped, alone]: [number[], number[]] = [[], []];
      for (let round = 0; round <= lab.rounds; round++) {
        let [withScrape, without] = [0, 0];
        for (let turn = 0; turn < TURNS; turn++) {
          lab.signal.throwIfAborted();
          without += await measure();
          const answered = once(scraper, 'message');
          scraper.postMessage('scrape');
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
    }
    const { pids } = cluster;
    const [all = [], data = []] = await interleave(lab, [
      { name: 'all', run: () => costMs(url, () => totalSeconds(pids)) },
      {
        name: 'data plane',
        run: () => costMs(url, () => pids.reduce((sum, pid) => sum + threadsSeconds(pid, DATA_PLANE), 0)),
      },
    ]);
    const detail = `${SCRAPES} answers a round`;
    parts.push(part('processor time of a scrape, all threads', atMost(goals.ms, 'ms'), all, detail));
    parts.push(part('of that the data plane', atMost(1000 * (1 - goals.share), 'ms (1 % of a second)'), data, detail));
    return parts;
  });
}
