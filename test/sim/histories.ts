/** Histories of seeds for tests: what is broken in one fails the test, with the command that replays it. */
import type { ExecutionContext } from 'ava';
import { simulate, SimulationFailure, type Outcome } from './simulate.js';

export interface Histories {
  readonly first: number;
  readonly last: number;
  readonly application?: Parameters<typeof simulate>[2];
}

/** Each of 10,000 steps; what has happened in it is given to `seen`. */
export function histories(
  t: ExecutionContext,
  { first, last, application }: Histories,
  seen: (outcome: Outcome) => void = () => undefined,
): void {
  for (let seed = first; seed <= last; seed++) {
    try {
      seen(simulate(seed, 10_000, application));
    } catch (error) {
      if (!(error instanceof SimulationFailure)) throw error;
      t.fail(error.message);
    }
  }
  t.pass();
}

/** Counts together what happened in several histories. */
export function add(total: Record<string, number>, counts: object = {}): void {
  for (const [name, count] of Object.entries<number>({ ...counts })) total[name] = (total[name] ?? 0) + count;
}
