/// <reference lib="dom" />
/**
 * The page in a real browser, which has to be installed: apt-get install chromium. With FARKV_PICTURE=FILE the page under
 * load is written there as it looks at the end: that is how docs/monitoring.png is made.
 */
import test, { type ExecutionContext } from 'ava';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as rest } from 'node:timers/promises';
import { chromium, type Page } from 'playwright-core';
import type { BufferValue, Client } from '../../client/index.js';
import { Cluster } from '../support/cluster.js';
import { ask } from '../support/http.js';
import { patient } from '../support/sdk-clients.js';

const ARGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const MINUTES = 240_000;

const KEYS = 500;
/** Of the picture in the documents: what there is to see of a cluster under load takes a while. */
const PICTURE = { width: 1280, height: 1140, afterMs: 25_000 } as const;

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

interface Visit {
  readonly page: Page;
  /** What went wrong in the browser. */
  readonly wrong: readonly string[];
  /** Hosts that it asked. */
  readonly hosts: ReadonlySet<string>;
}

async function visit(t: ExecutionContext, at: string, password?: string): Promise<Visit> {
  if (spawnSync('chromium', ['--version']).error !== undefined)
    throw new Error('chromium is missing: apt-get install chromium');
  const directory = mkdtempSync(join(tmpdir(), 'farkv-browser-'));
  const context = await chromium.launchPersistentContext(directory, {
    executablePath: '/usr/bin/chromium',
    args: ARGS,
    ...(password === undefined ? {} : { httpCredentials: { username: 'operator', password } }),
  });
  t.teardown(async () => {
    await context.close();
    rmSync(directory, { recursive: true, force: true });
  });
  const page = await context.newPage();
  page.setDefaultTimeout(MINUTES);
  const wrong: string[] = [];
  const hosts = new Set<string>();
  page.on('pageerror', (error) => wrong.push(error.message));
  page.on('console', (line) => {
    if (line.type() === 'error') wrong.push(line.text());
  });
  page.on('request', (request) => hosts.add(new URL(request.url()).host));
  await page.goto(`http://${at}/`);
  return { page, wrong, hosts };
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

/** What stays needed can be selected, and is read aloud once: the line stays the same through two looks. */
async function unchanged(t: ExecutionContext, page: Page): Promise<void> {
  const line = page.locator('#attention li', { hasText: 's3 does not answer' });
  await line.evaluate((item) => item.setAttribute('data-kept', ''));
  for (let looks = 0; looks < 2; looks++)
    await page.evaluate(async () => {
      const servers = document.getElementById('servers');
      if (servers === null) throw new Error('there is no table of servers');
      await new Promise((resolve) => new MutationObserver(resolve).observe(servers, { childList: true }));
    });
  t.is(await page.locator('#attention li[data-kept]').count(), 1);
}

async function picture(page: Page): Promise<void> {
  const path = process.env.FARKV_PICTURE;
  if (path === undefined) return;
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(PICTURE);
  await rest(PICTURE.afterMs);
  await page.evaluate(() => {
    if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
    window.scrollTo(0, 0);
  });
  await page.screenshot({ path, fullPage: true });
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
    .locator('#happened li', { hasText: /^\d\d:\d\d:\d\d(from s3 to s[12]: shard|s3 does not answer)/ })
    .first()
    .waitFor();
  await page
    .locator('#happened li', { hasText: /failover: [12] shards? from s3 to s[12]/ })
    .first()
    .waitFor();
  await unchanged(t, page);
  await picture(page);
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
