/**
 * What a seed lets go wrong, and how often. Each seed draws its own mixture (swarm testing): a run with everything at
 * once hides what only shows when something is absent.
 */
import type { Random } from '../support/random.js';

export interface Faults {
  /** Of a message, in 1/1000. */
  readonly drop: number;
  readonly duplicate: number;
  readonly longDelay: number;
  /** Microseconds. */
  readonly baseDelayUs: number;
  readonly longDelayUs: number;
  readonly diskUs: number;
  readonly slowDiskUs: number;
  /** Weights of what the next disturbance is; 0: never. */
  readonly weights: Readonly<Record<Disturbance, number>>;
  /** Mean time between two disturbances, and the least number of steps. */
  readonly disturbEveryUs: number;
  readonly disturbEverySteps: number;
  /** Ticks of members differ by this much, in 1/1000. */
  readonly skew: number;
  /** Mean time between two actions of the workload, and of membership changes in it. */
  readonly workEveryUs: number;
  readonly changePermille: number;
  /** The driver steps its member while the disk works, which the contract allows. */
  readonly stepsDuringWrites: boolean;
  readonly compactEvery: number;
  readonly keepEntries: number;
  readonly firstVoters: number;
}

export const DISTURBANCES = [
  'crash',
  'crash-machine',
  'crash-in-disk',
  'crash-in-driver',
  'fail-sync',
  'disk-full',
  'slow-disk',
  'rot',
  'pause',
  'clock-jump',
  'partition',
  'one-way',
  'heal',
  'campaign',
  'transfer',
  'leader-gone',
] as const;
export type Disturbance = (typeof DISTURBANCES)[number];

const ONE_IN = (random: Random, n: number) => random.below(n) === 0;

export function drawFaults(random: Random): Faults {
  const sometimes = (weight: number) => (ONE_IN(random, 3) ? 0 : weight);
  return {
    drop: random.pick([0, 0, 5, 20, 100]),
    duplicate: random.pick([0, 5, 50]),
    longDelay: random.pick([0, 5, 50]),
    baseDelayUs: random.pick([100, 300, 1000]),
    longDelayUs: random.pick([5_000, 50_000, 500_000]),
    diskUs: random.pick([50, 200, 1000]),
    slowDiskUs: random.pick([2_000, 20_000, 150_000]),
    weights: {
      crash: sometimes(6),
      'crash-machine': sometimes(6),
      'crash-in-disk': sometimes(10),
      'crash-in-driver': sometimes(10),
      'fail-sync': sometimes(3),
      'disk-full': sometimes(3),
      'slow-disk': sometimes(6),
      rot: sometimes(5),
      pause: sometimes(6),
      'clock-jump': sometimes(6),
      partition: sometimes(8),
      'one-way': sometimes(8),
      heal: 12,
      campaign: sometimes(3),
      transfer: sometimes(8),
      'leader-gone': sometimes(8),
    },
    disturbEveryUs: random.pick([20_000, 60_000, 200_000]),
    disturbEverySteps: random.pick([20, 100, 300]),
    skew: random.pick([0, 50, 300]),
    workEveryUs: random.pick([200, 500, 2000]),
    changePermille: random.pick([0, 20, 100]),
    stepsDuringWrites: ONE_IN(random, 2),
    compactEvery: random.pick([30, 150, 500]),
    keepEntries: random.pick([0, 5, 30]),
    firstVoters: random.pick([1, 2, 3, 3, 3, 3, 5, 5, 5, 5]),
  };
}
