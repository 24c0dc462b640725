/// <reference lib="dom" />
/** The charts: the last SPAN looks, drawn by uPlot, which a script of its own has loaded. */
import type UPlot from 'uplot';
import { byId } from './elements.js';

declare const uPlot: typeof UPlot;

/** Looks that are kept: an hour. */
const SPAN = 3600;
const HEIGHT = 170;
const COLOURS = ['#3f7fd0', '#d9822b', '#3c9d6b', '#b0569f', '#8a7a2f', '#5aa5b5'];

// The enum is in uPlot's types alone.
// eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment
const LOGARITHMIC: UPlot.Scale = { distr: 3 };
const clock = (_: unknown, seconds: readonly number[]): string[] =>
  seconds.map((at) => new Date(at * 1000).toLocaleTimeString('en-GB'));

export class Chart {
  readonly #box: HTMLElement;
  readonly #plot: UPlot;
  readonly #data: (number | null)[][];
  readonly #isLog: boolean;

  /** `isLog`: on a logarithmic scale, where 0 is no value. */
  constructor(id: string, names: readonly string[], isLog = false) {
    this.#isLog = isLog;
    this.#box = byId(id);
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
        legend: { live: false },
        scales: { y: isLog ? LOGARITHMIC : { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
        axes: [
          { ...axis, values: clock },
          { ...axis, size: 56 },
        ],
        series: [
          {},
          ...names.map((label, i) => ({
            label,
            stroke: COLOURS[i % COLOURS.length] ?? '',
            width: 1.5,
            points: { show: false },
            value: (_: unknown, v: number | null) =>
              v === null ? '-' : v < 10 ? v.toFixed(2) : Math.round(v).toLocaleString('en'),
          })),
        ],
      },
      this.#data as unknown as UPlot.AlignedData,
      this.#box,
    );
    new ResizeObserver(() => this.#plot.setSize({ width: this.#width, height: HEIGHT })).observe(this.#box);
    dark.addEventListener('change', () => this.#plot.redraw());
  }

  add(atMs: number, values: readonly number[]): void {
    for (const [i, value] of [atMs / 1000, ...values].entries()) {
      const column = this.#data[i];
      column?.push(this.#isLog && i > 0 && value <= 0 ? null : value);
      if (column !== undefined && column.length > SPAN) column.shift();
    }
    this.#plot.setData(this.#data as unknown as UPlot.AlignedData);
  }

  get #width(): number {
    return Math.max(200, this.#box.clientWidth);
  }
}
