/**
 * The search for an order of one key's operations. Not for: reading a history (linearizability.ts), what a key answers
 * (register.ts).
 *
 * It is Wing and Gong's ("Testing and Verifying Concurrent Objects", 1993): take as the next one any operation that no
 * other one precedes in time, if the model answers it so, and go on; go back when stuck. As Lowe has it ("Testing for
 * Linearizability", 2017), no configuration, that is the set of operations taken and the state, is searched twice.
 *
 * A must is an operation that took effect; an option may be left out: an open change that nobody saw, or a loss. Seven
 * things make histories with many open and many overlapping operations cheap, to accept and to refuse. None of them
 * changes the verdict.
 *   1. A must that fits and changes nothing is taken at once: in any order in which it comes later it can be moved
 *      here. (Unless the moment when something optional had to happen at the latest would pass by it, or it would
 *      have changed something there: a delete that did not say whether there was anything.)
 *   2. Open writes that somebody saw are musts with an end (known-writes.ts). Options are tried last.
 *   3. Options of one effect are used in the order of their calls: the earliest can stand wherever a later one can.
 *   4. Of the musts of one effect that may come next, only the one that ends first is tried: where another one comes
 *      here, the two can change places. (With the same exception as in 1.)
 *   5. A value is not replaced while a must is left that needs it: each value is written once, so nothing brings it
 *      back. (Values of a register that are unique: Gibbons and Korach, "Testing Shared Memories", 1997.)
 *   6. A configuration that differs from a searched one by more options used is not searched (searched.ts).
 *   7. A configuration is the first must that was not taken, those taken behind it, and the options used: short,
 *      however long the history.
 */
import { describe, written, type Operation } from './operation.js';
import { ABSENT, UNSEEN, type Register, type State, type Step } from './register.js';
import { Searched } from './searched.js';

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

export interface Entry {
  readonly operation: Operation;
  readonly call: number;
  readonly end: number;
  readonly step: Step;
  /** The value that the key must have, where that is one that somebody saw; else 0. */
  readonly needs: number;
}

export interface Configuration {
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

const effectOf = ({ kind, value, version, expected, found }: Step): string =>
  `${kind} ${value} ${version} ${expected} ${found}`;

/** It fits an absent key and a present one, and changes only that. */
const mayChange = ({ kind, found }: Step): boolean => kind === 'delete' && found === undefined;

export class Search {
  readonly #musts: readonly Entry[];
  readonly #options: readonly Entry[];
  readonly #register: Register;
  readonly #max: number;
  readonly #sinceNs: number | undefined;
  /** Value -> the musts that need it, ascending. */
  readonly #needing = new Map<number, number[]>();
  readonly #searched = new Searched();
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
    for (const [i, { needs }] of musts.entries()) {
      const all = this.#needing.get(needs);
      if (all !== undefined) all.push(i);
      else if (needs !== 0) this.#needing.set(needs, [i]);
    }
    this.#options = options;
    this.#register = apply;
    this.#max = max;
  }

  run(): Verdict {
    // Next configurations, the best one last.
    const stack: Configuration[] = [this.#furthest];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      const here = this.#takeUnchanging(next);
      if (here.low === this.#musts.length) return { linearizable: true, configurations: this.#searched.size };
      if (!this.#searched.add(here)) continue;
      if (this.#searched.size > this.#max)
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
    const waiting = this.#waiting(this.#furthest);
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
        if (mayChange(one.step) || this.#register(here.state, one.step) !== here.state) continue;
        if (this.#passesAnOption(here, one.call)) continue;
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
    const minimal = [...this.#minimal(here)].sort((a, b) => this.#musts[a]!.end - this.#musts[b]!.end);
    const firstEnd = minimal.length === 0 ? Infinity : this.#musts[minimal[0]!]!.end;
    // Those that end first stand for the others of their effects.
    const effects = new Set<string>();
    const next: Configuration[] = [];
    for (const i of minimal) {
      const { step, call } = this.#musts[i]!;
      const effect = effectOf(step);
      if (effects.has(effect)) continue;
      const state = this.#register(here.state, step);
      if (state === undefined) continue;
      if (!this.#passesAnOption(here, call)) effects.add(effect);
      const then = this.#take(here, i, state);
      if (!this.#abandons(here.state, then)) next.unshift(then);
    }
    return [...this.#withOptions(here, firstEnd), ...next];
  }

  /** The value was replaced, and a must that needs it was not taken: nothing brings the value back. */
  #abandons({ value }: State, then: Configuration): boolean {
    return value !== then.state.value && this.#stillNeeding(value, then) !== undefined;
  }

  /** The first must that needs the value and was not taken. */
  #stillNeeding(value: number, { low, beyond }: Configuration): number | undefined {
    return this.#needing.get(value)?.find((i) => i >= low && !beyond.includes(i));
  }

  #withOptions(here: Configuration, firstEnd: number): Configuration[] {
    const effects = new Set<string>();
    const next: Configuration[] = [];
    for (const [i, one] of this.#options.entries()) {
      if (one.call > firstEnd) break;
      if (one.end < here.time || here.used.includes(i)) continue;
      const { kind } = one.step;
      const effect = kind === 'delete' || kind === 'loss' ? 'absent' : effectOf(one.step);
      // An earlier one of the same effect that can wait as long stands for this one.
      if (one.end === Infinity && effects.has(effect)) continue;
      if (one.end === Infinity) effects.add(effect);
      const state = this.#register(here.state, one.step);
      if (state === undefined || state === here.state || (state.value === 0 && here.state.value === 0)) continue;
      const time = Math.max(here.time, one.call);
      const then = { ...here, used: [...here.used, i].sort((a, b) => a - b), time, state };
      if (!this.#abandons(here.state, then)) next.push(then);
    }
    return next;
  }

  /** The musts that may come next in time, and the first one that needs the present value, if it is not among them. */
  #waiting(here: Configuration): Entry[] {
    const last = this.#stillNeeding(here.state.value, here);
    return [...new Set([...this.#minimal(here), ...(last === undefined ? [] : [last])])].map((i) => this.#musts[i]!);
  }

  /** Where the search that came furthest could not go on. */
  #stuck(): string {
    const here = this.#furthest;
    const waiting = this.#waiting(here);
    const from = Math.min(...waiting.map((e) => e.call), this.#musts[0]?.call ?? 0);
    const origin = this.#sinceNs ?? this.#musts[0]?.call ?? from;
    const { value } = here.state;
    const writer = [...this.#musts, ...this.#options].find(
      ({ step }) => step.value === value && value > UNSEEN && (step.kind === 'put' || step.kind === 'swap'),
    );
    const state =
      value === 0 ? 'absent' : writer === undefined ? 'a value that nobody saw' : (written(writer.operation) ?? '');
    const around = this.#musts.slice(Math.max(0, here.low - 12), here.low);
    const lines = (entries: readonly Entry[]): string[] => entries.map((e) => `  ${describe(e.operation, origin)}`);
    return [
      `${here.low + here.beyond.length} of ${this.#musts.length} operations can be put in order; then the key is ${state}, and these fit in no order (ms):`,
      ...lines(waiting),
      'before them:',
      ...lines(around),
      ...(writer === undefined ? [] : ['that value comes from:', ...lines([writer])]),
    ].join('\n');
  }
}
