/**
 * What `--json` files hold, as the tables of bench/README.md: nobody types a figure. The last column of the floors'
 * table, whose other columns are written by hand, and everything between two marks. Pure.
 */
import { spreadText, type Entry, type RowEntry } from './report.js';

export const BEGIN = '<!-- figures: npm run bench:compare -- --markdown -->';
export const END = '<!-- /figures -->';
/** The head of the floors' table; what a row is called stands first in each of its lines. */
const FLOORS = '| row | the floor | in figures | measured |';
/** A row of more figures is told in the floors' table by its number of them and the weakest. */
const TOLD = 4;

/** A later entry of a name takes the place of an earlier one: rows may be measured again by themselves. */
export function joined(files: readonly (readonly RowEntry[])[]): RowEntry[] {
  return [...new Map(files.flat().map((entry) => [entry.name, entry])).values()];
}

/** A bar would end the cell. */
const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const unitOf = (goal: string): string => goal.replace(/^(?:at least|at most|below) [\d.,]+ /, '');
const verdict = (met: boolean): string => (met ? 'met' : '**missed**');

function figure({ measured, spread, goal }: Entry): string {
  if (measured === null) return 'not measured';
  const [low, high] = spread ?? [measured, measured];
  return `${spreadText(measured, low, high, Number(/[\d.,]+/.exec(goal)?.[0].replaceAll(',', '')))} ${unitOf(goal)}`;
}

/** The cell beside a floor. */
export function beside(row: RowEntry): string {
  const parts = row.parts ?? [row];
  if (row.measured === null) return cell(`not measured: ${row.detail}`);
  if (parts.length <= TOLD) return cell(parts.map((p) => `${verdict(p.met)}: ${p.detail}; ${figure(p)}`).join('; '));
  return cell(
    `${parts.filter(({ met }) => met).length} of ${parts.length} met; the weakest, ${verdict(row.met)}: ${row.detail}; ${figure(row)}`,
  );
}

/** All figures, under what they were measured on; each run is told once. */
export function figures(rows: readonly RowEntry[]): string {
  const runs = [...new Set(rows.map(({ run }) => run))];
  const tables = runs.map((run) => {
    const lines = rows
      .filter((row) => row.run === run)
      .flatMap((row) =>
        (row.parts ?? [row]).map(
          (p, i) =>
            `| ${[i === 0 ? `\`${row.name}\`` : '', p === row ? '' : p.name, p.measured === null ? '' : p.goal, figure(p), p.detail, verdict(p.met)].map(cell).join(' | ')} |`,
        ),
      );
    return `${run}.\n\n| row | of it | goal | median (low to high) | sides | |\n|---|---|---|---|---|---|\n${lines.join('\n')}`;
  });
  const minutes = rows.reduce((sum, { seconds }) => sum + seconds, 0) / 60;
  return `${rows.filter(({ met }) => met).length} of ${rows.length} rows met, in ${minutes.toFixed(0)} minutes.\n\n${tables.join('\n\n')}`;
}

/**
 * The document with these rows in it; rows that are not among them stay as they are beside the floors. Throws when it
 * has no place for them.
 */
export function filled(document: string, rows: readonly RowEntry[]): string {
  const [begin, end] = [document.indexOf(BEGIN), document.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`there is no ${BEGIN} with a ${END} behind it`);
  const whole = `${document.slice(0, begin + BEGIN.length)}\n${figures(rows)}\n${document.slice(end)}`;
  const byName = new Map(rows.map((row) => [row.name, row]));
  let inFloors = false;
  const lines = whole.split('\n').map((line) => {
    if (line === FLOORS) inFloors = true;
    else if (!line.startsWith('|')) inFloors = false;
    const row = inFloors ? byName.get(/^\| `([^`]+)` \|/.exec(line)?.[1] ?? '') : undefined;
    // Cells are parted by bars that no backslash stands before.
    return row === undefined
      ? line
      : `${line
          .split(/(?<!\\)\|/)
          .slice(0, 4)
          .join('|')}| ${beside(row)} |`;
  });
  if (!whole.includes(FLOORS)) throw new Error(`there is no table that begins with ${FLOORS}`);
  return lines.join('\n');
}

/** The names of the rows that the floors' table has. */
export function floorsOf(document: string): string[] {
  const table = document.slice(document.indexOf(FLOORS)).split('\n\n')[0] ?? '';
  return [...table.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name = '']) => name);
}
