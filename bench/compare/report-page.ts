/**
 * The comparison as one HTML page: charts, what they were measured on, a table. Self-contained: no script, no font, no
 * picture from elsewhere. Pure.
 */
import { goalBars, scoreboard, sideBars } from './bars.js';
import { escaped, latencyChart } from './charts.js';
import type { Curve } from './curves.js';
import { goalText, measuredText, type Environment } from './report.js';
import { byGroup, rowMet, type RowResult, type Theme } from './row.js';

export interface Report {
  readonly where: Environment;
  readonly rows: readonly RowResult[];
  /** May be none. */
  readonly curves: readonly Curve[];
}

/**
 * Series by the order of the curves: hues that colour-blind readers tell apart (Okabe and Ito), darker on white,
 * lighter on black.
 */
const STYLE = `
:root { color-scheme: light dark; --ground: #fff; --panel: #f6f7f9; --ink: #1a1d21; --quiet: #5c6670; --line: #d5dae0; --good: #00795a; --bad: #b4460f; --goal: #1a1d21;
  --s0: #00795a; --s1: #0067a5; --s2: #c0392b; --s3: #a05d00; --s4: #8e4585; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --panel: #1c2024; --ink: #e8eaed; --quiet: #9aa4ae; --line: #353c43; --good: #2ec99a; --bad: #f0883e; --goal: #e8eaed;
  --s0: #2ec99a; --s1: #58b0ee; --s2: #ff7b6b; --s3: #e8b23a; --s4: #d49ad0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1rem 4rem; max-width: 66rem; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .25rem; }
p { margin: 0 0 1rem; max-width: 46rem; } .quiet, dl { color: var(--quiet); }
figure { margin: 0 0 1rem; padding: 1rem; background: var(--panel); border-radius: 10px; overflow-x: auto; }
svg { display: block; width: 100%; min-width: 44rem; height: auto; font: 13px system-ui, sans-serif; fill: var(--ink); }
.tick { fill: var(--quiet); font-size: 12px; } .title, .name { font-weight: 600; font-size: 13.5px; }
.grid { stroke: var(--line); } .faint { stroke-opacity: .55; stroke-dasharray: 2 4; }
.curve { fill: none; stroke-width: 2.5; stroke-linejoin: round; stroke-linecap: round; } .dot { stroke: var(--panel); stroke-width: 2; }
${[0, 1, 2, 3, 4].map((i) => `.curve.s${i} { stroke: var(--s${i}); } .dot.s${i}, .name.s${i} { fill: var(--s${i}); }`).join('\n')}
${[0, 1, 2, 3].map((i) => `.side.s${i} { fill: var(--s${i}); }`).join('\n')}
.side { fill-opacity: .85; } .bar.met, text.met { fill: var(--good); } .bar.missed, text.missed { fill: var(--bad); } .bar { fill-opacity: .8; }
.spread { stroke: var(--ink); stroke-width: 1.5; } line.goal { stroke: var(--goal); stroke-width: 2; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; font-size: .9rem; margin: 1rem 0; } dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .875rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .75rem .4rem 0; border-bottom: 1px solid var(--line); } th { color: var(--quiet); }
@media print { body { max-width: none; padding: 0; } figure { break-inside: avoid; } }
td.met { color: var(--good); font-weight: 600; } td.missed { color: var(--bad); font-weight: 600; } code { font-size: .95em; }
`;

function table(rows: readonly RowResult[]): string {
  const cells = (values: readonly string[]): string => values.map((v) => `<td>${v}</td>`).join('');
  const lines = rows.flatMap((row) => {
    const name = `<code>${escaped(row.name)}</code>`;
    if (row.problem !== undefined)
      return [
        `<tr>${cells([name, escaped(row.work), '', ''])}<td class="missed">not measured: ${escaped(row.problem)}</td></tr>`,
      ];
    return row.parts.map((p, i) => {
      const verdict = `<td class="${p.met ? 'met' : 'missed'}">${p.met ? 'met' : 'missed'}</td>`;
      return `<tr>${cells([i === 0 ? name : '', `${escaped(p.title)}<br><span class="quiet">${escaped(p.detail)}</span>`, escaped(goalText(p.goal)), escaped(measuredText(p))])}${verdict}</tr>`;
    });
  });
  return `<div class="scroll"><table><thead><tr><th>row</th><th>what</th><th>goal</th><th>median (low to high)</th><th></th></tr></thead>\n<tbody>\n${lines.join('\n')}\n</tbody></table></div>`;
}

/** What stands over the charts, in the order in which they stand. */
const THEMES: readonly { readonly theme: Theme; readonly title: string; readonly words: string }[] = [
  {
    theme: 'YCSB',
    title: 'YCSB',
    words:
      'The same property files, 100,000 records of 10 x 100 B in one encoding, 200,000 operations a round, one client process with one thread and 32 operations in flight; operations a second.',
  },
  {
    theme: 'GETs',
    title: 'GETs',
    words: 'Values of 1,000 B, batches over shm and the table of ten times the keys 100 B; keys uniformly random.',
  },
  { theme: 'PUTs', title: 'PUTs', words: 'Values of 100 B over keys that are there.' },
  {
    theme: 'Servers',
    title: 'What GETs cost the servers',
    words: 'CPU time of all threads of the servers, as the kernel accounts it.',
  },
  {
    theme: 'READs',
    title: 'READs for each GET',
    words:
      "Over tcp, by distribution of the keys and size of the client's cache of locations. A READ that the responder followed by itself counts as two.",
  },
  {
    theme: 'Memory',
    title: 'Memory for each entry',
    words: 'Beyond a key of 16 B and the value, index and free space included.',
  },
];
const AGAINST =
  'To the right of the goal is ahead of it, to the left behind, on a logarithmic axis; the thin line spans the rounds.';

function section(title: string, words: string, charts: readonly string[]): string {
  const figures = charts.map((chart) => `<figure>${chart}</figure>`).join('\n');
  return `<h2>${escaped(title)}</h2>\n<p class="quiet">${escaped(words)}</p>\n${figures}`;
}

/**
 * All rows of a theme: first the groups, whose sides stand beside one another, then what is measured against its goal
 * alone.
 */
function themed(theme: Theme, title: string, words: string, rows: readonly RowResult[]): string {
  const groups = byGroup(rows.filter((row) => row.theme === theme).flatMap(({ parts }) => parts));
  if (groups.size === 0) return '';
  const beside = [...groups.keys()].flatMap((group) => (group === undefined ? [] : [group]));
  const alone = groups.get(undefined) ?? [];
  const charts = [...(beside.length > 0 ? [sideBars(beside)] : []), ...(alone.length > 0 ? [goalBars(alone)] : [])];
  return section(title, alone.length > 0 ? `${words} ${AGAINST}` : words, charts);
}

export function reportPage({ where, rows, curves }: Report): string {
  const facts = Object.entries({
    Command: where.command,
    Machine: where.machine,
    Versions: where.versions,
    Providers: where.providers,
    Run: where.run,
    Date: where.date,
  });
  const glance =
    rows.length === 0
      ? ''
      : section(
          'At a glance',
          `Each row by the figure that is farthest behind its goal, or least ahead. ${AGAINST.split(';')[0] ?? ''}.`,
          [scoreboard(rows)],
        );
  const latency =
    curves.length === 0
      ? ''
      : section(
          'How long a GET takes',
          "1,000 B values over 16 B keys, uniformly random, one GET at a time, awaited, each store through its client. Both axes are logarithmic. lmdb runs inside the client's process; the others are servers.",
          [latencyChart(curves)],
        );
  const charts = THEMES.map(({ theme, title, words }) => themed(theme, title, words, rows)).filter(
    (text) => text !== '',
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>farkv beside Redis, memcached and lmdb</title>
<style>${STYLE}</style>
</head>
<body>
<h1>farkv beside Redis, memcached and lmdb</h1>
<p>${rows.filter(rowMet).length} of ${rows.length} rows reach their goal. All stores ran on one machine in one run, round by round in turn.</p>
<dl>${facts.map(([name, value]) => `<dt>${name}</dt><dd>${escaped(value)}</dd>`).join('\n')}</dl>
${[glance, latency, ...charts].join('\n')}
<h2>All figures</h2>
${table(rows)}
</body>
</html>
`;
}
