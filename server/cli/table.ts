/** Text in columns, for people. Numbers are given right-aligned. A cell is on one line, whatever is in it. */
import { visible } from '../../core/visible-text.js';

export interface Column {
  readonly title: string;
  readonly right?: boolean;
}

export function table(columns: readonly Column[], given: readonly (readonly string[])[]): string {
  const rows = given.map((row) => row.map(visible));
  const widths = columns.map((c, i) => Math.max(c.title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => (columns[i]?.right === true ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join('  ')
      .trimEnd();
  return [line(columns.map((c) => c.title)), ...rows.map(line)].map((l) => `${l}\n`).join('');
}
