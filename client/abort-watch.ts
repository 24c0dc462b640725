/**
 * The AbortSignals of unsettled operations: one listener for each signal, however many operations share it, and none
 * once they are settled.
 */
import type { Pending } from './pending.js';

interface Watched {
  readonly operations: Set<Pending<unknown>>;
  readonly listener: () => void;
}

export class AbortWatch {
  readonly #signals = new Map<AbortSignal, Watched>();
  readonly #abort: (operation: Pending<unknown>) => void;

  constructor(abort: (operation: Pending<unknown>) => void) {
    this.#abort = abort;
  }

  add(operation: Pending<unknown>, signal: AbortSignal): void {
    let watched = this.#signals.get(signal);
    if (watched === undefined) {
      const operations = new Set<Pending<unknown>>();
      const listener = () => {
        for (const each of [...operations]) this.#abort(each);
      };
      signal.addEventListener('abort', listener, { once: true });
      this.#signals.set(signal, (watched = { operations, listener }));
    }
    watched.operations.add(operation);
  }

  remove(operation: Pending<unknown>, signal: AbortSignal): void {
    const watched = this.#signals.get(signal);
    if (watched?.operations.delete(operation) !== true || watched.operations.size > 0) return;
    signal.removeEventListener('abort', watched.listener);
    this.#signals.delete(signal);
  }
}
