/**
 * How long calls take, for `client.metrics()`: one in SAMPLED calls of the process is timed, at random, once a client was
 * connected with `latencies`, and counts if it is of such a client. Any other call takes one off a number, and looks at
 * it.
 */
import { types } from 'node:util';
import { Timing, type Counted } from '../core/exposition.js';

const SAMPLED = 1024;

class Next {
  /**
   * 0: no client wants it. n: the n-th call from now is timed. Stays 1 until that call runs: who asks whether a call is
   * timed runs it next. A field: a variable of the module, which V8 checks for having been set, took longer.
   */
  timed = 0;
}

const next = new Next();
/** By the object that stands for a client (callOf) with `latencies`, and by method. */
const times = new WeakMap<object, Map<string, Timing>>();

/** `caller`: the client (callOf) whose calls are timed. */
export function timeCalls(caller: object): void {
  times.set(caller, new Map());
  if (next.timed === 0) next.timed = SAMPLED;
}

export function isTimed(): boolean {
  if (next.timed <= 1) return next.timed === 1;
  next.timed--;
  return false;
}

/** `caller`: whose call it is (callOf). It is not timed where that is a client without `latencies`. */
export function timed<T>(call: string, caller: object, run: () => T): T {
  // Every SAMPLED-th would always be the same call of a loop.
  next.timed = 1 + Math.floor(Math.random() * 2 * SAMPLED);
  const own = times.get(caller);
  if (own === undefined) return run();
  const begin = performance.now();
  const ended = (): void => {
    const timing = own.get(call) ?? new Timing();
    own.set(call, timing);
    timing.add((performance.now() - begin) * 1e6);
  };
  let result: T | undefined;
  try {
    result = run();
    return result;
  } finally {
    if (types.isPromise(result)) result.then(ended, ended);
    else ended();
  }
}

/** Of the timed calls of a client, by method; undefined: none is timed. */
export function callTimes(caller: object): ReadonlyMap<string, Counted> | undefined {
  return times.get(caller);
}
