/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
/** Elements of the page. Whatever comes from the cluster becomes text, never markup. */

export interface Cell {
  readonly text: string;
  readonly kind?: 'number' | 'dim' | 'good' | 'warn' | 'bad';
}

export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found;
}

export function element(tag: string, text = '', kind = ''): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = kind;
  return made;
}

export function fillTable(id: string, titles: readonly Cell[], rows: readonly (readonly Cell[])[]): void {
  const row = (tag: string, cells: readonly Cell[]): HTMLElement => {
    const made = document.createElement('tr');
    made.append(...cells.map(({ text, kind }) => element(tag, text, kind)));
    return made;
  };
  const head = document.createElement('thead');
  const body = document.createElement('tbody');
  if (titles.length > 0) head.append(row('th', titles));
  body.append(...rows.map((cells) => row('td', cells)));
  byId(id).replaceChildren(head, body);
}

/** The names of options, which a browser would break after a hyphen. They stay text that can be copied. */
const OPTION = /(--[a-z][a-z0-9-]*)/;

function lineOf(text: string): HTMLElement {
  const made = element('li');
  made.append(...text.split(OPTION).map((part) => (OPTION.test(part) ? element('span', part, 'whole') : part)));
  return made;
}

/** A list whose text stays is left alone: so it can be selected, and a screen reader says it once. */
export function fillList(list: Element, lines: readonly string[], none = ''): void {
  const shown = lines.length === 0 && none !== '' ? [none] : lines;
  const isSame = [...list.children].map(({ textContent }) => textContent).join('\n') === shown.join('\n');
  if (isSame && list.children.length === shown.length) return;
  const items = lines.map(lineOf);
  list.replaceChildren(...(items.length === 0 && none !== '' ? [element('li', none, 'dim')] : items));
}

/** Of the browser: `UTC+5:30`, as an offset in minutes of `getTimezoneOffset`. */
export function zoneText(minutesBehind: number): string {
  const minutes = Math.abs(minutesBehind);
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  const past = rest === 0 ? '' : `:${String(rest).padStart(2, '0')}`;
  return minutes === 0 ? 'UTC' : `UTC${minutesBehind > 0 ? '-' : '+'}${hours}${past}`;
}

/** The time of day in the browser's zone. */
export const clock = (atMs: number): string => new Date(atMs).toLocaleTimeString('en-GB');
export const zoneAt = (atMs: number): string => zoneText(new Date(atMs).getTimezoneOffset());

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
export function bytes(n: number): string {
  const unit = Math.min(UNITS.length - 1, n < 1 ? 0 : Math.floor(Math.log2(n) / 10));
  const value = n / 1024 ** unit;
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit] ?? ''}`;
}

export const count = (n: number): string => Math.round(n).toLocaleString('en');

export function micros(us: number): string {
  if (us === 0) return '-';
  return us >= 1000 ? `${(us / 1000).toFixed(1)} ms` : `${us < 10 ? us.toFixed(1) : Math.round(us)} µs`;
}

export function span(ms: number): string {
  const s = Math.floor(ms / 1000);
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  return s < 172_800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86_400)} d`;
}
