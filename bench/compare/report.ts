/** The comparison's results as text and as JSON. */
import { cpus, release } from 'node:os';
import type { Goal, Result } from './row.js';

function number(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString('en');
  return value >= 100 ? value.toFixed(0) : value.toFixed(2);
}

const words = { atLeast: 'at least', atMost: 'at most', below: 'below' } as const;
const goalText = (goal: Goal): string => `${words[goal.kind]} ${number(goal.value)} ${goal.unit}`;

export function machine(): string {
  return `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown CPU'}, Linux ${release()}, Node.js ${process.versions.node}`;
}

export function line(r: Result): string {
  const { median, low, high } = r.measured;
  return `${r.met ? 'met   ' : 'MISSED'}  ${r.name}\n        goal ${goalText(r.goal)}; measured ${number(median)} (${number(low)} to ${number(high)}): ${r.detail}`;
}

/** A list of { name, goal, measured, spread, met }. */
export function toJson(results: readonly Result[]): string {
  const rows = results.map((r) => ({
    name: r.name, goal: goalText(r.goal), measured: r.measured.median, spread: [r.measured.low, r.measured.high], met: r.met, detail: r.detail,
  }));
  return `${JSON.stringify(rows, undefined, 2)}\n`;
}
