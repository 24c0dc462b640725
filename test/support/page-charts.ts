/// <reference lib="dom" />
/** The charts of the page (server/http/page/charts.ts), as their readers have them: the legends, the pictures and their names. */
import type { Page } from 'playwright-core';

export interface Line {
  /** The id of its chart's box. */
  readonly chart: 'operations' | 'reads' | 'latency' | 'memory';
  /** As the legend has it. */
  readonly name: string;
}
const SERIES = '.u-series';
/** As high as a line at 0 is. */
const ZERO_PX = 3;

/** Until the legend has a value of this line that is in the range. Resolves with it. */
export async function lastValue(
  page: Page,
  { chart, name }: Line,
  { least = 0, most = Infinity }: { readonly least?: number; readonly most?: number },
): Promise<number> {
  const found = await page.waitForFunction(
    ([rows, label, from, to]) => {
      const row = [...document.querySelectorAll(rows)].find(
        (one) => one.querySelector('.u-label')?.textContent === label,
      );
      const text = row?.querySelector('td')?.textContent ?? '';
      const value = Number(text.replaceAll(',', ''));
      return text !== '' && value >= from && value <= (to ?? Infinity) ? { value } : undefined;
    },
    [`#${chart} ${SERIES}`, name, least, most === Infinity ? undefined : most] as const,
  );
  const { value = NaN } = (await found.jsonValue()) ?? {};
  return value;
}

/** Until the legend has no value of this line. */
export async function noValue(page: Page, { chart, name }: Line): Promise<void> {
  await page
    .locator(`#${chart} ${SERIES}`, { has: page.getByText(name, { exact: true }) })
    .locator('td', { hasText: /^-$/ })
    .waitFor();
}

/** What the name of a chart's picture says, once the chart has so many moments. */
export async function inWords(page: Page, chart: Line['chart'], least: number): Promise<string> {
  const found = await page.waitForFunction(
    ([canvas, from]) => {
      const words = document.querySelector(canvas)?.getAttribute('aria-label') ?? '';
      return Number(/: (\d+) moments/.exec(words)?.[1]) >= from ? words : undefined;
    },
    [`#${chart} canvas[role=img]`, least] as const,
  );
  return (await found.jsonValue()) ?? '';
}

/** The highest value of a line that these words have; NaN: none. */
export const highestIn = (words: string, name: string): number =>
  Number(new RegExp(`(?:Highest: |; )${name} ([\\d,.]+)`).exec(words)?.[1]?.replaceAll(',', ''));

/** How many pixels of a picture have the colour of this line, above that of 0; on a logarithmic scale 0 is not drawn. */
export async function drawn(page: Page, { chart, name }: Line): Promise<number> {
  const series = page.locator(`#${chart} ${SERIES}`, { has: page.getByText(name, { exact: true }) });
  return await series.evaluate(
    (row, zero) => {
      const colour = getComputedStyle(row.querySelector('.u-marker') ?? row).borderTopColor;
      const parts = (colour.match(/\d+/g) ?? []).map(Number);
      const plot = row.closest('.uplot');
      const canvas = plot?.querySelector('canvas');
      const context = canvas?.getContext('2d');
      if (canvas === null || canvas === undefined || context === null || context === undefined) return 0;
      const [whole, inner] = [canvas, plot?.querySelector('.u-over') ?? canvas].map((of) => of.getBoundingClientRect());
      const height = (inner?.bottom ?? 0) - zero - (whole?.top ?? 0);
      const pixels = context.getImageData(0, 0, canvas.width, height * devicePixelRatio).data;
      let found = 0;
      for (let i = 0; i < pixels.length; i += 4)
        if (parts.every((part, n) => Math.abs((pixels[i + n] ?? 0) - part) < 24)) found += 1;
      return found;
    },
    chart === 'latency' ? 0 : ZERO_PX,
  );
}
