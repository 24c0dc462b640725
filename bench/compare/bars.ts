/**
 * The report's bars as SVG: how far each row is from its goal, at a glance; each figure against its goal, with what was
 * measured; and the sides of a group beside one another. Pure.
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
  return (times) =>
    (left + right) / 2 +
    scale * Math.max(-Math.log2(FARTHEST), Math.min(Math.log2(FARTHEST), Math.log2(Math.max(times, 1e-9))));
}

function goalGrid(x: (times: number) => number, top: number, bottom: number): string[] {
  const ticks = TIMES.flatMap((times) => [
    rule(x(times), top - 12, x(times), bottom, 'grid faint'),
    text(x(times), top - 18, times < 1 ? `1/${1 / times}` : `${times}×`, ' text-anchor="middle" class="tick"'),
  ]);
  return [...ticks, text(x(1), top - 18, 'goal', ' text-anchor="middle" class="title"')];
}

const SIGNS = { atLeast: '≥', atMost: '≤', below: '<' } as const;
const verdict = (met: boolean): 'met' | 'missed' => (met ? 'met' : 'missed');

function bar(from: number, to: number, y: number, height: number, name: string, tip: string): string {
  const [x, width] = [Math.min(from, to), Math.max(2, Math.abs(to - from))];
  return `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${height}" rx="3" class="${name}"><title>${escaped(tip)}</title></rect>`;
}

/** The thin line from the lowest round to the highest, with its ends. */
function whisker(a: number, b: number, y: number): string[] {
  return [
    rule(Math.min(a, b), y, Math.max(a, b), y, 'spread'),
    ...[a, b].map((x) => rule(x, y - 4, x, y + 4, 'spread')),
  ];
}

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
    const rest =
      row.parts.length > 1 ? `; ${row.parts.filter(({ met }) => met).length} of ${row.parts.length} met` : '';
    const [median = ''] = measuredText(p).split(' (');
    out.push(bar(x(1), at, y + 7, 14, `bar ${verdict(p.met)}`, `${p.title}: ${p.detail}`));
    out.push(
      text(
        right + 16,
        y + 18,
        `${verdict(p.met)}: ${median}, goal ${SIGNS[p.goal.kind]} ${number(p.goal.value)}${rest}`,
        ` class="${verdict(p.met)}"`,
      ),
    );
  }
  out.push(rule(x(1), top - 8, x(1), height - 8, 'goal'));
  return svg(height, 'Each row against its goal', out);
}

/**
 * A bar for each part, from its goal to the right where it is ahead, to the left where it is behind; the thin line is
 * the spread of the rounds.
 */
export function goalBars(parts: readonly Part[]): string {
  const [left, right, top, step] = [16, WIDTH - 16, 40, 74];
  const x = goalAxis(left, right);
  const height = top + step * parts.length + 8;
  const out = goalGrid(x, top, height - 8);
  for (const [i, p] of parts.entries()) {
    const y = top + i * step;
    const [a, b, m] = [p.measured.low, p.measured.high, p.measured.median].map((v) => x(progress(p.goal, v))) as [
      number,
      number,
      number,
    ];
    const name = verdict(p.met);
    out.push(
      text(left, y + 12, p.title, ' class="title"'),
      text(right, y + 12, `${name}: ${measuredText(p)}`, ` text-anchor="end" class="title ${name}"`),
    );
    out.push(
      bar(x(1), m, y + 20, 14, `bar ${name}`, p.detail),
      rule(x(1), y + 17, x(1), y + 37, 'goal'),
      ...whisker(a, b, y + 27),
    );
    out.push(
      text(left, y + 50, p.detail, ' class="tick"'),
      text(right, y + 50, `goal: ${goalText(p.goal)}`, ' text-anchor="end" class="tick"'),
    );
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
      out.push(text(left - 8, y + 14, name, ` text-anchor="end" class="name s${i}"`));
      out.push(
        bar(left, x(rate.median), y, 18, `side s${i}`, `${name}: ${title}`),
        ...whisker(x(rate.low), x(rate.high), y + 9),
      );
      out.push(
        text(
          Math.max(x(rate.median), x(rate.high)) + 10,
          y + 14,
          `${Math.round(rate.median).toLocaleString('en')}/s`,
          ' class="tick"',
        ),
      );
      y += step;
    }
    y += gap - step;
  }
  return svg(y, 'Throughput of each store', out);
}
