/**
 * How long calls take, for `client.metrics()`: one in SAMPLED calls of the process is timed, at random, once a client was
 * connected with `latencies`. Any other call takes one off a number, and looks at it.
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
/** By the object that stands for a client (callOf), and by method. */
const times = new WeakMap<object, Map<string, Timing>>();

export function timeCalls(): void {
  if (next.timed === 0) next.timed = SAMPLED;
}

export function isTimed(): boolean {
  if (next.timed <= 1) return next.timed === 1;
  next.timed--;
  return false;
}

/** `caller`: whose call it is (callOf). */
export function timed<T>(call: string, caller: object, run: () => T): T {
  // Every SAMPLED-th would always be the same call of a loop.
  next.timed = 1 + Math.floor(Math.random() * 2 * SAMPLED);
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
