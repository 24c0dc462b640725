/**
 * A load or a run from beginning to end: starts the benchmark threads, lets them go together, adds up what they
 * measured, and measures the harness itself against the no-op database.
 *
 * The clock runs from when the first thread begins, all being connected, until the last one is done. Not for: command
 * lines (server/cli), text (report.ts).
 */
import type { Worker } from 'node:worker_threads';
import { FarkvError, type ErrorCode } from '../../core/errors.js';
import { readRegular, TEXT_BYTES_MAX } from '../../net/regular-file.js';
import { startThread } from '../../native/package.js';
import type { DatabaseName } from './database-names.js';
import { DATABASE_PREFIXES } from './databases/open.js';
import type { Facts } from './databases/database.js';
import { parseLengthHistogram, type LengthHistogram } from './generators/histogram.js';
import { SequentialGenerator, SharedCounter } from './generators/shared-counter.js';
import { Measurements, type SeriesSnapshot } from './measurements.js';
import { LIMIT, parseParameters, type Parameters } from './parameters.js';
import type { Properties } from './properties.js';
import { allocateSignals, Signals, type GcFacts, type ThreadMessage, type ThreadTask } from './protocol.js';
import { reportSeries, type RunReport } from './report.js';
import { statusLine } from './status-line.js';

export interface RunOptions {
  readonly database: DatabaseName;
  readonly phase: 'load' | 'run';
  readonly properties: Properties;
  /** Called for each line that `-s` prints; without it none is made. */
  readonly onStatus?: (line: string) => void;
  readonly label?: string;
  /** Called about ten times a second with the operations done. */
  readonly onProgress?: (done: number, total: number) => void;
  /** What is worth a line on standard error: the first errors, the end of the time. */
  readonly onNotice?: (text: string) => void;
  /** Ends the run early; what was measured is reported. */
  readonly signal?: AbortSignal;
  /** False leaves out the measurement of the harness. */
  readonly harness?: boolean;
}

/** How long an interrupted run waits for the operations in flight. */
const ABORT_WAIT_MS = 2000;

type Done = Extract<ThreadMessage, { type: 'done' }>;

/** How long a status line waits for the intervals of all threads; one that is stuck in an operation is left out. */
const INTERVAL_WAIT_MS = 500;

class Run {
  readonly #options: RunOptions;
  readonly #p: Parameters;
  readonly #total: number;
  readonly #signals: Int32Array;
  readonly #memory: SharedArrayBuffer;
  readonly #workers: Worker[] = [];
  readonly #sum: Measurements;
  #interval: Measurements;
  #reported = 0;

  constructor(options: RunOptions, parameters: Parameters) {
    this.#options = options;
    this.#p = parameters;
    this.#total = options.phase === 'load' ? parameters.insertCount : parameters.operationCount;
    this.#memory = allocateSignals(parameters.threads);
    this.#signals = new Int32Array(this.#memory);
    this.#sum = new Measurements(parameters.measurementInterval);
    this.#interval = new Measurements(parameters.measurementInterval);
  }

  async go(): Promise<RunReport> {
    const stop = () => void (this.#signals[Signals.stop] = 1);
    let giveUp: () => void = () => undefined;
    const stuck = new Promise<never>(
      (_, reject) => (giveUp = () => reject(new FarkvError('ERR_ABORTED', 'interrupted; some operations did not end'))),
    );
    const timers: NodeJS.Timeout[] = [];
    const onAbort = () => {
      stop();
      timers.push(setTimeout(giveUp, ABORT_WAIT_MS));
    };
    this.#options.signal?.addEventListener('abort', onAbort);
    if (this.#options.signal?.aborted === true) onAbort();
    try {
      const threads = this.#tasks().map((task) => this.#start(task));
      await Promise.race([stuck, Promise.all(threads.map(({ ready }) => ready))]);
      const start = performance.now();
      for (const worker of this.#workers) worker.postMessage('go');
      if (this.#p.maxExecutionTime > 0) {
        timers.push(
          setTimeout(() => {
            this.#options.onNotice?.('Maximum time elapsed. Requesting stop for the workload.');
            stop();
          }, this.#p.maxExecutionTime * 1000),
        );
      }
      timers.push(...this.#watch(start));
      const done = await Promise.race([stuck, Promise.all(threads.map(({ done }) => done))]);
      return this.#report(done);
    } finally {
      for (const timer of timers) clearTimeout(timer);
      this.#options.signal?.removeEventListener('abort', onAbort);
      await Promise.all(this.#workers.map((worker) => worker.terminate()));
    }
  }

  #tasks(): ThreadTask[] {
    const { threads } = this.#p;
    const shared = {
      loads: SharedCounter.allocate(this.#p.insertStart),
      inserts: SharedCounter.allocate(this.#p.recordCount),
      sequence: SequentialGenerator.allocate(),
    };
    // More threads than operations would have nothing to do.
    const used = this.#total > 0 ? Math.min(threads, this.#total) : threads;
    const histogram = this.#histogram();
    return Array.from({ length: used }, (_, thread) => ({
      phase: this.#options.phase,
      database: this.#options.database,
      properties: this.#options.properties,
      parameters: { ...this.#p, threads: used },
      histogram,
      thread,
      operations: Math.floor(this.#total / used) + (thread < this.#total % used ? 1 : 0),
      shared,
      signals: this.#memory,
    }));
  }

  #histogram(): LengthHistogram | undefined {
    if (this.#p.fieldLengthDistribution !== 'histogram') return undefined;
    const path = this.#p.fieldLengthHistogram;
    try {
      return parseLengthHistogram(readRegular(path, TEXT_BYTES_MAX).toString());
    } catch (cause) {
      throw new FarkvError(
        'ERR_CONFIG',
        `property fieldlengthhistogram=${path}: ${cause instanceof Error ? cause.message : ''}`,
        { cause },
      );
    }
  }

  #start(task: ThreadTask): { readonly ready: Promise<void>; readonly done: Promise<Done> } {
    const worker = startThread('bench/ycsb/thread', { workerData: task });
    this.#workers.push(worker);
    let isReady: () => void = () => undefined;
    const ready = new Promise<void>((resolve) => (isReady = resolve));
    const done = new Promise<Done>((resolve, reject) => {
      worker.on('message', (message: ThreadMessage) => {
        switch (message.type) {
          case 'ready':
            isReady();
            break;
          case 'interval':
            this.#addInterval(message.series);
            break;
          case 'error':
            this.#options.onNotice?.(`${message.operation} failed: ${message.text}`);
            break;
          case 'done':
            resolve(message);
            break;
          case 'failed':
            reject(new FarkvError(message.code as ErrorCode, message.text));
            break;
        }
      });
      worker.on('error', reject);
      worker.on('exit', () =>
        reject(new FarkvError('ERR_INTERNAL', 'a benchmark thread ended before its work was done')),
      );
    });
    // A thread that fails while others still connect is reported by `ready`.
    done.catch(() => undefined);
    return { ready: Promise.race([ready, done.then(() => undefined)]), done };
  }

  #addInterval(series: readonly SeriesSnapshot[]): void {
    this.#sum.add(series);
    this.#interval.add(series);
    this.#reported++;
  }

  get #done(): number {
    let done = 0;
    for (let i = 0; i < this.#workers.length; i++) done += this.#signals[Signals.done + i * Signals.stride] ?? 0;
    return done;
  }

  #watch(start: number): NodeJS.Timeout[] {
    const timers: NodeJS.Timeout[] = [];
    const { onProgress, onStatus } = this.#options;
    if (onProgress) timers.push(setInterval(() => onProgress(this.#done, this.#total), 100));
    if (onStatus) {
      let last = { at: start, done: 0 };
      timers.push(
        setInterval(() => {
          this.#reported = 0;
          this.#interval = new Measurements(this.#p.measurementInterval);
          Atomics.add(this.#signals, Signals.interval, 1);
          const asked = performance.now();
          const print = () => {
            if (this.#reported < this.#workers.length && performance.now() - asked < INTERVAL_WAIT_MS) {
              timers.push(setTimeout(print, 10));
              return;
            }
            onStatus(this.#status(start, last));
            last = { at: performance.now(), done: this.#done };
          };
          print();
        }, this.#p.statusIntervalSeconds * 1000),
      );
    }
    return timers;
  }

  #status(start: number, last: { readonly at: number; readonly done: number }): string {
    const now = performance.now();
    const done = this.#done;
    return statusLine({
      label: this.#options.label ?? '',
      now: new Date(),
      elapsedMs: now - start,
      operations: done,
      intervalOperations: done - last.done,
      intervalMs: now - last.at,
      todo: Math.max(0, this.#total - done),
      interval: this.#interval,
    });
  }

  #report(done: readonly Done[]): RunReport {
    const runTimeMs =
      Math.max(...done.map((thread) => thread.endMs)) - Math.min(...done.map((thread) => thread.startMs));
    for (const { series } of done) this.#sum.add(series);
    const operations = done.reduce((sum, thread) => sum + thread.operations, 0);
    this.#options.onProgress?.(operations, this.#total);
    const gc = done.reduce<GcFacts>(
      (sum, thread) => ({ count: sum.count + thread.gc.count, ms: sum.ms + thread.gc.ms }),
      { count: 0, ms: 0 },
    );
    return {
      database: this.#options.database,
      phase: this.#options.phase,
      runTimeMs,
      operations,
      throughput: runTimeMs > 0 ? (1000 * operations) / runTimeMs : 0,
      gc,
      series: reportSeries(this.#sum, this.#p.percentiles),
      facts: joinFacts(done.map((thread) => thread.facts)),
      harnessNs: undefined,
      seed: this.#p.seed,
    };
  }
}

/**
 * What all threads' databases say: texts that differ stand side by side, counts are added, ratios are those of the
 * sums.
 */
export function joinFacts(all: readonly Facts[]): Record<string, string | number> {
  const joined: Record<string, string | number> = {};
  const texts = new Map<string, Set<string>>();
  const counts = new Map<string, number>();
  for (const facts of all) {
    for (const [name, text] of Object.entries(facts.texts)) texts.set(name, (texts.get(name) ?? new Set()).add(text));
    for (const [name, count] of Object.entries(facts.counts)) counts.set(name, (counts.get(name) ?? 0) + count);
  }
  for (const [name, set] of texts) joined[name] = [...set].join(' ');
  for (const [name, count] of counts) joined[name] = count;
  for (const [name, [of, per]] of Object.entries(all[0]?.ratios ?? {})) {
    const below = counts.get(per) ?? 0;
    if (below > 0) joined[name] = Number(((counts.get(of) ?? 0) / below).toFixed(4));
  }
  return joined;
}

function refuse(options: RunOptions, p: Parameters): void {
  if (p.recordCount === 0) throw new FarkvError('ERR_CONFIG', 'property recordcount is missing');
  if (options.phase === 'load') {
    if (p.insertCount <= LIMIT) return;
    throw new FarkvError(
      'ERR_CONFIG',
      `one load inserts at most ${LIMIT} records, and insertcount=${p.insertCount}: load them in parts, by insertstart and insertcount`,
    );
  }
  if (p.proportions.SCAN > 0) {
    throw new FarkvError(
      'ERR_UNSUPPORTED',
      'NOT_IMPLEMENTED: this workload needs ordered scans (scanproportion > 0), which a hash table does not have',
    );
  }
  if (p.operationCount === 0 && p.maxExecutionTime === 0) {
    throw new FarkvError(
      'ERR_CONFIG',
      'property operationcount is missing (0 with a maxexecutiontime runs until the time is over)',
    );
  }
}

/** Reads and checks the properties, then does the load or the run. Throws FarkvError for what makes it impossible. */
export async function runBenchmark(options: RunOptions): Promise<RunReport> {
  const parameters = parseParameters(options.properties, DATABASE_PREFIXES, (names) =>
    options.onNotice?.(`properties of other databases are ignored: ${names.join(', ')}`),
  );
  refuse(options, parameters);
  const report = await new Run(options, parameters).go();
  if (options.harness === false || options.signal?.aborted === true) return report;
  return { ...report, harnessNs: await harnessCost(options.phase, options.properties) };
}

const HARNESS_OPERATIONS = 500_000;

/**
 * The same loop in one thread against the no-op database, at full speed: nanoseconds of an operation before a store has
 * done anything.
 */
export async function harnessCost(phase: 'load' | 'run', properties: Properties): Promise<number> {
  const given = parseParameters(properties, DATABASE_PREFIXES);
  const loaded = phase === 'load' ? Math.min(HARNESS_OPERATIONS, given.insertCount) : given.insertCount;
  const parameters: Parameters = {
    ...given,
    threads: 1,
    outstanding: 1,
    target: 0,
    maxExecutionTime: 0,
    dataIntegrity: false,
    operationCount: HARNESS_OPERATIONS,
    insertCount: loaded,
  };
  const report = await new Run({ database: 'basic', phase, properties: new Map() }, parameters).go();
  return (report.runTimeMs * 1e6) / Math.max(1, report.operations);
}
