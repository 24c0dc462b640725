/**
 * A row of the comparison: what is measured, the goal, and what came out. Both sides of a ratio are measured in turn, round by round, so
 * that a machine that drifts does not decide.
 */
import { ratios, spread, type Spread } from './statistics.js';

export type Goal =
  | { readonly kind: 'atLeast' | 'atMost'; readonly value: number; readonly unit: string }
  | { readonly kind: 'below'; readonly value: number; readonly unit: string };

export interface Result {
  readonly name: string;
  readonly goal: Goal;
  /** In the goal's unit. */
  readonly measured: Spread;
  readonly met: boolean;
  /** The sides of the ratio, for a person: `farkv 0.41 us, lmdb 1.32 us`. */
  readonly detail: string;
}

export function met(goal: Goal, value: number): boolean {
  if (goal.kind === 'atLeast') return value >= goal.value;
  return goal.kind === 'atMost' ? value <= goal.value : value < goal.value;
}

export function result(name: string, goal: Goal, values: readonly number[], detail: string): Result {
  const measured = spread(values);
  return { name, goal, measured, met: met(goal, measured.median), detail };
}

/** One side of a comparison. `run` measures one round and answers with a time or a rate. */
export interface Side {
  readonly name: string;
  run(): Promise<number>;
}

export const median = (values: readonly number[]): number => spread(values).median;

/** `rounds` rounds of each side, in turn; the first round of each is a warm-up and is thrown away. */
export async function interleave(sides: readonly Side[], rounds: number): Promise<number[][]> {
  const measured: number[][] = sides.map(() => []);
  for (let round = 0; round <= rounds; round++) {
    for (const [i, side] of sides.entries()) {
      const value = await side.run();
      if (round > 0) measured[i]?.push(value);
    }
  }
  return measured;
}

/** farkv against a peer. Times: how many times lower farkv's is; rates: how many times higher. */
export async function compare(
  name: string, goal: Goal, farkv: Side, peer: Side, what: 'time' | 'rate', rounds: number, show: (value: number) => string,
): Promise<Result> {
  const [ours = [], theirs = []] = await interleave([farkv, peer], rounds);
  const values = what === 'time' ? ratios(theirs, ours) : ratios(ours, theirs);
  return result(name, goal, values, `${farkv.name} ${show(median(ours))}, ${peer.name} ${show(median(theirs))}`);
}

export const nanoseconds = (ns: number): string => (ns < 1000 ? `${ns.toFixed(0)} ns` : `${(ns / 1000).toFixed(2)} us`);
export const perSecond = (rate: number): string => `${Math.round(rate).toLocaleString('en')}/s`;
