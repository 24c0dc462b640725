/**
 * The result of a run, as one object and as the lines that YCSB prints: `[READ], AverageLatency(us), 1.234`.
 *
 * Where YCSB prints whole microseconds this prints three decimals, because a GET over shared memory takes less than
 * one; names, order and separators are YCSB's. Lines under [FARKV], [REDIS], ... and [HARNESS] are this runner's own.
 */
import type { Histogram } from 'hdr-histogram-js';
import type { Measurements } from './measurements.js';
import type { GcFacts } from './protocol.js';

export interface SeriesReport {
  readonly name: string;
  readonly operations: number;
  readonly averageNs: number;
  readonly minNs: number;
  readonly maxNs: number;
  /** By percentile, as it was asked for: '99', '99.9'. */
  readonly percentilesNs: Readonly<Record<string, number>>;
  readonly returns: Readonly<Record<string, number>>;
}

export interface RunReport {
  readonly database: string;
  readonly phase: 'load' | 'run';
  readonly runTimeMs: number;
  readonly operations: number;
  readonly throughput: number;
  readonly gc: GcFacts;
  readonly series: readonly SeriesReport[];
  /** What the database says of itself: transport, READs per GET, versions. */
  readonly facts: Readonly<Record<string, string | number>>;
  /** Nanoseconds that one operation of the same loop costs against the no-op database. */
  readonly harnessNs: number | undefined;
  readonly seed: number;
}

const ORDER = ['READ', 'UPDATE', 'INSERT', 'READ-MODIFY-WRITE', 'SCAN', 'VERIFY', 'CLEANUP'];

/** Operations in YCSB's usual order, failed and intended ones after their plain series. */
function rank(name: string): number {
  const at = ORDER.indexOf(name.replace(/^Intended-/, '').replace(/-FAILED$/, ''));
  return (at < 0 ? ORDER.length : at) * 4 + (name.startsWith('Intended-') ? 2 : 0) + (name.endsWith('-FAILED') ? 1 : 0);
}

function smallest(histogram: Histogram): number {
  return histogram.totalCount === 0 ? 0 : histogram.getValueAtPercentile(0);
}

export function reportSeries(measurements: Measurements, percentiles: readonly number[]): SeriesReport[] {
  return Array.from(measurements, ({ name, histogram, statuses }) => ({
    name,
    operations: histogram.totalCount,
    averageNs: histogram.totalCount === 0 ? 0 : histogram.mean,
    minNs: smallest(histogram),
    maxNs: histogram.maxValue,
    percentilesNs: Object.fromEntries(percentiles.map((p) => [String(p), histogram.getValueAtPercentile(p)])),
    returns: Object.fromEntries(statuses),
  })).sort((a, b) => rank(a.name) - rank(b.name) || (a.name < b.name ? -1 : 1));
}

/** As Java's Double.toString writes it: always a fraction, an exponent from 10^7 on and below 10^-3. */
export function javaDouble(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value < 0 ? '-Infinity' : 'Infinity';
  const size = Math.abs(value);
  if (size === 0 || (size >= 1e-3 && size < 1e7)) {
    const text = String(value);
    return text.includes('.') ? text : `${text}.0`;
  }
  const [mantissa = '', exponent = ''] = value.toExponential().split('e');
  return `${mantissa.includes('.') ? mantissa : `${mantissa}.0`}E${Number(exponent)}`;
}

/** 95 -> 95th, 1 -> 1st, 99.9 -> 99.9, as YCSB writes them. */
function ordinal(percentile: number): string {
  if (!Number.isInteger(percentile)) return String(percentile);
  const tens = percentile % 100;
  const suffix = tens >= 11 && tens <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][percentile % 10] ?? 'th');
  return `${percentile}${suffix}`;
}

const us = (ns: number) => (ns / 1000).toFixed(3);

export function textReport(report: RunReport): string {
  const lines: string[] = [];
  const line = (metric: string, measurement: string, value: string | number) =>
    lines.push(`[${metric}], ${measurement}, ${value}`);
  line('OVERALL', 'RunTime(ms)', Math.round(report.runTimeMs));
  line('OVERALL', 'Throughput(ops/sec)', javaDouble(report.throughput));
  line('TOTAL_GCs', 'Count', report.gc.count);
  line('TOTAL_GC_TIME', 'Time(ms)', Math.round(report.gc.ms));
  line('TOTAL_GC_TIME_%', 'Time(%)', javaDouble(report.runTimeMs > 0 ? (report.gc.ms / report.runTimeMs) * 100 : 0));
  for (const series of report.series) {
    line(series.name, 'Operations', series.operations);
    line(series.name, 'AverageLatency(us)', us(series.averageNs));
    line(series.name, 'MinLatency(us)', us(series.minNs));
    line(series.name, 'MaxLatency(us)', us(series.maxNs));
    for (const [percentile, ns] of Object.entries(series.percentilesNs).sort(([a], [b]) => Number(a) - Number(b))) {
      line(series.name, `${ordinal(Number(percentile))}PercentileLatency(us)`, us(ns));
    }
    for (const [status, count] of Object.entries(series.returns)) line(series.name, `Return=${status}`, count);
  }
  const own = report.database.toUpperCase();
  for (const [name, value] of Object.entries(report.facts)) line(own, name, value);
  if (report.harnessNs !== undefined) line('HARNESS', 'CostPerOperation(us)', us(report.harnessNs));
  line('HARNESS', 'Seed', report.seed);
  return `${lines.join('\n')}\n`;
}

/**
 * Whether the run shows what it was meant to: no operation failed, no record read was wrong. A record that is not there
 * is no failure.
 */
export function reportFailures(report: RunReport): string | undefined {
  const bad: string[] = [];
  for (const { name, returns } of report.series) {
    for (const status of ['ERROR', 'UNEXPECTED_STATE']) {
      const count = returns[status];
      if (count !== undefined) bad.push(`${count} ${name} operations ended with ${status}`);
    }
  }
  return bad.length === 0 ? undefined : bad.join('; ');
}
