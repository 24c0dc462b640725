/**
 * Batches of one kind that wait for room at the native side. A batch is handed over in pieces: it takes what room there
 * is, waits, and goes on, in turn with the others. All batches of a kind have a share of the places together, so that
 * calls for single keys find room beside them, however long the batches are.
 */
import { AbortWatch } from './abort-watch.js';
import { Status, statusError } from './errors.js';
import type { Limits } from './operations.js';
import { isSilent, PatientQueue, silence, type Waits } from './patient-queue.js';
import { abortError } from './pending.js';
import type { Turn } from './turn.js';

/** Room for fewer operations is no reason to go on. */
const WORTHWHILE = 64;

/** Of all batches that wait. */
const aborts = new AbortWatch<() => void>((end) => end());

class RoomWait implements Waits {
  since = 0;
  timeoutMs = 0;
  settled = false;
  readonly promise: Promise<void>;
  #resolve: () => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  go(): void {
    this.settled = true;
    this.#resolve();
  }

  fail(error: unknown): void {
    this.settled = true;
    this.#reject(error);
  }
}

/** What a line has to know of its client. */
export interface Places {
  /** Where nothing is outstanding. */
  readonly most: number;
  readonly free: number;
  /** Milliseconds; and what it said at the latest answer of a server. */
  readonly clock: number;
  readonly answeredAt: number;
  readonly closed: boolean;
  /** Something waits from now on. */
  waits(): void;
}

export class BatchLine {
  /** Operations of these batches that are outstanding. */
  outstanding = 0;
  /** So many may be outstanding at most, below the share: what they carry shares a network. At least 1. */
  limit = Infinity;
  readonly share: number;
  readonly #places: Places;
  readonly #turn: Turn;
  readonly #waiting = new PatientQueue<RoomWait>();
  /** Batches that wait until those before them have been handed over. */
  readonly #inOrder = new PatientQueue<RoomWait>();
  #taken = false;

  constructor(places: Places, turn: Turn) {
    this.#places = places;
    this.#turn = turn;
    this.share = Math.ceil(places.most / 3);
  }

  /** So many operations may be posted now; less than 1: none. */
  get free(): number {
    return Math.min(Math.min(this.share, this.limit) - this.outstanding, this.#places.free);
  }

  /** Batches that wait for room. */
  get length(): number {
    return this.#waiting.length;
  }

  /** Something waits here, for room or for its turn. */
  get waits(): boolean {
    return this.#waiting.length + this.#inOrder.length > 0;
  }

  /** A batch is being handed over: one that enters will wait. */
  get taken(): boolean {
    return this.#taken;
  }

  /**
   * One batch after the other. undefined: it is its turn; else resolves when it is, and rejects as `room` does. Whoever
   * has had its turn leaves.
   */
  enter(since: number, limits: Limits): Promise<void> | undefined {
    if (this.#taken) return this.#wait(this.#inOrder, since, limits);
    this.#taken = true;
    return undefined;
  }

  leave(): void {
    const { first } = this.#inOrder;
    this.#taken = first !== undefined;
    if (first === undefined) return;
    this.#inOrder.shift();
    first.go();
  }

  /**
   * Resolves when there may be room again for a batch that was called at `since`. Rejects with ERR_TIMEOUT when no
   * server has answered this client for `timeoutMs`, with ERR_ABORTED and with ERR_CLOSED.
   */
  room(since: number, limits: Limits): Promise<void> {
    return this.#wait(this.#waiting, since, limits);
  }

  async #wait(queue: PatientQueue<RoomWait>, since: number, { timeoutMs, signal }: Limits): Promise<void> {
    if (this.#places.closed) throw statusError(Status.closed);
    const { clock: now, answeredAt } = this.#places;
    // A batch that waited for another one has waited too.
    if (isSilent(since, timeoutMs, answeredAt, now)) throw silence(now - answeredAt, queue.length + 1);
    const wait = new RoomWait();
    queue.push(wait, since, timeoutMs);
    this.#places.waits();
    if (signal === undefined) {
      await wait.promise;
      return;
    }
    const aborted = (): void => {
      // It goes on already, and is in the queue no more.
      if (wait.settled) return;
      wait.fail(abortError(signal));
      queue.oneEnded();
    };
    aborts.add(aborted, signal);
    try {
      await wait.promise;
    } finally {
      aborts.remove(aborted, signal);
    }
  }

  /** Lets the first that waits go on. Called when something has completed, and by a batch that has left room. */
  wake(): void {
    const { first } = this.#waiting;
    if (first === undefined || this.free < Math.min(WORTHWHILE, this.share, Math.ceil(this.limit / 2))) return;
    this.#waiting.shift();
    first.go();
  }

  expire(answeredAt: number): void {
    for (const queue of [this.#waiting, this.#inOrder]) queue.expire(this.#places.clock, answeredAt, this.#turn);
  }

  /** Ends what waits: the client is closed. */
  end(): void {
    for (const queue of [this.#waiting, this.#inOrder])
      for (const wait of queue.clear()) wait.fail(statusError(Status.closed));
  }
}
