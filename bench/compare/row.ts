/**
 * A row of the comparison: what is measured, the goal, and what came out. Both sides of a ratio are measured in turn,
 * round by round, so that a machine that drifts does not decide.
 */
import { median, ratios, spread, type Spread } from './statistics.js';
import type { Lab } from './lab.js';

export interface Goal {
  readonly kind: 'atLeast' | 'atMost' | 'below';
  readonly value: number;
  readonly unit: string;
}

/**
 * What each side did by itself, operations a second, where a chart is to show more than two sides beside one another.
 */
export interface Group {
  readonly title: string;
  readonly sides: readonly { readonly name: string; readonly rate: Spread }[];
}

/** One figure with its goal. Most rows have one, some several. */
export interface Part {
  readonly title: string;
  readonly goal: Goal;
  /** In the goal's unit. */
  readonly measured: Spread;
  readonly met: boolean;
  /** The sides of the ratio, for a person: `farkv 0.41 us, lmdb 1.32 us`. */
  readonly detail: string;
  /** Parts that are ratios of sides of one group have the same object. */
  readonly group?: Group;
}

/** Rows of one theme stand in one chart of the report. */
export type Theme = 'GETs' | 'PUTs' | 'Servers' | 'READs' | 'YCSB' | 'Memory';

export interface RowResult {
  /** Stable: programs look for it. */
  readonly name: string;
  readonly theme: Theme;
  readonly work: string;
  readonly parts: readonly Part[];
  readonly seconds: number;
  /** The machine's load average when it began: others may use it too. */
  readonly load?: number;
  /** Why there are no parts. */
  readonly problem?: string;
}

export function reached(goal: Goal, value: number): boolean {
  if (goal.kind === 'atLeast') return value >= goal.value;
  return goal.kind === 'atMost' ? value <= goal.value : value < goal.value;
}

/** How far on the goal's good side a value is: 1 exactly there, 2 twice as good, 0.5 half as good. */
export function progress(goal: Goal, value: number): number {
  if (goal.kind === 'atLeast') return value / goal.value;
  return value <= 0 ? Number.POSITIVE_INFINITY : goal.value / value;
}

export function part(title: string, goal: Goal, values: readonly number[], detail: string): Part {
  const measured = spread(values);
  return { title, goal, measured, met: reached(goal, measured.median), detail };
}

/** The parts of each group, in their order; those of none stand under undefined. */
export function byGroup(parts: readonly Part[]): Map<Group | undefined, Part[]> {
  const groups = new Map<Group | undefined, Part[]>();
  for (const p of parts) groups.set(p.group, [...(groups.get(p.group) ?? []), p]);
  return groups;
}

export const rowMet = (row: RowResult): boolean => row.parts.length > 0 && row.parts.every((p) => p.met);

/** The part that is farthest behind its goal, or least ahead: what a row of several stands and falls with. */
export function weakest(row: RowResult): Part | undefined {
  return [...row.parts].sort(
    (a, b) =>
      Number(a.met) - Number(b.met) || progress(a.goal, a.measured.median) - progress(b.goal, b.measured.median),
  )[0];
}

/** One side of a comparison. `run` measures one round and answers with a time or a rate. */
export interface Side {
  readonly name: string;
  run(): Promise<number>;
}

type Rounds = Pick<Lab, 'rounds' | 'signal'>;

/** `rounds` rounds of each side, in turn; the first round of each is a warm-up and is thrown away. */
export async function interleave(lab: Rounds, sides: readonly Side[]): Promise<number[][]> {
  const measured: number[][] = sides.map(() => []);
  for (let round = 0; round <= lab.rounds; round++) {
    for (const [i, side] of sides.entries()) {
      lab.signal.throwIfAborted();
      const value = await side.run();
      if (round > 0) measured[i]?.push(value);
    }
  }
  return measured;
}

/** farkv against a peer. Times: how many times lower farkv's is; rates: how many times higher. */
export async function compare(
  lab: Rounds,
  title: string,
  goal: Goal,
  farkv: Side,
  peer: Side,
  what: 'time' | 'rate',
): Promise<Part> {
  const [ours = [], theirs = []] = await interleave(lab, [farkv, peer]);
  const show = what === 'time' ? nanoseconds : perSecond;
  return part(
    title,
    goal,
    what === 'time' ? ratios(theirs, ours) : ratios(ours, theirs),
    `${farkv.name} ${show(median(ours))}, ${peer.name} ${show(median(theirs))}`,
  );
}

export const atLeast = (value: number, unit: string): Goal => ({ kind: 'atLeast', value, unit });
export const atMost = (value: number, unit: string): Goal => ({ kind: 'atMost', value, unit });

export const nanoseconds = (ns: number): string => (ns < 1000 ? `${ns.toFixed(0)} ns` : `${(ns / 1000).toFixed(2)} us`);
export const perSecond = (rate: number): string => `${Math.round(rate).toLocaleString('en')}/s`;
