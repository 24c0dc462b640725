/**
 * Is there an order of a key's operations that agrees with time and with what the key would have answered? Here a
 * history becomes musts, options and a register in numbers; search.ts looks for the order.
 *
 * Keys are checked each for itself: a history is linearizable if and only if that of every key is (Herlihy and Wing's
 * locality; Horn and Kroening, "Faster linearizability checking via P-compositionality", 2015, use it so).
 */
import { knownWrites } from './known-writes.js';
import { isOpen, written, type Operation } from './operation.js';
import { rankVersions, register, UNSEEN, valueNeeded, type Step } from './register.js';
import { Search, type Entry, type Verdict } from './search.js';

/**
 * More configurations than a history of ours has ever needed a hundredth of; then the search is given up, which is no
 * acceptance.
 */
const CONFIGURATIONS_MAX = 2_000_000;

/**
 * The history of one key, in any order. `sinceNs`: times in reports count from there; by default from its first
 * operation.
 */
export function checkKey(
  history: readonly Operation[],
  configurationsMax = CONFIGURATIONS_MAX,
  sinceNs?: number,
): Verdict {
  const known = knownWrites(history);
  if (typeof known === 'string') return { linearizable: false, undecided: false, why: known };
  const ranks = rankVersions(known.operations, known.versionOf);
  const values = new Map<string, number>();
  for (const value of known.seen) values.set(value, UNSEEN + 1 + values.size);
  const number = (value: string | undefined): number => (value === undefined ? 0 : (values.get(value) ?? UNSEEN));
  const rank = (version: bigint | undefined): number => (version === undefined ? 0 : (ranks.get(version) ?? 0));

  const givenTo = new Map([...known.versionOf].map(([value, version]) => [rank(version), number(value)]));
  const entries = known.operations
    .map((operation): Entry => {
      const { call, end } = operation;
      const step = stepOf(operation, number, rank, known.versionOf);
      const value = valueNeeded(step, givenTo);
      return { operation, call, end, step, needs: value > UNSEEN ? value : 0 };
    })
    .sort((a, b) => a.call - b.call);
  const optional = (e: Entry): boolean => e.operation.kind === 'loss' || (isOpen(e.operation) && e.end === Infinity);
  return new Search(
    entries.filter((e) => !optional(e)),
    entries.filter(optional),
    register(givenTo),
    configurationsMax,
    sinceNs,
  ).run();
}

function stepOf(
  o: Operation,
  number: (value: string | undefined) => number,
  rank: (version: bigint | undefined) => number,
  versionOf: ReadonlyMap<string, bigint>,
): Step {
  const step: Step = { kind: 'loss', value: 0, version: 0, expected: 0, found: undefined };
  switch (o.kind) {
    case 'get':
      return { ...step, kind: 'get', value: number(o.value) };
    case 'has':
      return { ...step, kind: 'has' };
    case 'put':
      return { ...step, kind: 'put', value: number(o.value), version: rank(versionOf.get(o.value)) };
    case 'delete':
      return {
        ...step,
        kind: 'delete',
        found: o.outcome === 'deleted' ? true : o.outcome === 'absent' ? false : undefined,
      };
    case 'swap': {
      const expected = rank(o.expected);
      if (typeof o.outcome === 'object' && !o.outcome.swapped)
        return { ...step, kind: 'lost-swap', expected, version: rank(o.outcome.version) };
      const value = written(o);
      return {
        ...step,
        kind: 'swap',
        expected,
        value: number(value),
        version: value === undefined ? 0 : rank(versionOf.get(value)),
      };
    }
    case 'loss':
      return step;
  }
}
