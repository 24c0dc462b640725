/** Parts whose goal one side sets for another: so many times as much, or no worse than its worst round. */
import type { Lab } from './lab.js';
import { atMost, interleave, part, type Goal, type Part, type Side } from './row.js';
import { median, ratios, spread } from './statistics.js';

/** The first side as so many times the second. */
export async function beside(
  lab: Lab,
  title: string,
  goal: Goal,
  sides: readonly [Side, Side],
  show: (value: number) => string,
): Promise<Part> {
  const [first = [], second = []] = await interleave(lab, sides);
  const detail = sides.map(({ name }, i) => `${name} ${show(median([first, second][i] ?? []))}`).join(', ');
  return part(title, goal, ratios(first, second), detail);
}

/** The first side is at most the worst round of the second. */
export async function unchanged(
  lab: Lab,
  title: string,
  unit: string,
  [one, other]: readonly [Side, Side],
  show: (value: number) => string,
): Promise<Part> {
  const [ours = [], theirs = []] = await interleave(lab, [one, other]);
  const { median: middle, low, high } = spread(theirs);
  return part(title, atMost(high, unit), ours, `${other.name} ${show(middle)} (${show(low)} to ${show(high)})`);
}
