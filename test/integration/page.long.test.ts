/// <reference lib="dom" />
/**
 * The page in a real browser. With FARKV_PICTURE=FOLDER pictures of the page under load, as it looks at the end, are
 * written there: that is how docs/monitoring*.png are made.
 */
import test, { type ExecutionContext } from 'ava';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as rest } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import type { BufferValue, Client } from '../../client/index.js';
import { visit } from '../support/browser.js';
import { Cluster } from '../support/cluster.js';
import { ask } from '../support/http.js';
import { patient } from '../support/sdk-clients.js';
import { smallPng } from '../support/small-png.js';

const KEYS = 500;
/** Of the pictures in the documents: what there is to see of a cluster under load takes a while. */
const PICTURED_AFTER_MS = 25_000;
const DESK = { width: 1280, height: 1140 } as const;
const PICTURES = [
  { name: 'monitoring', colorScheme: 'light', size: DESK, fullPage: true },
  { name: 'monitoring-dark', colorScheme: 'dark', size: DESK, fullPage: true },
  { name: 'monitoring-telephone', colorScheme: 'light', size: { width: 360, height: 740 }, fullPage: false },
] as const;

/** Reads and changes values until it is told to stop, with rests: servers and browser need the processors as well. */
class Load {
  #stopped = false;
  readonly #done: Promise<void>;

  constructor(private readonly client: Client<BufferValue, Buffer>) {
    this.#done = this.#run();
  }

  async #run(): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
      const key = `key ${i % KEYS}`;
      await this.client.put(key, '<b>value</b>');
      // A third of them is there.
      for (let n = 0; n < 3; n++) await this.client.get(n === 0 ? key : `${key}, missing ${n}`);
      if (i % 5 === 0) await rest(5);
    }
  }

  async stop(t: ExecutionContext): Promise<void> {
    this.#stopped = true;
    await t.notThrowsAsync(this.#done);
  }
}

/** On a telephone nothing is wider than the screen, in light and in dark; and by keyboard all that scrolls is reached. */
async function readable(t: ExecutionContext, page: Page): Promise<void> {
  const size = page.viewportSize();
  await page.setViewportSize({ width: 360, height: 740 });
  t.true(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), 'it scrolls sideways');
  const backs = new Set<string>();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    backs.add(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
  }
  t.is(backs.size, 2);
  const reached = new Set<string>();
  for (let i = 0; i < 8; i++) {
    await page.keyboard.press('Tab');
    reached.add(await page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? ''));
  }
  for (const name of ['Servers', 'Shards', 'Moves', 'What happened']) t.true(reached.has(name), name);
  await page.setViewportSize(size ?? { width: 1280, height: 720 });
}

/** The table of servers is made anew with each look. */
async function nextLook(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const servers = document.getElementById('servers');
    if (servers === null) throw new Error('there is no table of servers');
    await new Promise((resolve) => new MutationObserver(resolve).observe(servers, { childList: true }));
  });
}

/** What stays needed can be selected, and is read aloud once: the line stays the same through two looks. */
async function unchanged(t: ExecutionContext, page: Page): Promise<void> {
  const line = page.locator('#attention li', { hasText: 's3 does not answer' });
  await line.evaluate((item) => item.setAttribute('data-kept', ''));
  for (let looks = 0; looks < 2; looks++) await nextLook(page);
  t.is(await page.locator('#attention li[data-kept]').count(), 1);
}

async function pictures(page: Page): Promise<void> {
  const folder = process.env.FARKV_PICTURE;
  if (folder === undefined) return;
  await rest(PICTURED_AFTER_MS);
  const taken: Buffer[] = [];
  for (const { colorScheme, size, fullPage } of PICTURES) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(size);
    await page.evaluate(() => {
      if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
      window.scrollTo(0, 0);
    });
    await nextLook(page);
    taken.push(await page.screenshot({ fullPage }));
  }
  // Packing them holds up the load.
  for (const [i, png] of taken.entries()) writeFileSync(join(folder, `${PICTURES[i]?.name ?? i}.png`), smallPng(png));
}

test.serial('the page shows a cluster under load, and says that a server was killed', async (t) => {
  const cluster = await Cluster.start(t, {
    servers: 3,
    shards: 6,
    args: ['--http-listen', '127.0.0.1:0', '--owner-lease-ms', '4000'],
  });
  const client = await patient(t, cluster.addresses);
  for (let i = 0; i < KEYS; i++) await client.put(`key ${i}`, '<b>value</b>');
  const load = new Load(client);
  const at = cluster.server(0).readyLine?.http[0] ?? '';
  const { page, wrong, hosts } = await visit(t, at);
  await page.locator('#facts', { hasText: '6 of 6 served' }).waitFor();
  await page.locator('#facts', { hasText: String(KEYS) }).waitFor();
  await page.locator('#facts', { hasText: /GETs\s*[1-9][\d,]*\/s, 3\d % hits/ }).waitFor();
  t.is(await page.locator('#servers tbody tr').count(), 3);
  t.is(await page.locator('#shards tbody tr').count(), 6);
  t.is(await page.locator('canvas').count(), 4);
  t.is(await page.locator('#picture article').count(), 3);
  await page.locator('#picture:not(:has(.joining)):not(:has(.closed))').waitFor();
  t.is(await page.locator('#picture .primary').count(), 6, 'each shard has one owner');
  t.is(await page.locator('#picture .backup').count(), 6, 'and one copy more');
  await readable(t, page);
  await cluster.server(2).kill();
  await page.locator('#picture .gone', { hasText: 's3' }).waitFor();
  await page.locator('#attention li', { hasText: 's3 does not answer: start it again' }).waitFor();
  await page.locator('#health', { hasText: 'needs attention' }).waitFor();
  await page.locator('#servers tr', { hasText: 's3' }).locator('td', { hasText: 'unreachable' }).waitFor();
  await page
    .locator('#happened li', { hasText: /^\d\d:\d\d:\d\ds3 does not answer/ })
    .first()
    .waitFor();
  await page
    .locator('#happened li', {
      hasText: /failover: shards? [\d, ]+ from s3 to s[12], since s3 did not answer: with all values/,
    })
    .first()
    .waitFor();
  await unchanged(t, page);
  await pictures(page);
  await load.stop(t);
  t.deepEqual(wrong, []);
  t.deepEqual([...hosts], [at], 'nothing comes from another host');
});

test.serial(
  'a browser with the token of a monitor is let in, and what the page loads needs no inline script',
  async (t) => {
    const cluster = await Cluster.start(t, {
      shards: 2,
      args: ['--http-listen', '127.0.0.1:0', '--token', 'writer', '--monitor-token', 'watch'],
    });
    const at = cluster.server(0).readyLine?.http[0] ?? '';
    const { page, wrong } = await visit(t, at, 'watch');
    await page.locator('#health', { hasText: 'all shards are served' }).waitFor();
    t.deepEqual(wrong, []);
    const { text, headers } = await ask(at, '/', { auth: 'any:watch' });
    t.notRegex(text, /<script>|\son\w+=|https?:\/\//);
    t.regex(String(headers['content-security-policy']), /script-src 'self'; style-src 'self'/);
  },
);
