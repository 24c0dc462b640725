/**
 * The report's bars as SVG: how far each row is from its goal, at a glance; each figure against its goal, with what was measured; and the sides of a
 * group beside one another. Pure.
 */
import { escaped, round, rule, svg, text, WIDTH } from './charts.js';
import { goalText, measuredText, number } from './report.js';
import { progress, weakest, type Group, type Part, type RowResult } from './row.js';

/** How far a bar may go to either side of the goal: what is beyond is cut off. */
const FARTHEST = 32;
const TIMES = [1 / 16, 1 / 4, 1 / 2, 2, 4, 16] as const;

/** The place of a progress on a logarithmic axis whose middle is the goal. */
function goalAxis(left: number, right: number): (times: number) => number {
  const scale = (right - left) / 2 / Math.log2(FARTHEST);
  return (times) => (left + right) / 2 + scale * Math.max(-Math.log2(FARTHEST), Math.min(Math.log2(FARTHEST), Math.log2(Math.max(times, 1e-9))));
}

function goalGrid(x: (times: number) => number, top: number, bottom: number): string[] {
  const ticks = TIMES.flatMap((times) => [
    rule(x(times), top - 12, x(times), bottom, 'grid faint'), text(x(times), top - 18, times < 1 ? `1/${1 / times}` : `${times}×`, ' text-anchor="middle" class="tick"'),
  ]);
  return [...ticks, text(x(1), top - 18, 'goal', ' text-anchor="middle" class="title"')];
}

const SIGNS = { atLeast: '≥', atMost: '≤', below: '<' } as const;
const verdict = (met: boolean): 'met' | 'missed' => (met ? 'met' : 'missed');

/** One line a row: its name, a bar from the goal to the figure that is farthest behind, and what that is. */
export function scoreboard(rows: readonly RowResult[]): string {
  const [left, right, top, step] = [236, WIDTH - 290, 40, 30];
  const x = goalAxis(left, right);
  const height = top + step * rows.length + 8;
  const out = goalGrid(x, top, height - 8);
  for (const [i, row] of rows.entries()) {
    const [y, p] = [top + i * step, weakest(row)];
    out.push(text(16, y + 18, row.name, ' class="name"'));
    if (p === undefined) {
      out.push(text(right + 16, y + 18, 'not measured', ' class="missed"'));
      continue;
    }
    const at = x(progress(p.goal, p.measured.median));
    const rest = row.parts.length > 1 ? `; ${row.parts.filter(({ met }) => met).length} of ${row.parts.length} met` : '';
    out.push(`<rect x="${round(Math.min(x(1), at))}" y="${round(y + 7)}" width="${round(Math.max(2, Math.abs(at - x(1))))}" height="14" rx="3" class="bar ${verdict(p.met)}"><title>${escaped(`${p.title}: ${p.detail}`)}</title></rect>`);
    out.push(text(right + 16, y + 18, `${verdict(p.met)}: ${measuredText(p).split(' (')[0] ?? ''}, goal ${SIGNS[p.goal.kind]} ${number(p.goal.value)}${rest}`, ` class="${verdict(p.met)}"`));
  }
  out.push(rule(x(1), top - 8, x(1), height - 8, 'goal'));
  return svg(height, 'Each row against its goal', out);
}

/** A bar for each part, from its goal to the right where it is ahead, to the left where it is behind; the thin line is the spread of the rounds. */
export function goalBars(parts: readonly Part[]): string {
  const [left, right, top, step] = [16, WIDTH - 16, 40, 74];
  const x = goalAxis(left, right);
  const height = top + step * parts.length + 8;
  const out = goalGrid(x, top, height - 8);
  for (const [i, p] of parts.entries()) {
    const y = top + i * step;
    const [a, b, m] = [p.measured.low, p.measured.high, p.measured.median].map((v) => x(progress(p.goal, v))) as [number, number, number];
    const name = verdict(p.met);
    out.push(text(left, y + 12, p.title, ' class="title"'), text(right, y + 12, `${name}: ${measuredText(p)}`, ` text-anchor="end" class="title ${name}"`));
    out.push(`<rect x="${round(Math.min(x(1), m))}" y="${round(y + 20)}" width="${round(Math.max(2, Math.abs(m - x(1))))}" height="14" rx="3" class="bar ${name}"><title>${escaped(p.detail)}</title></rect>`);
    out.push(rule(x(1), y + 17, x(1), y + 37, 'goal'));
    out.push(rule(Math.min(a, b), y + 27, Math.max(a, b), y + 27, 'spread'), rule(a, y + 23, a, y + 31, 'spread'), rule(b, y + 23, b, y + 31, 'spread'));
    out.push(text(left, y + 50, p.detail, ' class="tick"'), text(right, y + 50, `goal: ${goalText(p.goal)}`, ' text-anchor="end" class="tick"'));
  }
  return svg(height, 'Each figure against its goal', out);
}

/** The sides of each group as bars of one linear scale, from nothing; the thin line is the spread of the rounds. */
export function sideBars(groups: readonly Group[]): string {
  const [left, right, step, gap] = [120, WIDTH - 210, 24, 46];
  const most = Math.max(1, ...groups.flatMap(({ sides }) => sides.map(({ rate }) => rate.high)));
  const x = (rate: number): number => left + ((right - left) * rate) / most;
  const out: string[] = [];
  let y = 8;
  for (const { title, sides } of groups) {
    out.push(text(16, y + 16, title, ' class="title"'));
    y += 28;
    for (const [i, { name, rate }] of sides.entries()) {
      const middle = y + 9;
      out.push(text(left - 8, y + 14, name, ` text-anchor="end" class="name s${i}"`));
      out.push(`<rect x="${left}" y="${round(y)}" width="${round(Math.max(2, x(rate.median) - left))}" height="18" rx="3" class="side s${i}"/>`);
      out.push(rule(x(rate.low), middle, x(rate.high), middle, 'spread'), rule(x(rate.low), middle - 4, x(rate.low), middle + 4, 'spread'), rule(x(rate.high), middle - 4, x(rate.high), middle + 4, 'spread'));
      out.push(text(Math.max(x(rate.median), x(rate.high)) + 10, y + 14, `${Math.round(rate.median).toLocaleString('en')}/s`, ' class="tick"'));
      y += step;
    }
    y += gap - step;
  }
  return svg(y, 'Throughput of each store', out);
}
