/**
 * putMany and deleteMany: one crossing into the native side for up to PUTS_MAX changes, which are operations of one
 * batch. What has a time to live or flags of its own, what a signal may end, and what has to wait for room goes the way
 * of a change by itself.
 */
import { PENDING_BASE, PUTS_MAX, type NativeClient } from '../native/native-client.js';
import { Batch, type BatchFailure } from './batch.js';
import { Status, statusError } from './errors.js';
import { KeyText } from './key-text.js';
import type { Operations } from './operations.js';
import type { Key } from './pending.js';

export interface PutBatch {
  readonly keys: readonly Key[];
  readonly values: readonly Uint8Array[];
}

/** The changes of one call. */
interface Changes {
  readonly space: number;
  readonly keys: readonly Key[];
  /** Posts one crossing's keys, the first of which is number `from` of the call; fills the answers. */
  readonly post: (chunk: readonly Key[], from: number) => void;
  /** Called with what a change that was sent ended with; throws FarkvError. */
  readonly ended: (status: number) => void;
  /** Called for each that is to go alone. */
  readonly single: (i: number) => void;
}

export class BatchChanges {
  readonly #native: NativeClient;
  readonly #operations: Operations;
  readonly #answers = new Uint32Array(PUTS_MAX);
  readonly #text = new KeyText(PUTS_MAX);

  constructor(native: NativeClient, operations: Operations) {
    this.#native = native;
    this.#operations = operations;
  }

  /**
   * Puts what there is room for; `single` is called for each of the rest, in order, before this returns. The promise is
   * resolved when all that was posted here has ended, with what failed.
   */
  put(
    space: number,
    { keys, values }: PutBatch,
    codec: number,
    timeoutMs: number,
    single: (i: number) => void,
  ): Promise<BatchFailure[]> {
    const post = (chunk: readonly Key[], from: number): void => {
      const parts = chunk.length === keys.length ? values : values.slice(from, from + chunk.length);
      const text = this.#text.join(chunk);
      this.#native.putMany(space, chunk, parts, codec, this.#answers, timeoutMs, text, this.#text.lengths);
    };
    const ended = (status: number): void => {
      if (status !== Status.ok) throw statusError(status);
    };
    return this.#change({ space, keys, post, ended, single });
  }

  /** As put; `found` is called for each key that was there. */
  delete(
    space: number,
    keys: readonly Key[],
    timeoutMs: number,
    found: () => void,
    single: (i: number) => void,
  ): Promise<BatchFailure[]> {
    const post = (chunk: readonly Key[]): void => {
      const text = this.#text.join(chunk);
      this.#native.deleteMany(space, chunk, this.#answers, timeoutMs, text, this.#text.lengths);
    };
    const ended = (status: number): void => {
      if (status === Status.ok) found();
      else if (status !== Status.notFound) throw statusError(status);
    };
    return this.#change({ space, keys, post, ended, single });
  }

  #change(changes: Changes): Promise<BatchFailure[]> {
    const { keys, post, single } = changes;
    if (this.#operations.closed) return Promise.reject(statusError(Status.closed));
    const ends: Promise<BatchFailure[]>[] = [];
    for (let from = 0; from < keys.length; from += PUTS_MAX) {
      // Behind what waits: changes keep the order of their calls.
      if (this.#operations.crowded) {
        for (let i = from; i < keys.length; i++) single(i);
        break;
      }
      const count = Math.min(PUTS_MAX, keys.length - from);
      const chunk = count === keys.length ? keys : keys.slice(from, from + count);
      post(chunk, from);
      ends.push(this.#settle(changes, chunk, from));
    }
    return ends.length === 1 ? (ends[0] ?? Promise.resolve([])) : Promise.all(ends).then((all) => all.flat());
  }

  async #settle({ space, ended, single }: Changes, keys: readonly Key[], from: number): Promise<BatchFailure[]> {
    const answers = this.#answers;
    const batch = new Batch(space, keys, (_, status) => ended(status));
    for (let i = 0; i < keys.length; i++) {
      const answer = answers[i] ?? 0;
      if (answer >= PENDING_BASE) this.#operations.adoptOne(batch.operation(i), answer - PENDING_BASE);
    }
    // All are read before `single` is called: a codec of the program may call putMany in it, which writes them anew.
    const busy: number[] = [];
    for (let i = 0; i < keys.length; i++) {
      const answer = answers[i] ?? 0;
      if (answer === Status.busy) busy.push(from + i);
      else if (answer < PENDING_BASE)
        batch.failures.push({ index: i, error: this.#operations.failure(answer, space, keys[i] ?? '') });
    }
    for (const i of busy) single(i);
    await batch.ended();
    return batch.failures.map(({ index, error }) => ({ index: from + index, error }));
  }
}
