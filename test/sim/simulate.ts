/** Runs one seed, and on a violation runs it again with a trace: the same seed makes the same history. */
import { Violation } from './checker.js';
import type { Counters } from './counters.js';
import { hashChain, type Application } from './machine.js';
import { metadataApplication, ownersApplication } from './metadata-application.js';
import type { OwnerCounters } from './owner-life.js';
import type { Mistake } from './owners.js';
import { Trace } from './trace.js';
import { World } from './world.js';

const TRACE_LINES = 120;
/** Steps between two calms in a long run. */
const STRETCH = 50_000;

/** Leases last for many ticks: with less to do in each, more of them begin and end in a history. */
const LEASE_PACE = { workEveryUs: 20_000, disturbEverySteps: 20 } as const;

export interface Outcome {
  readonly steps: number;
  readonly counters: Counters;
  readonly committed: number;
  readonly leaders: number;
  readonly owners: OwnerCounters | undefined;
}

/** Whether a history in which this is left out is found wrong. */
export function finds(mistake: Mistake, seed: number, steps: number): boolean {
  const world = new World({ seed, application: ownersApplication(mistake), faults: LEASE_PACE });
  try {
    world.run(steps);
    return false;
  } catch (error) {
    if (
      error instanceof Violation &&
      ['owner leases', 'moved shards', 'shards', 'owner fairness'].includes(error.invariant)
    )
      return true;
    throw error;
  }
}

/** A violation with all that is needed to look into it. Anything else that a run throws is reported the same way. */
export class SimulationFailure extends Error {
  constructor(
    readonly seed: number,
    violated: string,
    trace: string,
    replay: string,
    options: ErrorOptions,
  ) {
    super(`seed ${seed}: ${violated}\n${trace}\nreplay: ${replay}`, options);
    this.name = 'SimulationFailure';
  }
}

/** What members run: a chain of hashes, which costs next to nothing, or the metadata itself. */
export const APPLICATIONS = {
  hashes: () => hashChain,
  metadata: metadataApplication,
  owners: ownersApplication,
} satisfies Record<string, (mistake?: Mistake) => Application>;
export type ApplicationName = keyof typeof APPLICATIONS;

export function replayCommand(seed: number, steps: number, application: ApplicationName): string {
  return `npm run sim -- --seed ${seed} --steps ${steps}${application === 'hashes' ? '' : ` --application ${application}`}`;
}

export function simulate(seed: number, steps: number, application: ApplicationName = 'hashes'): Outcome {
  try {
    return once(seed, steps, application, undefined);
  } catch (error) {
    throw explain(seed, steps, application, error);
  }
}

function once(seed: number, steps: number, application: ApplicationName, trace: Trace | undefined): Outcome {
  const world = new World({
    seed,
    application: APPLICATIONS[application](),
    ...(application === 'owners' ? { faults: LEASE_PACE } : {}),
    ...(trace === undefined ? {} : { trace }),
  });
  while (world.steps < steps) world.run(Math.min(steps, world.steps + STRETCH));
  return {
    steps: world.steps,
    counters: world.counters,
    committed: world.checker.committed,
    leaders: world.checker.leadersSeen,
    owners: world.owners?.counters,
  };
}

function explain(seed: number, steps: number, application: ApplicationName, cause: unknown): SimulationFailure {
  const trace = new Trace(TRACE_LINES);
  try {
    once(seed, steps, application, trace);
  } catch {
    // The first error is the one that is told; this run is for the trace.
  }
  const violated = cause instanceof Violation ? `violated: ${cause.message}` : `broke: ${String(cause)}`;
  return new SimulationFailure(seed, violated, trace.toString(), replayCommand(seed, steps, application), { cause });
}
