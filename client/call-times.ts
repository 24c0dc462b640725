/**
 * How long calls take, for `client.metrics()`: one in SAMPLED calls of the process is timed, at random, once a client was
 * connected with `latencies`. Before that a call costs one look at a number.
 */
import { types } from 'node:util';
import { HISTOGRAM_BOUNDS, FIRST_OCTAVE, type Counted } from '../core/exposition.js';

const SAMPLED = 1024;
/** Nanoseconds; the last counts all. */
const BOUNDS = Array.from({ length: HISTOGRAM_BOUNDS }, (_, i) =>
  i === HISTOGRAM_BOUNDS - 1 ? Infinity : 2 ** (FIRST_OCTAVE + i),
);

interface Times {
  count: number;
  /** Nanoseconds. */
  sum: number;
  readonly below: number[];
}

let isWanted = false;
/** Calls until the next one is timed. */
let left = SAMPLED;
/** Whoever asked whether this call is timed runs it next. */
let isNext = false;
/** By the object that stands for a client (callOf), and by method. */
const times = new WeakMap<object, Map<string, Times>>();

export function timeCalls(): void {
  isWanted = true;
}

export function isTimed(): boolean {
  if (!isWanted) return false;
  if (isNext) return true;
  if (--left > 0) return false;
  // Every SAMPLED-th would always be the same call of a loop.
  left = 1 + Math.floor(Math.random() * 2 * SAMPLED);
  return (isNext = true);
}

/** `caller`: whose call it is (callOf). */
export function timed<T>(call: string, caller: object, run: () => T): T {
  isNext = false;
  const begin = performance.now();
  const result = run();
  if (types.isPromise(result)) {
    const settled = (): void => record(call, caller, performance.now() - begin);
    result.then(settled, settled);
  } else record(call, caller, performance.now() - begin);
  return result;
}

function record(call: string, caller: object, ms: number): void {
  let all = times.get(caller);
  if (all === undefined) times.set(caller, (all = new Map<string, Times>()));
  let own = all.get(call);
  if (own === undefined) all.set(call, (own = { count: 0, sum: 0, below: Array<number>(HISTOGRAM_BOUNDS).fill(0) }));
  const ns = ms * 1e6;
  own.count += 1;
  own.sum += ns;
  for (let i = HISTOGRAM_BOUNDS - 1; i >= 0 && ns < (BOUNDS[i] ?? 0); i--) own.below[i] = (own.below[i] ?? 0) + 1;
}

/** Of the timed calls of a client, by method. */
export function callTimes(caller: object): ReadonlyMap<string, Counted> {
  return times.get(caller) ?? new Map();
}
