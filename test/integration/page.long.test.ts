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
import { visit } from '../support/browser.js';
import { Cluster } from '../support/cluster.js';
import { ask } from '../support/http.js';
import { patient } from '../support/sdk-clients.js';
import { smallPng } from '../support/small-png.js';
import { KEYS, SteadyLoad } from '../support/steady-load.js';

/** Of the pictures in the documents: what there is to see of a cluster under load takes a while. */
const PICTURED_AFTER_MS = 25_000;
const DESK = { width: 1280, height: 1140 } as const;
const PICTURES = [
  { name: 'monitoring', colorScheme: 'light', size: DESK, fullPage: true },
  { name: 'monitoring-dark', colorScheme: 'dark', size: DESK, fullPage: true },
  { name: 'monitoring-telephone', colorScheme: 'light', size: { width: 360, height: 740 }, fullPage: false },
] as const;

/** On a telephone nothing is wider than the screen, in light and in dark; and by keyboard all that scrolls is reached. */
async function readable(t: ExecutionContext, page: Page): Promise<void> {
  const size = page.viewportSize();
  await page.setViewportSize({ width: 360, height: 740 });
  // Charts take their new width in the next frame.
  await page.waitForFunction(() => document.documentElement.scrollWidth <= window.innerWidth);
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

/**
 * On a telephone, in light and in dark, the line that needs a person is to be read whole: each line of its text lies
 * within its box and the screen, nothing lies over it, and its colour can be told from the one behind it.
 */
async function readsAttention(t: ExecutionContext, page: Page, id: string): Promise<void> {
  const size = page.viewportSize();
  await page.setViewportSize({ width: 360, height: 740 });
  const line = page.locator('#attention li', { hasText: `${id} does not answer: start it again` });
  t.regex((await line.textContent()) ?? '', new RegExp(`; if its machine is lost, farkv member remove ${id}$`));
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const seen = await line.evaluate((item) => {
      // In the same task as the look: the page draws itself anew at each event.
      item.scrollIntoView({ block: 'center', behavior: 'instant' });
      const { top, bottom, left, right } = item.closest('section')?.getBoundingClientRect() ?? new DOMRect();
      const text = document.createRange();
      text.selectNodeContents(item);
      const rows = [...text.getClientRects()];
      const isHit = (x: number, y: number): boolean => item.contains(document.elementFromPoint(x, y));
      const luminance = (colour: string): number => {
        const [r = 0, g = 0, b = 0] = (colour.match(/[\d.]+/g) ?? []).map((one) => {
          const part = Number(one) / 255;
          return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const behind = getComputedStyle(item.closest('section') ?? document.body).backgroundColor;
      const [light = 0, dark = 0] = [getComputedStyle(item).color, behind].map(luminance).sort((a, b) => b - a);
      return {
        rows: rows.length,
        isWithin: rows.every((row) => row.left >= left && row.right <= right && row.top >= top && row.bottom <= bottom),
        isOnScreen: rows.every((row) => row.left >= 0 && row.right <= window.innerWidth),
        isOnTop: rows.every((row) => isHit(row.left + 2, row.top + 2) && isHit(row.right - 2, row.bottom - 2)),
        contrast: (light + 0.05) / (dark + 0.05),
        scrollsSideways: document.documentElement.scrollWidth > window.innerWidth,
        behind,
      };
    });
    t.like(seen, { isWithin: true, isOnScreen: true, isOnTop: true, scrollsSideways: false }, colorScheme);
    t.true(seen.rows > 1, 'it is longer than the screen is wide');
    t.true(seen.contrast >= 4.5, `${colorScheme}: contrast ${seen.contrast}, on ${seen.behind}`);
  }
  await page.setViewportSize(size ?? DESK);
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
  const load = await SteadyLoad.start(await patient(t, cluster.addresses));
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
  await readsAttention(t, page, 's3');
  await pictures(page);
  await load.stop(t);
  t.deepEqual(wrong, []);
  t.deepEqual([...hosts], [at], 'nothing comes from another host');
});

test.serial('on a telephone nothing is cut off where the name of a server is as long as may be', async (t) => {
  const cluster = await Cluster.start(t, { servers: 3, shards: 2, args: ['--http-listen', '127.0.0.1:0'] });
  const long = await cluster.joiner('n'.repeat(63));
  await long.start();
  const { page, wrong } = await visit(t, cluster.server(0).readyLine?.http[0] ?? '');
  await page.locator('#servers tr', { hasText: long.id }).locator('td', { hasText: 'up' }).first().waitFor();
  await long.kill();
  await page.locator('#attention li', { hasText: `${long.id} does not answer` }).waitFor();
  await readsAttention(t, page, long.id);
  t.deepEqual(wrong, []);
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
