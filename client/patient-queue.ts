/**
 * What waits for room at the native side, in order. Its time is not counted while servers answer: what is waited for is
 * the end of others' operations, each of which has a time-out. Where no answer came to this client for the time-out of
 * one that waits, it ends with ERR_TIMEOUT.
 *
 * Invariant: a step costs the same however many wait; all are looked at only when some have to end.
 */
import { Fifo } from './fifo.js';
import { Status, statusError } from './errors.js';
import type { Turn } from './turn.js';

export interface Waits {
  /** Milliseconds of the client's clock (operations.ts) at which it began to wait. */
  since: number;
  timeoutMs: number;
  readonly settled: boolean;
  fail(error: unknown): void;
}

/** So many are looked at between two looks at the clock. */
const STRIDE = 64;
/** So many of those that have ended may stay in the queue. */
const ENDED_MAX = 1024;

export class PatientQueue<T extends Waits> {
  readonly #waiting = new Fifo<T>();
  /** Of those in the queue, so many have ended. */
  #ended = 0;
  /** None of those that wait has a shorter time-out. */
  #shortestMs = Number.POSITIVE_INFINITY;

  /** How many wait. */
  get length(): number {
    return this.#waiting.length - this.#ended;
  }

  push(one: T, since: number, timeoutMs: number): void {
    one.since = since;
    one.timeoutMs = timeoutMs;
    this.#waiting.push(one);
    this.#shortestMs = Math.min(this.#shortestMs, timeoutMs);
  }

  /** The first that waits. */
  get first(): T | undefined {
    for (;;) {
      const { first } = this.#waiting;
      if (first?.settled !== true) return first;
      this.#waiting.shift();
      this.#ended--;
    }
  }

  /** Takes out `first`. */
  shift(): void {
    this.#waiting.shift();
    if (this.#waiting.length === 0) this.#shortestMs = Number.POSITIVE_INFINITY;
  }

  /** One that waits has ended by itself. */
  oneEnded(): void {
    this.#ended++;
    if (this.#ended <= ENDED_MAX || this.#ended * 2 <= this.#waiting.length) return;
    this.#waiting.replace(this.#waiting.all().filter(({ settled }) => !settled));
    this.#ended = 0;
  }

  /** Takes all out. */
  clear(): T[] {
    const all = this.#waiting.all().filter(({ settled }) => !settled);
    this.#waiting.replace([]);
    this.#ended = 0;
    this.#shortestMs = Number.POSITIVE_INFINITY;
    return all;
  }

  /** Ends those that have waited too long since the latest answer; as many as `turn` has time for, the rest next time. */
  expire(now: number, answeredAt: number, turn: Turn): void {
    if (this.length === 0 || now - answeredAt < this.#shortestMs) return;
    const error = silence(now - answeredAt, this.length);
    const all = this.#waiting.all();
    const kept: T[] = [];
    let shortestMs = Number.POSITIVE_INFINITY;
    let i = 0;
    for (const one of all) {
      if (i % STRIDE === STRIDE - 1 && turn.over) break;
      i++;
      if (one.settled) continue;
      if (isSilent(one.since, one.timeoutMs, answeredAt, now)) {
        one.fail(error);
      } else {
        kept.push(one);
        shortestMs = Math.min(shortestMs, one.timeoutMs);
      }
    }
    const whole = i === all.length;
    this.#waiting.replace(whole ? kept : kept.concat(all.slice(i).filter(({ settled }) => !settled)));
    this.#ended = 0;
    if (whole) this.#shortestMs = shortestMs;
  }
}

/** Whether what waits since then has seen no answer for its time-out. */
export function isSilent(since: number, timeoutMs: number, answeredAt: number, now: number): boolean {
  return now - Math.max(since, answeredAt) >= timeoutMs;
}

export function silence(ms: number, waiting: number): Error {
  return statusError(
    Status.timeout,
    `no server has answered this client for ${Math.round(ms)} ms, and ${waiting} calls wait for room behind what was sent`,
  );
}
