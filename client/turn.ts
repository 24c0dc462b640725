/**
 * What a client's long work may take of one turn of the event loop. Batches, and what is posted out of a queue, look
 * here between two pieces: timers and sockets of the program have their turn after a few milliseconds.
 */
import { Fifo } from './fifo.js';

const SLICE_MS = 5;

export class Turn {
  #until = 0;
  /** A slice is running: it ends with the turn. */
  #open = false;
  #armed = false;
  readonly #waiting = new Fifo<() => void>();

  /** The slice is used up: what is left waits for `next`. */
  get over(): boolean {
    const now = performance.now();
    if (this.#open) return now >= this.#until;
    this.#open = true;
    this.#until = now + SLICE_MS;
    this.#arm();
    return false;
  }

  /** Resolves in a later turn, whose slice is then the caller's: one caller goes on in each turn. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#arm();
    });
  }

  #arm(): void {
    if (this.#armed) return;
    this.#armed = true;
    setImmediate(this.#ended);
  }

  readonly #ended = (): void => {
    this.#open = false;
    this.#armed = false;
    const go = this.#waiting.shift();
    if (this.#waiting.length > 0) this.#arm();
    go?.();
  };
}
