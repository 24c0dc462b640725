/**
 * Operations that the native side had no room for, in the order of their calls. They are posted again when something
 * completes, and end with ERR_TIMEOUT when they have waited too long; a coarse timer sees to that.
 *
 * What pump() costs depends on how many it posts, not on how many wait: a call of 100,000 items waits for room
 * thousands of times.
 *
 * Not for: retrying what a server refused; that is the native side's.
 */
import { Status, statusError } from './errors.js';
import type { Pending } from './pending.js';

const TICK_MS = 10;
/** So many places at the front may be empty before the rest moves there. */
const EMPTY_MAX = 1024;

export class WaitingQueue {
  readonly #most: number;
  /** Posts an operation; false when there is still no room. */
  readonly #post: (operation: Pending<unknown>, timeoutMs: number) => boolean;
  /** Those before #first have been posted or have ended. */
  #operations: (Pending<unknown> | undefined)[] = [];
  #first = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(most: number, post: (operation: Pending<unknown>, timeoutMs: number) => boolean) {
    this.#most = most;
    this.#post = post;
  }

  /** What was cancelled since the last tick is counted. */
  get length(): number {
    return this.#operations.length - this.#first;
  }

  /** Fails the operation when the queue is full. */
  push(operation: Pending<unknown>, timeoutMs: number): void {
    if (this.length >= this.#most) {
      operation.fail(statusError(Status.busy, `${this.#most} operations of this client wait already`));
      return;
    }
    operation.own();
    operation.deadline = performance.now() + timeoutMs;
    this.#operations.push(operation);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS);
  }

  /** Posts from the front while there is room. */
  pump(): void {
    const now = performance.now();
    const operations = this.#operations;
    while (this.#first < operations.length) {
      const operation = operations[this.#first];
      if (operation !== undefined && !operation.settled) {
        const left = operation.deadline - now;
        if (left <= 0) operation.fail(statusError(Status.timeout));
        else if (!this.#post(operation, Math.ceil(left))) break;
      }
      operations[this.#first++] = undefined;
    }
    if (this.length === 0) this.clear();
    else if (this.#first >= EMPTY_MAX && this.#first * 2 >= operations.length) {
      this.#operations = operations.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Takes everything out. */
  clear(): Pending<unknown>[] {
    const operations = this.#operations.filter((operation) => operation !== undefined);
    this.#operations = [];
    this.#first = 0;
    clearInterval(this.#timer);
    this.#timer = undefined;
    return operations;
  }

  /** Ends what has waited too long wherever it stands, since time-outs differ. */
  #tick(): void {
    this.pump();
    const now = performance.now();
    const waiting: Pending<unknown>[] = [];
    for (const operation of this.#operations) {
      if (operation === undefined || operation.settled) continue;
      if (operation.deadline <= now) operation.fail(statusError(Status.timeout));
      else waiting.push(operation);
    }
    if (waiting.length === 0) {
      this.clear();
      return;
    }
    this.#operations = waiting;
    this.#first = 0;
  }
}
