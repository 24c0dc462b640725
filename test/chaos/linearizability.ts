/**
 * Is there an order of a key's operations that agrees with time and with what the key would have answered?
 *
 * The search is Wing and Gong's ("Testing and Verifying Concurrent Objects", 1993): take as the next one any operation
 * that no other one precedes in time, if the model answers it so, and go on; go back when stuck. As Lowe has it
 * ("Testing for Linearizability", 2017), no configuration, that is the set of operations taken and the state, is
 * searched twice. Keys are checked each for itself: a history is linearizable if and only if that of every key is
 * (Herlihy and Wing's locality; Horn and Kroening, "Faster linearizability checking via P-compositionality", 2015, use
 * it so).
 *
 * Four things make histories with many open operations cheap; none of them changes the verdict.
 *   - An operation that fits and changes nothing is taken at once: in any order in which it comes later it can be moved
 *     here. (Unless the moment when something optional had to happen at the latest would pass by it.)
 *   - Open writes that somebody saw have an end (known-writes.ts). What is left open may be left out, and is tried
 *     last.
 *   - Open operations of one effect are used in the order of their calls: the earliest can stand wherever a later one
 *     can.
 *   - A configuration is the first operation that was not taken, those taken behind it, and the open ones used: short,
 *     however long the history.
 */
import { knownWrites } from './known-writes.js';
import { describe, isOpen, written, type Operation } from './operation.js';
import { ABSENT, rankVersions, register, UNSEEN, type Register, type State, type Step } from './register.js';

export type Verdict =
  | { readonly linearizable: true; readonly configurations: number }
  /**
   * `why` is for people, in several lines. undecided: the search was given up. at: when the operations were made that
   * fit in no order, where that is known.
   */
  | {
      readonly linearizable: false;
      readonly undecided: boolean;
      readonly why: string;
      readonly at?: { readonly fromNs: number; readonly toNs: number };
    };

/**
 * More configurations than a history of ours has ever needed a hundredth of; then the search is given up, which is no
 * acceptance.
 */
const CONFIGURATIONS_MAX = 2_000_000;

interface Entry {
  readonly operation: Operation;
  readonly call: number;
  readonly end: number;
  readonly step: Step;
}

interface Configuration {
  /** All musts before this one are taken. */
  readonly low: number;
  /** Musts taken from `low` on, ascending. */
  readonly beyond: readonly number[];
  /** Options used, ascending. */
  readonly used: readonly number[];
  /** Latest call among all that were taken. */
  readonly time: number;
  readonly state: State;
}

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

  const entries = known.operations
    .map((operation): Entry => ({
      operation,
      call: operation.call,
      end: operation.end,
      step: stepOf(operation, number, rank, known.versionOf),
    }))
    .sort((a, b) => a.call - b.call);
  const givenTo = new Map([...known.versionOf].map(([value, version]) => [rank(version), number(value)]));
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
    case 'put':
      return { ...step, kind: 'put', value: number(o.value), version: rank(versionOf.get(o.value)) };
    case 'delete':
      return { ...step, kind: 'delete', found: o.outcome === 'open' ? undefined : o.outcome === 'deleted' };
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

class Search {
  readonly #musts: readonly Entry[];
  readonly #options: readonly Entry[];
  readonly #register: Register;
  readonly #max: number;
  readonly #sinceNs: number | undefined;
  readonly #visited = new Set<string>();
  #furthest: Configuration = { low: 0, beyond: [], used: [], time: -Infinity, state: ABSENT };
  /** The same, as a number: musts taken. */
  #furthestTaken = -1;

  constructor(
    musts: readonly Entry[],
    options: readonly Entry[],
    apply: Register,
    max: number,
    sinceNs: number | undefined,
  ) {
    this.#sinceNs = sinceNs;
    this.#musts = musts;
    this.#options = options;
    this.#register = apply;
    this.#max = max;
  }

  run(): Verdict {
    // Next configurations, the best one last.
    const stack: Configuration[] = [this.#furthest];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      const here = this.#takeUnchanging(next);
      if (here.low === this.#musts.length) return { linearizable: true, configurations: this.#visited.size };
      const key = `${here.low}:${here.beyond.join()}:${here.used.join()}:${here.state.value}.${here.state.version}.${here.state.floor}`;
      if (this.#visited.has(key)) continue;
      this.#visited.add(key);
      if (this.#visited.size > this.#max)
        return {
          linearizable: false,
          undecided: true,
          why: `given up after ${this.#max} configurations\n${this.#stuck()}`,
        };
      const taken = here.low + here.beyond.length;
      if (taken > this.#furthestTaken) {
        this.#furthest = here;
        this.#furthestTaken = taken;
      }
      for (const one of this.#successors(here)) stack.push(one);
    }
    const waiting = [...this.#minimal(this.#furthest)].map((i) => this.#musts[i]!);
    const at = { fromNs: Math.min(...waiting.map((e) => e.call)), toNs: Math.max(...waiting.map((e) => e.end)) };
    return { linearizable: false, undecided: false, why: this.#stuck(), at };
  }

  /** Indices of the musts that may come next: each is called before any of the others ends. */
  *#minimal({ low, beyond }: Configuration): Generator<number> {
    let firstEnd = Infinity;
    let skip = 0;
    const found: number[] = [];
    for (let i = low; i < this.#musts.length; i++) {
      const one = this.#musts[i]!;
      if (one.call > firstEnd) break;
      if (beyond[skip] === i) {
        skip++;
        continue;
      }
      firstEnd = Math.min(firstEnd, one.end);
      found.push(i);
    }
    for (const i of found) if (this.#musts[i]!.call <= firstEnd) yield i;
  }

  /** A taken operation keeps the state's identity only if it changes nothing. */
  #takeUnchanging(configuration: Configuration): Configuration {
    let here = configuration;
    for (let again = true; again;) {
      again = false;
      for (const i of this.#minimal(here)) {
        const one = this.#musts[i]!;
        if (this.#register(here.state, one.step) !== here.state || this.#passesAnOption(here, one.call)) continue;
        here = this.#take(here, i, here.state);
        again = true;
        break;
      }
    }
    return here;
  }

  #passesAnOption({ time, used }: Configuration, to: number): boolean {
    return to > time && this.#options.some((one, i) => one.end >= time && one.end < to && !used.includes(i));
  }

  #take(here: Configuration, i: number, state: State): Configuration {
    const time = Math.max(here.time, this.#musts[i]!.call);
    if (i !== here.low) {
      const at = here.beyond.findIndex((taken) => taken > i);
      const beyond = at < 0 ? [...here.beyond, i] : [...here.beyond.slice(0, at), i, ...here.beyond.slice(at)];
      return { ...here, beyond, time, state };
    }
    let low = i + 1;
    let skip = 0;
    while (here.beyond[skip] === low) {
      skip++;
      low++;
    }
    return { ...here, low, beyond: here.beyond.slice(skip), time, state };
  }

  /** Least promising first: the stack's end is searched first. */
  #successors(here: Configuration): Configuration[] {
    const next: { readonly order: number; readonly configuration: Configuration }[] = [];
    let firstEnd = Infinity;
    for (const i of this.#minimal(here)) {
      const one = this.#musts[i]!;
      firstEnd = Math.min(firstEnd, one.end);
      const state = this.#register(here.state, one.step);
      if (state !== undefined) next.push({ order: one.end, configuration: this.#take(here, i, state) });
    }
    next.sort((a, b) => b.order - a.order);
    return [...this.#withOptions(here, firstEnd), ...next.map((n) => n.configuration)];
  }

  #withOptions(here: Configuration, firstEnd: number): Configuration[] {
    const effects = new Set<string>();
    const next: Configuration[] = [];
    for (const [i, one] of this.#options.entries()) {
      if (one.call > firstEnd) break;
      if (one.end < here.time || here.used.includes(i)) continue;
      const { kind, value, version, expected } = one.step;
      const effect = kind === 'put' || kind === 'swap' ? `${kind} ${value} ${version} ${expected}` : 'absent';
      // An earlier one of the same effect that can wait as long stands for this one.
      if (one.end === Infinity && effects.has(effect)) continue;
      if (one.end === Infinity) effects.add(effect);
      const state = this.#register(here.state, one.step);
      if (state === undefined || state === here.state || (state.value === 0 && here.state.value === 0)) continue;
      next.push({ ...here, used: [...here.used, i].sort((a, b) => a - b), time: Math.max(here.time, one.call), state });
    }
    return next;
  }

  /** Where the search that came furthest could not go on. */
  #stuck(): string {
    const here = this.#furthest;
    const waiting = [...this.#minimal(here)].map((i) => this.#musts[i]!);
    const from = Math.min(...waiting.map((e) => e.call), this.#musts[0]?.call ?? 0);
    const origin = this.#sinceNs ?? this.#musts[0]?.call ?? from;
    const writer = [...this.#musts, ...this.#options].find(
      (e) =>
        e.step.value === here.state.value && e.step.value > UNSEEN && (e.step.kind === 'put' || e.step.kind === 'swap'),
    );
    const state =
      here.state.value === 0
        ? 'absent'
        : writer === undefined
          ? 'a value that nobody saw'
          : (written(writer.operation) ?? '');
    const around = this.#musts.slice(Math.max(0, here.low - 12), here.low);
    return [
      `${here.low + here.beyond.length} of ${this.#musts.length} operations can be put in order; then the key is ${state}, and none of these can be next (ms):`,
      ...waiting.map((e) => `  ${describe(e.operation, origin)}`),
      'before them:',
      ...around.map((e) => `  ${describe(e.operation, origin)}`),
      ...(writer === undefined ? [] : ['that value comes from:', `  ${describe(writer.operation, origin)}`]),
    ].join('\n');
  }
}
