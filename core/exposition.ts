/**
 * Metrics as Prometheus reads them: families of samples, and their text. Servers answer /metrics with it; a program that
 * uses the SDK puts what `client.metrics()` gives beside its own metrics.
 *
 * For: figures that are counted elsewhere. Not for: counting. `openmetrics`: OpenMetrics 1.0 instead of Prometheus's
 * text format 0.0.4; they differ in the name above a counter, and in the last line.
 */
export interface Sample {
  /** Behind the family's name: `_bucket`, `_sum`, `_count` of a histogram. */
  readonly suffix?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  /** A counter's ends with _total. */
  readonly name: string;
  readonly help: string;
  readonly type: 'gauge' | 'counter' | 'histogram';
  readonly samples: readonly Sample[];
}

export const TEXT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
export const OPENMETRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
const quoted = (text: string): string => `"${escaped(text).replaceAll('"', '\\"')}"`;
const spelled = (value: number): string =>
  value === Infinity ? '+Inf' : value === -Infinity ? '-Inf' : Number.isNaN(value) ? 'NaN' : String(value);

/**
 * Families of one name, as of two clients, are one with all their samples: labels have to tell those apart. Without the
 * last line of OpenMetrics, so that other families can follow.
 */
export function exposition(families: readonly Family[], openmetrics = false): string {
  const lines: string[] = [];
  const named = new Map<string, Family>();
  for (const family of families) {
    const { samples = [] } = named.get(family.name) ?? {};
    named.set(family.name, { ...family, samples: [...samples, ...family.samples] });
  }
  for (const { name, help, type, samples } of named.values()) {
    const title = openmetrics && type === 'counter' ? name.replace(/_total$/, '') : name;
    lines.push(`# HELP ${title} ${escaped(help)}`, `# TYPE ${title} ${type}`);
    for (const { suffix = '', labels = {}, value } of samples) {
      const pairs = Object.entries(labels).map(([label, text]) => `${label}=${quoted(text)}`);
      lines.push(`${name}${suffix}${pairs.length === 0 ? '' : `{${pairs.join()}}`} ${spelled(value)}`);
    }
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

/** Latencies that were counted by their size (native/base/histogram.h). */
export interface Counted {
  readonly count: number;
  /** Nanoseconds. */
  readonly sum: number;
  /** How many were less than 2^(10 + i) ns; the last: all. Empty: none were. */
  readonly below: readonly number[];
}

/** The first bound, as a power of two, in nanoseconds, and how many there are: as in native/base/histogram.h. */
export const FIRST_OCTAVE = 10;
export const HISTOGRAM_BOUNDS = 25;

/** Counts latencies by their size, where JavaScript measures them: in a few instructions, since calls wait for it. */
export class Timing implements Counted {
  count = 0;
  sum = 0;
  /** By the lowest bound that a latency is less than. */
  readonly #sizes = new Float64Array(HISTOGRAM_BOUNDS);

  add(ns: number): void {
    this.count += 1;
    this.sum += ns;
    // Bits of ns / 2^10, of which there are 32 at most: 73 minutes, far above the last bound but one.
    const size = 32 - Math.clz32(Math.min(ns / 2 ** FIRST_OCTAVE, 2 ** 31));
    const at = Math.min(size, HISTOGRAM_BOUNDS - 1);
    this.#sizes[at] = (this.#sizes[at] ?? 0) + 1;
  }

  get below(): readonly number[] {
    let sum = 0;
    return this.count === 0 ? [] : Array.from(this.#sizes, (n) => (sum += n));
  }
}

/** A histogram in seconds: the sums of several, from 0 on, so that a rate sees the first one. Nothing of none. */
export function histogram(all: readonly Counted[], labels: Readonly<Record<string, string>> = {}): Sample[] {
  if (all.length === 0) return [];
  const counted = all.filter(({ below }) => below.length > 0);
  const bounds = counted.length === 0 ? HISTOGRAM_BOUNDS : Math.max(...counted.map(({ below }) => below.length));
  const sum = (of: (one: Counted) => number): number => counted.reduce((n, one) => n + of(one), 0);
  const below = Array.from({ length: bounds }, (_, i) => sum((one) => one.below[i] ?? one.count));
  return [
    ...below.map((value, i) => ({
      suffix: '_bucket',
      labels: { ...labels, le: i === bounds - 1 ? '+Inf' : String(2 ** (FIRST_OCTAVE + i) / 1e9) },
      value,
    })),
    { suffix: '_sum', labels, value: sum((one) => one.sum) / 1e9 },
    // Not `count`: what is counted meanwhile may be in one and not in the other.
    { suffix: '_count', labels, value: below.at(-1) ?? 0 },
  ];
}
