/**
 * The report's charts as SVG: latency curves over percentiles, and a bar for each figure against its goal. Pure. Colours are CSS variables of the
 * page (report-page.ts), so that both follow light and dark.
 */
import type { Curve } from './curves.js';
import { PERCENTILES } from './curves.js';
import { goalText, measuredText } from './report.js';
import { progress, type Part } from './row.js';

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
export const escaped = (text: string): string => text.replace(/[&<>"']/g, (c) => ENTITIES[c] ?? c);

const WIDTH = 960;
const round = (value: number): string => String(Math.round(value * 10) / 10);
const text = (x: number, y: number, content: string, more = ''): string => `<text x="${round(x)}" y="${round(y)}"${more}>${escaped(content)}</text>`;
const rule = (x1: number, y1: number, x2: number, y2: number, name: string): string =>
  `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" class="${name}"/>`;

function svg(height: number, title: string, content: readonly string[]): string {
  return `<svg viewBox="0 0 ${WIDTH} ${round(height)}" role="img" aria-label="${escaped(title)}">\n${content.join('\n')}\n</svg>`;
}

export function duration(ns: number): string {
  const [value, unit] = ns < 1000 ? [ns, 'ns'] : ns < 1e6 ? [ns / 1000, 'µs'] : ns < 1e9 ? [ns / 1e6, 'ms'] : [ns / 1e9, 's'];
  return `${value >= 100 ? value.toFixed(0) : Number(value.toPrecision(3))} ${unit}`;
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
      out.push(text(left - 8, y(ns) + 4, duration(ns), ' text-anchor="end" class="tick"'));
    }
  }
  for (const [p, label] of [[0, 'fastest'], [0.5, '50 %'], [0.9, '90 %'], [0.99, '99 %'], [0.999, '99.9 %'], [0.9999, '99.99 %']] as const) {
    out.push(rule(x(p), top, x(p), bottom, 'grid faint'), text(x(p), bottom + 20, label, ' text-anchor="middle" class="tick"'));
  }
  out.push(text((left + right) / 2, bottom + 44, 'GETs that were at least as fast', ' text-anchor="middle" class="tick"'));
  const labels = apart(curves.map(({ ns }) => y(ns.at(-1) ?? 1)), 34);
  for (const [i, { name, ns }] of curves.entries()) {
    const points = ns.map((v, k) => `${round(x(PERCENTILES[k] ?? 0))},${round(y(v))}`).join(' ');
    const half = ns[PERCENTILES.indexOf(0.5)] ?? 0;
    out.push(`<polyline points="${points}" class="curve s${i}"/>`);
    out.push(`<circle cx="${round(x(0.5))}" cy="${round(y(half))}" r="4" class="dot s${i}"><title>${escaped(name)}: p50 ${duration(half)}</title></circle>`);
    out.push(text(right + 12, (labels[i] ?? 0) + 1, name, ` class="name s${i}"`));
    out.push(text(right + 12, (labels[i] ?? 0) + 16, `p50 ${duration(half)}, p99 ${duration(ns[PERCENTILES.indexOf(0.99)] ?? 0)}`, ' class="tick"'));
  }
  return svg(Math.max(bottom + 56, Math.max(...labels) + 28), 'Latency of a GET by percentile, for each store', out);
}

/** How far a bar may go to either side of the goal: what is beyond is cut off, with an arrow. */
const FARTHEST = 32;

/** A bar for each part, from its goal to the right where it is ahead, to the left where it is behind; the thin line is the spread of the rounds. */
export function goalBars(parts: readonly Part[]): string {
  const [left, right, top, step] = [16, WIDTH - 16, 40, 74];
  const centre = (left + right) / 2;
  const scale = (right - left) / 2 / Math.log2(FARTHEST);
  const x = (times: number): number => centre + scale * Math.max(-Math.log2(FARTHEST), Math.min(Math.log2(FARTHEST), Math.log2(Math.max(times, 1e-9))));
  const height = top + step * parts.length + 8;
  const out: string[] = [];
  for (const times of [1 / 16, 1 / 4, 1 / 2, 2, 4, 16]) {
    out.push(rule(x(times), top - 12, x(times), height - 8, 'grid faint'));
    out.push(text(x(times), top - 18, times < 1 ? `1/${1 / times}` : `${times}×`, ' text-anchor="middle" class="tick"'));
  }
  for (const [i, p] of parts.entries()) {
    const y = top + i * step;
    const [a, b, m] = [p.measured.low, p.measured.high, p.measured.median].map((v) => x(progress(p.goal, v))) as [number, number, number];
    const name = p.met ? 'met' : 'missed';
    out.push(text(left, y + 12, p.title, ' class="title"'), text(right, y + 12, `${p.met ? 'met' : 'missed'}: ${measuredText(p)}`, ` text-anchor="end" class="title ${name}"`));
    out.push(`<rect x="${round(Math.min(centre, m))}" y="${round(y + 20)}" width="${round(Math.max(2, Math.abs(m - centre)))}" height="14" rx="3" class="bar ${name}"><title>${escaped(p.detail)}</title></rect>`);
    out.push(rule(centre, y + 17, centre, y + 37, 'goal'));
    out.push(rule(Math.min(a, b), y + 27, Math.max(a, b), y + 27, 'spread'), rule(a, y + 23, a, y + 31, 'spread'), rule(b, y + 23, b, y + 31, 'spread'));
    out.push(text(left, y + 50, p.detail, ' class="tick"'), text(right, y + 50, `goal: ${goalText(p.goal)}`, ' text-anchor="end" class="tick"'));
  }
  out.push(text(centre, top - 18, 'goal', ' text-anchor="middle" class="title"'));
  return svg(height, 'Each figure against its goal', out);
}
