/** Runs one seed, and on a violation runs it again with a trace: the same seed makes the same history. */
import { Violation } from './checker.js';
import type { CopyMistake } from './copies/server.js';
import { CopiesWorld } from './copies/world.js';
import { newCounters, type Counters } from './counters.js';
import { hashChain, type Application } from './machine.js';
import { metadataApplication, ownersApplication, replicasApplication } from './metadata-application.js';
import type { OwnerCounters } from './owner-life.js';
import type { Mistake } from './mistakes.js';
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
  /** Of the simulation of copies. */
  readonly copies?: Readonly<Record<string, number>>;
}

/** Whether a history in which this is left out is found wrong. */
export function finds(mistake: Mistake, seed: number, steps: number): boolean {
  const world = new World({ seed, application: ownersApplication(mistake), faults: LEASE_PACE });
  try {
    world.run(steps);
    return false;
  } catch (error) {
    if (error instanceof Violation && ['owner leases', 'shards', 'owner fairness'].includes(error.invariant))
      return true;
    throw error;
  }
}

/** The same of copies. */
export function findsCopy(mistake: CopyMistake, seed: number, steps: number): boolean {
  try {
    new CopiesWorld(seed, mistake).run(steps);
    return false;
  } catch (error) {
    if (error instanceof Violation) return true;
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
  replicas: replicasApplication,
} satisfies Record<string, (mistake?: Mistake) => Application>;
/** `copies` has a world of its own, in which the log is a list (copies/world.ts). */
export type ApplicationName = keyof typeof APPLICATIONS | 'copies';
export const APPLICATION_NAMES: readonly ApplicationName[] = [
  ...(Object.keys(APPLICATIONS) as (keyof typeof APPLICATIONS)[]),
  'copies',
];

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

function onceCopies(seed: number, steps: number, trace: Trace | undefined): Outcome {
  const world = new CopiesWorld(seed, undefined, (line) => trace?.note(line));
  trace?.clock(() => 1000 * world.nowMs);
  world.run(steps);
  return {
    steps: world.steps,
    counters: newCounters(),
    committed: world.entries,
    leaders: world.counters.leaders ?? 0,
    owners: undefined,
    copies: world.counters,
  };
}

function once(seed: number, steps: number, application: ApplicationName, trace: Trace | undefined): Outcome {
  if (application === 'copies') return onceCopies(seed, steps, trace);
  const world = new World({
    seed,
    application: APPLICATIONS[application](),
    ...(application === 'owners' || application === 'replicas' ? { faults: LEASE_PACE } : {}),
    ...(trace === undefined ? {} : { trace }),
  });
  while (world.steps < steps) world.run(Math.min(steps, world.steps + STRETCH));
  world.owners?.settle();
  return {
    steps: world.steps,
    counters: world.counters,
    committed: world.checker.committed,
    leaders: world.checker.leadersSeen,
    owners: world.owners?.counters,
    ...(world.owners?.copies === undefined ? {} : { copies: world.owners.copies.counters }),
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
