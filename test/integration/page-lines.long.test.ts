/// <reference lib="dom" />
/** How the page shows what there is to say, in a real browser, of statuses that are made up. */
import test from 'ava';
import type { Page } from 'playwright-core';
import type { ClusterStatus } from '../../server/status.js';
import { visitMade } from '../support/made-page.js';
import { drawn, lastValue, noValue, type Line } from '../support/page-charts.js';
import { afterPuts } from '../support/status-after-puts.js';

/** Of the chart, that a point takes at the least; without points there are one or two. */
const POINT_PX = 10;

const BASE = afterPuts(0, 0);
/** Where s2 does not answer, and shards wait. */
const incident = (): ClusterStatus => {
  const [s1] = BASE.members;
  const copies = {
    ...{ inSync: 2, wanted: 2, minInSync: 1 },
    copies: ['s1', 's3'].map((member) => ({ member, state: 'in-sync' })),
  };
  return {
    ...BASE,
    members: [s1, { ...s1, id: 's2', state: 'unreachable', leader: false, node: undefined }, { ...s1, id: 's3' }],
    shards: [
      { shard: 0, owner: 's1', state: 'serving', copies },
      { shard: 1, state: 'unassigned' },
      { shard: 2, state: 'unassigned' },
    ],
  } as unknown as ClusterStatus;
};

/** Options of lines that need a person that are in more than one row, at any width of telephones. */
async function broken(page: Page): Promise<string[]> {
  const found = new Set<string>();
  for (let width = 280; width <= 440; width += 4) {
    await page.setViewportSize({ width, height: 740 });
    const options = await page.evaluate(() =>
      [...document.querySelectorAll('#attention li')].flatMap((item) => {
        const all = document.createTreeWalker(item, NodeFilter.SHOW_TEXT);
        const texts: Node[] = [];
        while (all.nextNode() !== null) texts.push(all.currentNode);
        return texts.flatMap((text) =>
          [...(text.textContent ?? '').matchAll(/--[a-z-]+/g)].map(({ 0: option, index }) => {
            const range = document.createRange();
            range.setStart(text, index);
            range.setEnd(text, index + option.length);
            return { option, rows: new Set([...range.getClientRects()].map(({ top }) => top)).size };
          }),
        );
      }),
    );
    if (options.length === 0) found.add('there is none');
    for (const { option, rows } of options) if (rows !== 1) found.add(`${option} at ${width}`);
  }
  return [...found];
}

test.serial('the page says what is under way, names copies as farkv status does, and breaks no option', async (t) => {
  const { page, wrong } = await visitMade(t, incident);
  await page
    .locator('#under-way li', { hasText: 'shards 1, 2: no server has them yet: the leader waits for servers' })
    .waitFor();
  t.is(await page.locator('#shards tr', { hasText: 'serving' }).locator('td').nth(4).textContent(), '2/2 s1 s3');
  const needed = page.locator('#attention li', {
    hasText: 's2 does not answer: start it again, with its --data-dir, ',
  });
  await needed.waitFor();
  t.deepEqual(await broken(page), []);
  t.deepEqual(wrong, []);
});

test.serial('where there are no GETs there are no READs per GET, and a moment with some is a point', async (t) => {
  const line: Line = { chart: 'reads', name: 'READs per GET' };
  let looks = 0;
  // Clients report now and then.
  const { page, wrong } = await visitMade(t, () => afterPuts(100 * Math.floor(looks++ / 5)));
  t.is(await lastValue(page, line, { least: 1 }), 2);
  await noValue(page, line);
  await lastValue(page, { chart: 'operations', name: 'GETs of clients' }, { most: 0 });
  t.is(await lastValue(page, line, { least: 1 }), 2);
  t.true((await drawn(page, line)) >= POINT_PX);
  t.deepEqual(wrong, []);
});

test.serial('times of the page are those of the browser, whose zone they name', async (t) => {
  let looks = 0;
  const { page, wrong } = await visitMade(t, () => (looks++ === 0 ? { ...incident(), leader: 's3' } : incident()));
  const session = await page.context().newCDPSession(page);
  await session.send('Emulation.setTimezoneOverride', { timezoneId: 'Asia/Kolkata' });
  await page.reload();
  await page.locator('#zone', { hasText: /^times in UTC\+5:30$/ }).waitFor();
  await page.locator('#operations .u-legend', { hasText: /\d\d:\d\d:\d\d UTC\+5:30/ }).waitFor();
  const time = page.locator('#happened time').first();
  const at = new Date((await time.getAttribute('datetime')) ?? '');
  const there = at.toLocaleTimeString('en-GB', { timeZone: 'Asia/Kolkata' });
  t.is(await time.textContent(), there);
  t.deepEqual(wrong, []);
});
