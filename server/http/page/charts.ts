/// <reference lib="dom" />
/**
 * The charts: the last hour, drawn by uPlot, which a script of its own has loaded. The legend under a chart has the last
 * values as text, or those under the pointer. For screen readers the picture has a name: of when it is,
 * and the highest values.
 */
import type UPlot from 'uplot';
import { byId, clock, zoneAt } from './elements.js';

declare const uPlot: typeof UPlot;

const SPAN_S = 3600;
const HEIGHT = 170;
const COLOURS = ['#3f7fd0', '#d9822b', '#3c9d6b', '#b0569f', '#8a7a2f', '#5aa5b5'];

// The enum is in uPlot's types alone.
// eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment
const LOGARITHMIC: UPlot.Scale = { distr: 3 };
const clockAt = (seconds: number): string => clock(seconds * 1000);
const valueText = (value: number | null): string =>
  value === null ? '-' : value < 10 ? value.toFixed(2) : Math.round(value).toLocaleString('en');

/** Where a value has none beside it, no line leads to it: it is a point. */
function alone(values: ArrayLike<number | null | undefined>): number[] | null {
  const found: number[] = [];
  for (let i = 0; i < values.length; i++)
    if (typeof values[i] === 'number' && typeof values[i - 1] !== 'number' && typeof values[i + 1] !== 'number')
      found.push(i);
  return found.length === 0 ? null : found;
}

export class Chart {
  readonly #names: readonly string[];
  readonly #box: HTMLElement;
  readonly #caption: string;
  readonly #plot: UPlot;
  /** Seconds since 1970, rising; then a column for each line. */
  readonly #data: (number | null)[][];
  readonly #isLog: boolean;

  /** `isLog`: on a logarithmic scale, where 0 is no value. */
  constructor(id: string, names: readonly string[], isLog = false) {
    this.#isLog = isLog;
    this.#names = names;
    this.#box = byId(id);
    this.#caption = this.#box.parentElement?.querySelector('figcaption')?.textContent ?? id;
    this.#data = [[], ...names.map(() => [])];
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const axis = {
      stroke: () => (dark.matches ? '#8c98a1' : '#65717a'),
      grid: { stroke: () => (dark.matches ? '#2e363c' : '#e4e8ea'), width: 1 },
      ticks: { show: false },
      font: '11px system-ui, sans-serif',
    };
    this.#plot = new uPlot(
      {
        width: this.#width,
        height: HEIGHT,
        cursor: { drag: { x: false, y: false } },
        scales: { y: isLog ? LOGARITHMIC : { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
        axes: [
          { ...axis, values: (_, all) => all.map(clockAt) },
          { ...axis, size: 56 },
        ],
        series: [
          {
            label: 'at',
            value: (_: unknown, at: number | null) => (at === null ? '-' : `${clockAt(at)} ${zoneAt(at * 1000)}`),
          },
          ...names.map((label, i) => ({
            label,
            stroke: COLOURS[i % COLOURS.length] ?? '',
            width: 1.5,
            points: { show: false, filter: (plot: UPlot, line: number) => alone(plot.data[line] ?? []) },
            value: (_: unknown, value: number | null) => valueText(value),
          })),
        ],
        hooks: { setLegend: [(plot) => this.#showLast(plot)] },
      },
      this.#data as unknown as UPlot.AlignedData,
      this.#box,
    );
    this.#plot.ctx.canvas.setAttribute('role', 'img');
    new ResizeObserver(() => this.#plot.setSize({ width: this.#width, height: HEIGHT })).observe(this.#box);
    dark.addEventListener('change', () => this.#plot.redraw());
  }

  /**
   * Of each moment: milliseconds since 1970, and a value, or null, for each line. Later moments that the chart has are
   * dropped: the server's clock was set back.
   */
  add(moments: readonly (readonly [atMs: number, ...values: (number | null)[]])[]): void {
    const [times = []] = this.#data;
    for (const [atMs, ...values] of moments) {
      const at = atMs / 1000;
      while (Number(times.at(-1)) >= at) for (const column of this.#data) column.pop();
      times.push(at);
      for (const [i, value] of values.entries())
        this.#data[i + 1]?.push(this.#isLog && Number(value) <= 0 ? null : value);
      while (Number(times[0]) < at - SPAN_S) for (const column of this.#data) column.shift();
    }
    this.#plot.setData(this.#data as unknown as UPlot.AlignedData);
    this.#showLast(this.#plot);
    this.#plot.ctx.canvas.setAttribute('aria-label', this.#inWords());
  }

  #inWords(): string {
    const [times = [], ...columns] = this.#data;
    const [first = '-', last = '-'] = [times[0], times.at(-1)].map((at) => clockAt(Number(at)));
    const most = columns.map((column, i) => {
      const highest = column.reduce((a, b) => (Number(b) > Number(a) ? b : a), null);
      return `${this.#names[i] ?? ''} ${valueText(highest)}`;
    });
    return `${this.#caption}: ${times.length} moments, ${first} to ${last}. Highest: ${most.join('; ')}`;
  }

  /** Where no pointer chooses a time. */
  #showLast(plot: UPlot): void {
    const last = (this.#data[0]?.length ?? 0) - 1;
    if (last >= 0 && typeof plot.cursor.idx !== 'number') plot.setLegend({ idx: last }, false);
  }

  get lines(): number {
    return this.#names.length;
  }

  get #width(): number {
    return Math.max(200, this.#box.clientWidth);
  }
}
