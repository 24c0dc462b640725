/**
 * The AbortSignals of unsettled operations: one listener for each signal, however many operations share it, and none
 * once they are settled.
 */
interface Watched<T> {
  readonly operations: Set<T>;
  readonly listener: () => void;
}

export class AbortWatch<T> {
  readonly #signals = new Map<AbortSignal, Watched<T>>();
  readonly #abort: (operation: T) => void;

  constructor(abort: (operation: T) => void) {
    this.#abort = abort;
  }

  add(operation: T, signal: AbortSignal): void {
    let watched = this.#signals.get(signal);
    if (watched === undefined) {
      const operations = new Set<T>();
      const listener = () => {
        for (const each of [...operations]) this.#abort(each);
      };
      signal.addEventListener('abort', listener, { once: true });
      this.#signals.set(signal, (watched = { operations, listener }));
    }
    watched.operations.add(operation);
  }

  remove(operation: T, signal: AbortSignal): void {
    const watched = this.#signals.get(signal);
    if (watched?.operations.delete(operation) !== true || watched.operations.size > 0) return;
    signal.removeEventListener('abort', watched.listener);
    this.#signals.delete(signal);
  }
}
