/** Runs one seed, and on a violation runs it again with a trace: the same seed makes the same history. */
import { Violation } from './checker.js';
import type { Faults } from './faults.js';
import { Trace } from './trace.js';
import { World, type Counters } from './world.js';

const TRACE_LINES = 120;
/** Steps between two calms in a long run. */
const STRETCH = 50_000;

export interface Outcome {
  readonly steps: number;
  readonly counters: Counters;
  readonly committed: number;
  readonly leaders: number;
}

/** A violation with all that is needed to look into it. Anything else that a run throws is reported the same way. */
export class SimulationFailure extends Error {
  constructor(
    readonly seed: number,
    readonly steps: number,
    readonly violated: string,
    readonly trace: string,
    options: ErrorOptions,
  ) {
    super(`seed ${seed}: ${violated}\n${trace}\nreplay: ${replayCommand(seed, steps)}`, options);
    this.name = 'SimulationFailure';
  }
}

export function replayCommand(seed: number, steps: number): string {
  return `npm run sim -- --seed ${seed} --steps ${steps}`;
}

export function simulate(seed: number, steps: number, faults?: Partial<Faults>): Outcome {
  try {
    return once(seed, steps, faults, undefined);
  } catch (error) {
    throw explain(seed, steps, faults, error);
  }
}

function once(seed: number, steps: number, faults: Partial<Faults> | undefined, trace: Trace | undefined): Outcome {
  const world = new World({ seed, ...(trace === undefined ? {} : { trace }), ...(faults === undefined ? {} : { faults }) });
  while (world.steps < steps) world.run(Math.min(steps, world.steps + STRETCH));
  return { steps: world.steps, counters: world.counters, committed: world.checker.committed, leaders: world.checker.leadersSeen };
}

function explain(seed: number, steps: number, faults: Partial<Faults> | undefined, cause: unknown): SimulationFailure {
  const trace = new Trace(TRACE_LINES);
  try {
    once(seed, steps, faults, trace);
  } catch {
    // The first error is the one that is told; this run is for the trace.
  }
  const violated = cause instanceof Violation ? `violated: ${cause.message}` : `broke: ${String(cause)}`;
  return new SimulationFailure(seed, steps, violated, trace.toString(), { cause });
}
