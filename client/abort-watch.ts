/**
 * The AbortSignals of what is unsettled: one listener for each signal in the whole process, however many operations,
 * calls and clients share it, and none once they are settled. More than ten would be warned of as a leak.
 *
 * A signal that a program gives may be of another realm or another library (jsdom): `ownSignal` has one of Node.js's own
 * in its place, so that nothing else in the SDK meets a foreign one.
 */
import { types } from 'node:util';

interface Watched {
  /** What ends with the signal, and how. */
  readonly things: Map<unknown, (thing: never) => void>;
  readonly listener: () => void;
}

const signals = new Map<AbortSignal, Watched>();

export class AbortWatch<T> {
  readonly #abort: (thing: T) => void;

  constructor(abort: (thing: T) => void) {
    this.#abort = abort;
  }

  add(thing: T, signal: AbortSignal): void {
    let watched = signals.get(signal);
    if (watched === undefined) {
      const things: Watched['things'] = new Map();
      const listener = () => {
        for (const [each, abort] of [...things]) abort(each as never);
      };
      signal.addEventListener('abort', listener, { once: true });
      signals.set(signal, (watched = { things, listener }));
    }
    watched.things.set(thing, this.#abort);
  }

  remove(thing: T, signal: AbortSignal): void {
    const watched = signals.get(signal);
    if (watched?.things.delete(thing) !== true || watched.things.size > 0) return;
    signal.removeEventListener('abort', watched.listener);
    signals.delete(signal);
  }
}

/** By the signal of another kind. It has one listener for as long as it lives. */
const instead = new WeakMap<object, AbortSignal>();

/** The signal, or one that fires with it. Throws where this is none. */
export function ownSignal(value: unknown): AbortSignal {
  // eslint-disable-next-line no-restricted-syntax -- a foreign signal goes the other way
  if (!types.isProxy(value) && value instanceof AbortSignal) {
    // It throws for what only inherits from the class.
    const aborted: unknown = value.aborted;
    if (typeof aborted === 'boolean') return value;
  }
  if (typeof value !== 'object' || value === null) throw new TypeError('this is not an object');
  const known = instead.get(value);
  if (known !== undefined) return known;
  const foreign = value as Partial<AbortSignal>;
  if (typeof foreign.aborted !== 'boolean' || typeof foreign.removeEventListener !== 'function')
    throw new TypeError('it has no "aborted" and no listeners');
  const controller = new AbortController();
  const fire = (): void => controller.abort(foreign.reason);
  if (foreign.aborted) fire();
  else (value as AbortSignal).addEventListener('abort', fire, { once: true });
  instead.set(value, controller.signal);
  return controller.signal;
}
