/**
 * Operations that the native side had no room for, in the order of their calls. They are posted again when something
 * completes. When they end without that is said in patient-queue.ts.
 *
 * Not for: retrying what a server refused; that is the native side's.
 */
import { Status, statusError } from './errors.js';
import { PatientQueue } from './patient-queue.js';
import type { Pending } from './pending.js';
import type { Turn } from './turn.js';

/** So many are posted between two looks at the clock. */
const STRIDE = 64;

export class WaitingQueue {
  readonly #most: number;
  /** Posts an operation; false when there is still no room. */
  readonly #post: (operation: Pending<unknown>) => boolean;
  readonly #turn: Turn;
  readonly #waiting = new PatientQueue<Pending<unknown>>();
  /** The rest is posted in a later turn of the event loop. */
  #later = false;

  constructor(most: number, post: (operation: Pending<unknown>) => boolean, turn: Turn) {
    this.#most = most;
    this.#post = post;
    this.#turn = turn;
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** Fails the operation when the queue is full. */
  push(operation: Pending<unknown>, now: number, timeoutMs: number): void {
    if (this.length >= this.#most) {
      operation.fail(statusError(Status.busy, `${this.#most} operations of this client wait already`));
      return;
    }
    operation.own();
    this.#waiting.push(operation, now, timeoutMs);
  }

  /** Posts from the front while there is room. */
  pump(): void {
    if (this.#later) return;
    for (let i = 1; ; i++) {
      const { first } = this.#waiting;
      if (first === undefined || !this.#post(first)) return;
      this.#waiting.shift();
      if (i % STRIDE === 0 && this.#turn.over) break;
    }
    this.#later = true;
    void this.#turn.next().then(() => {
      this.#later = false;
      this.pump();
    });
  }

  /** One that waits was cancelled. */
  cancelled(): void {
    this.#waiting.oneEnded();
  }

  expire(now: number, answeredAt: number): void {
    this.#waiting.expire(now, answeredAt, this.#turn);
  }

  /** Takes everything out. */
  clear(): Pending<unknown>[] {
    return this.#waiting.clear();
  }
}
