/**
 * How long calls take, for `client.metrics()`: one in SAMPLED calls of the process is timed, at random, once a client was
 * connected with `latencies`. Before that a call costs one look at a number.
 */
import { types } from 'node:util';
import { Timing, type Counted } from '../core/exposition.js';

const SAMPLED = 1024;

let isWanted = false;
/** Calls until the next one is timed. */
let left = SAMPLED;
/** Whoever asked whether this call is timed runs it next. */
let isNext = false;
/** By the object that stands for a client (callOf), and by method. */
const times = new WeakMap<object, Map<string, Timing>>();

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
  if (all === undefined) times.set(caller, (all = new Map<string, Timing>()));
  let own = all.get(call);
  if (own === undefined) all.set(call, (own = new Timing()));
  own.add(ms * 1e6);
}

/** Of the timed calls of a client, by method. */
export function callTimes(caller: object): ReadonlyMap<string, Counted> {
  return times.get(caller) ?? new Map();
}
