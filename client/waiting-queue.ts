/**
 * Operations that the native side had no room for, in the order of their calls. They are posted again when something completes, and end
 * with ERR_TIMEOUT when they have waited too long; a coarse timer sees to that when nothing completes.
 *
 * Not for: retrying what a server refused; that is the native side's.
 */
import { Status, statusError } from './errors.js';
import type { Pending } from './pending.js';

const TICK_MS = 10;

export class WaitingQueue {
  readonly #most: number;
  /** Posts an operation; false when there is still no room. */
  readonly #post: (operation: Pending<unknown>, timeoutMs: number) => boolean;
  #operations: Pending<unknown>[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(most: number, post: (operation: Pending<unknown>, timeoutMs: number) => boolean) {
    this.#most = most;
    this.#post = post;
  }

  get length(): number {
    return this.#operations.length;
  }

  /** Fails the operation when the queue is full. */
  push(operation: Pending<unknown>, timeoutMs: number): void {
    if (this.#operations.length >= this.#most) {
      operation.fail(statusError(Status.busy, `${this.#most} operations of this client wait already`));
      return;
    }
    operation.deadline = performance.now() + timeoutMs;
    this.#operations.push(operation);
    this.#timer ??= setInterval(() => this.pump(), TICK_MS);
  }

  pump(): void {
    const now = performance.now();
    const operations = this.#operations;
    let first = 0;
    for (; first < operations.length; first++) {
      const operation = operations[first];
      if (operation === undefined || operation.settled) continue;
      const left = operation.deadline - now;
      if (left <= 0) operation.fail(statusError(Status.timeout));
      else if (!this.#post(operation, Math.ceil(left))) break;
    }
    this.#operations = operations.slice(first).filter((operation) => {
      if (!operation.settled && operation.deadline <= now) operation.fail(statusError(Status.timeout));
      return !operation.settled;
    });
    if (this.#operations.length === 0) this.#stop();
  }

  /** Takes everything out. */
  clear(): Pending<unknown>[] {
    const operations = this.#operations;
    this.#operations = [];
    this.#stop();
    return operations;
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
