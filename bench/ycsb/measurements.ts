/**
 * What one benchmark thread measured: for each operation a histogram of nanoseconds (HdrHistogram, three digits) and
 * the statuses counted.
 *
 * As in YCSB an operation that failed counts under its name with -FAILED, its status under the plain name; intended
 * latencies, counted from when the operation should have begun, stand under Intended-NAME when both are asked for.
 * Threads send snapshots to the main thread, which adds them up.
 */
import { build, decodeFromCompressedBase64, encodeIntoCompressedBase64, type Histogram } from 'hdr-histogram-js';
import type { MeasurementInterval } from './parameters.js';

export type Status = 'OK' | 'NOT_FOUND' | 'ERROR' | 'UNEXPECTED_STATE' | 'NOT_IMPLEMENTED';

/** An hour; longer latencies count as one. */
const HIGHEST_NS = 3.6e12;

export function newHistogram(): Histogram {
  return build({
    bitBucketSize: 32,
    autoResize: false,
    lowestDiscernibleValue: 1,
    highestTrackableValue: HIGHEST_NS,
    numberOfSignificantValueDigits: 3,
  });
}

export interface Series {
  readonly name: string;
  readonly histogram: Histogram;
  readonly statuses: Map<Status, number>;
}

/** A series on its way between threads. */
export interface SeriesSnapshot {
  readonly name: string;
  readonly histogram: string;
  readonly statuses: readonly (readonly [Status, number])[];
}

export class Measurements {
  readonly #interval: MeasurementInterval;
  readonly #series = new Map<string, Series>();

  constructor(interval: MeasurementInterval = 'op') {
    this.#interval = interval;
  }

  /**
   * Times in nanoseconds on one clock. intended: when the operation should have begun; equal to start where nobody
   * said.
   */
  operation(name: string, status: Status, intended: number, start: number, end: number): void {
    const measured = status === 'OK' ? name : `${name}-FAILED`;
    if (this.#interval !== 'intended') this.latency(measured, end - start);
    if (this.#interval !== 'op') this.latency(this.#intendedName(measured), end - intended);
  }

  status(name: string, status: Status): void {
    const { statuses } = this.#of(name);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }

  latency(name: string, ns: number): void {
    this.#of(name).histogram.recordValue(ns < 0 ? 0 : ns > HIGHEST_NS ? HIGHEST_NS : Math.round(ns));
  }

  *[Symbol.iterator](): Generator<Series> {
    for (const series of this.#series.values()) {
      if (series.histogram.totalCount > 0 || series.statuses.size > 0) yield series;
    }
  }

  snapshot(): SeriesSnapshot[] {
    return Array.from(this, ({ name, histogram, statuses }) => ({
      name,
      histogram: encodeIntoCompressedBase64(histogram),
      statuses: [...statuses],
    }));
  }

  add(snapshots: readonly SeriesSnapshot[]): void {
    for (const { name, histogram, statuses } of snapshots) {
      const series = this.#of(name);
      series.histogram.add(decodeFromCompressedBase64(histogram, 32));
      for (const [status, count] of statuses) series.statuses.set(status, (series.statuses.get(status) ?? 0) + count);
    }
  }

  /** Forgets what was measured; the series stay allocated. */
  reset(): void {
    for (const { histogram, statuses } of this.#series.values()) {
      histogram.reset();
      statuses.clear();
    }
  }

  #intendedName(name: string): string {
    return this.#interval === 'intended' ? name : `Intended-${name}`;
  }

  #of(name: string): Series {
    let series = this.#series.get(name);
    if (series === undefined) {
      series = { name, histogram: newHistogram(), statuses: new Map() };
      this.#series.set(name, series);
    }
    return series;
  }
}
