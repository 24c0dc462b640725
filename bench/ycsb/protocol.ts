/** What the main thread and the benchmark threads of a run say to each other. */
import type { Facts } from './databases/database.js';
import type { LengthHistogram } from './generators/histogram.js';
import type { SeriesSnapshot } from './measurements.js';
import type { Parameters } from './parameters.js';
import type { SharedState } from './workload.js';

export interface ThreadTask {
  readonly phase: 'load' | 'run';
  readonly database: string;
  readonly properties: ReadonlyMap<string, string>;
  readonly parameters: Parameters;
  readonly histogram: LengthHistogram | undefined;
  readonly thread: number;
  /** Operations that this thread does; 0: until it is told to stop. */
  readonly operations: number;
  readonly shared: SharedState;
  /** Int32: see Signals. */
  readonly signals: SharedArrayBuffer;
}

/** Words of `signals`. A thread that never returns to its event loop still sees and sets them. */
export const Signals = {
  /** 1: end as soon as the operations in flight are done. */
  stop: 0,
  /** Rises when the main thread wants each thread's interval measurements. */
  interval: 1,
  /** From here on one word for each thread, 16 apart so that they share no cache line: operations done. */
  done: 16,
  stride: 16,
} as const;

export function allocateSignals(threads: number): SharedArrayBuffer {
  return new SharedArrayBuffer(4 * (Signals.done + threads * Signals.stride));
}

export interface GcFacts {
  readonly count: number;
  readonly ms: number;
}

export type ThreadMessage =
  | { readonly type: 'ready' }
  | { readonly type: 'interval'; readonly interval: number; readonly series: readonly SeriesSnapshot[] }
  | { readonly type: 'error'; readonly operation: string; readonly text: string }
  /**
   * Times are milliseconds of the wall clock, in microsecond steps: threads have different origins of
   * performance.now().
   */
  | {
      readonly type: 'done';
      readonly operations: number;
      readonly startMs: number;
      readonly endMs: number;
      readonly series: readonly SeriesSnapshot[];
      readonly facts: Facts;
      readonly gc: GcFacts;
    }
  | { readonly type: 'failed'; readonly code: string; readonly text: string };
