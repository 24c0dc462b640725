/**
 * The report's charts as SVG: what all are drawn with, and latency curves over percentiles; bars.ts has the others.
 * Pure. Colours are CSS variables of the page (report-page.ts), so that both follow light and dark.
 */
import { formatDuration } from '../../server/config/units.js';
import type { Curve } from './curves.js';
import { PERCENTILES } from './curves.js';

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
export const escaped = (text: string): string => text.replace(/[&<>"']/g, (c) => ENTITIES[c] ?? c);

export const WIDTH = 960;
export const round = (value: number): string => String(Math.round(value * 10) / 10);
export const text = (x: number, y: number, content: string, more = ''): string =>
  `<text x="${round(x)}" y="${round(y)}"${more}>${escaped(content)}</text>`;
export const rule = (x1: number, y1: number, x2: number, y2: number, name: string): string =>
  `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" class="${name}"/>`;

export function svg(height: number, title: string, content: readonly string[]): string {
  return `<svg viewBox="0 0 ${WIDTH} ${round(height)}" role="img" aria-label="${escaped(title)}">\n${content.join('\n')}\n</svg>`;
}

/** Labels at these heights, moved apart so that none covers another. */
function apart(heights: readonly number[], least: number): number[] {
  const order = heights.map((_, i) => i).sort((a, b) => (heights[a] ?? 0) - (heights[b] ?? 0));
  const placed = [...heights];
  for (const [n, i] of order.entries()) {
    const above = order[n - 1];
    if (above !== undefined) placed[i] = Math.max(placed[i] ?? 0, (placed[above] ?? 0) + least);
  }
  return placed;
}

/** Both axes are logarithmic: up the time, to the right the part of the GETs that took longer. */
export function latencyChart(curves: readonly Curve[]): string {
  const [left, right, top, bottom] = [64, WIDTH - 190, 16, 400];
  const all = curves.flatMap((c) => c.ns).filter((ns) => ns > 0);
  const low = Math.floor(Math.log10(Math.min(...all)) * 2) / 2;
  const high = Math.max(low + 0.5, Math.ceil(Math.log10(Math.max(...all)) * 2) / 2);
  const x = (p: number): number => left + ((right - left) * -Math.log10(1 - p)) / 4;
  const y = (ns: number): number => bottom - ((bottom - top) * (Math.log10(Math.max(ns, 1)) - low)) / (high - low);
  const out: string[] = [];
  for (let decade = Math.floor(low); decade <= Math.ceil(high); decade++) {
    for (const step of [1, 2, 5]) {
      const ns = step * 10 ** decade;
      if (Math.log10(ns) < low - 1e-9 || Math.log10(ns) > high + 1e-9) continue;
      out.push(rule(left, y(ns), right, y(ns), step === 1 ? 'grid' : 'grid faint'));
      out.push(text(left - 8, y(ns) + 4, formatDuration(ns), ' text-anchor="end" class="tick"'));
    }
  }
  for (const [p, label] of [
    [0, 'fastest'],
    [0.5, '50 %'],
    [0.9, '90 %'],
    [0.99, '99 %'],
    [0.999, '99.9 %'],
    [0.9999, '99.99 %'],
  ] as const) {
    out.push(
      rule(x(p), top, x(p), bottom, 'grid faint'),
      text(x(p), bottom + 20, label, ' text-anchor="middle" class="tick"'),
    );
  }
  out.push(
    text((left + right) / 2, bottom + 44, 'GETs that were at least as fast', ' text-anchor="middle" class="tick"'),
  );
  const labels = apart(
    curves.map(({ ns }) => y(ns.at(-1) ?? 1)),
    34,
  );
  for (const [i, { name, ns }] of curves.entries()) {
    const points = ns.map((v, k) => `${round(x(PERCENTILES[k] ?? 0))},${round(y(v))}`).join(' ');
    const half = ns[PERCENTILES.indexOf(0.5)] ?? 0;
    out.push(`<polyline points="${points}" class="curve s${i}"/>`);
    out.push(
      `<circle cx="${round(x(0.5))}" cy="${round(y(half))}" r="4" class="dot s${i}"><title>${escaped(name)}: p50 ${formatDuration(half)}</title></circle>`,
    );
    out.push(text(right + 12, (labels[i] ?? 0) + 1, name, ` class="name s${i}"`));
    out.push(
      text(
        right + 12,
        (labels[i] ?? 0) + 16,
        `p50 ${formatDuration(half)}, p99 ${formatDuration(ns[PERCENTILES.indexOf(0.99)] ?? 0)}`,
        ' class="tick"',
      ),
    );
  }
  return svg(Math.max(bottom + 56, Math.max(...labels) + 28), 'Latency of a GET by percentile, for each store', out);
}
