/** What `--json` files hold, as the table of bench/README.md between two marks: nobody types a figure. Pure. */
import { spreadText, type Entry, type RowEntry } from './report.js';

export const BEGIN = '<!-- figures: npm run bench:compare -- --markdown -->';
export const END = '<!-- /figures -->';

/** A later entry of a name takes the place of an earlier one: rows may be measured again by themselves. */
export function joined(files: readonly (readonly RowEntry[])[]): RowEntry[] {
  return [...new Map(files.flat().map((entry) => [entry.name, entry])).values()];
}

/** A bar would end the cell. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const verdict = (met: boolean): string => (met ? 'met' : '**missed**');

/** In the unit of the goal beside it. */
function figure({ measured, spread, goal }: Entry): string {
  if (measured === null) return 'not measured';
  const [low, high] = spread ?? [measured, measured];
  return spreadText(measured, low, high, Number(/[\d.,]+/.exec(goal)?.[0].replaceAll(',', '')));
}

/** All figures, under what they were measured on; each run is told once. */
export function figures(rows: readonly RowEntry[]): string {
  const runs = [...new Set(rows.map(({ run }) => run))];
  const tables = runs.map((run) => {
    const lines = rows
      .filter((row) => row.run === run)
      .flatMap((row) =>
        (row.parts ?? [row]).map((p, i) => {
          const name = [...(i === 0 ? [`\`${row.name}\``] : []), ...(p === row ? [] : [p.name])].join(': ');
          const load = i === 0 && row.load !== undefined ? `; load average ${row.load.toFixed(1)}` : '';
          const cells = [name, p.measured === null ? '' : p.goal, figure(p), `${p.detail}${load}`, verdict(p.met)];
          return `| ${cells.map(cell).join(' | ')} |`;
        }),
      );
    const where = run.split('; ').map((part) => `- ${part}`);
    return `${where.join('\n')}\n\n| row | goal | median (low to high) | sides | |\n|---|---|---|---|---|\n${lines.join('\n')}`;
  });
  const minutes = rows.reduce((sum, { seconds }) => sum + seconds, 0) / 60;
  return `${rows.filter(({ met }) => met).length} of ${rows.length} rows met, in ${minutes.toFixed(0)} minutes.\n\n${tables.join('\n\n')}`;
}

/** The document with these rows in place of its figures. Throws when it has no place for them. */
export function filled(document: string, rows: readonly RowEntry[]): string {
  const [begin, end] = [document.indexOf(BEGIN), document.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`there is no ${BEGIN} with a ${END} behind it`);
  return `${document.slice(0, begin + BEGIN.length)}\n${figures(rows)}\n${document.slice(end)}`;
}

/** The names of the rows whose figures the document has. */
export function rowsOf(document: string): string[] {
  const within = document.slice(document.indexOf(BEGIN), document.indexOf(END));
  return [...within.matchAll(/^\| `([^`]+)`/gm)].map(([, name = '']) => name);
}
