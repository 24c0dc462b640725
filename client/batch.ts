/**
 * Operations of one batch: they end one by one and are awaited together. Each is a small object where an operation that
 * is awaited by itself has a promise, its functions and its reactions: of a hundred keys that is most of what
 * JavaScript does.
 *
 * Not for: batches that a signal may end (an AbortSignal is watched for operations by themselves), nor for what waits
 * for room: those are Pending.
 */
import { CompletionField, type NativeClient } from '../native/native-client.js';
import type { Completion } from './completion.js';
import type { Key } from './pending.js';

const STATUS: number = CompletionField.Status;

/** What ended: the native side's record of operation `index`; throws FarkvError. */
export type BatchOutcome = (index: number, status: number, completion: Completion) => void;

export interface BatchFailure {
  readonly index: number;
  readonly error: unknown;
}

export class Batch {
  readonly space: number;
  readonly keys: readonly Key[];
  readonly failures: BatchFailure[] = [];
  readonly #outcome: BatchOutcome;
  #left = 0;
  #resolve: (() => void) | undefined;

  constructor(space: number, keys: readonly Key[], outcome: BatchOutcome) {
    this.space = space;
    this.keys = keys;
    this.#outcome = outcome;
  }

  operation(index: number): BatchOperation {
    this.#left++;
    return new BatchOperation(this, index);
  }

  /** Resolves when all operations have ended; what failed is in `failures`. */
  ended(): Promise<void> {
    return this.#left === 0 ? Promise.resolve() : new Promise((resolve) => (this.#resolve = resolve));
  }

  settle(index: number, completion: Completion): void {
    try {
      this.#outcome(index, completion.words[completion.at + STATUS] ?? 0, completion);
    } catch (error) {
      this.failures.push({ index, error });
    }
    this.#end();
  }

  fail(index: number, error: unknown): void {
    this.failures.push({ index, error });
    this.#end();
  }

  #end(): void {
    if (--this.#left === 0) this.#resolve?.();
  }
}

export class BatchOperation {
  id = -1;
  settled = false;
  readonly #batch: Batch;
  readonly #index: number;

  constructor(batch: Batch, index: number) {
    this.#batch = batch;
    this.#index = index;
  }

  shard(native: NativeClient): number {
    return native.shardOf(this.#batch.space, this.#batch.keys[this.#index] ?? '');
  }

  settle(completion: Completion): void {
    this.settled = true;
    this.#batch.settle(this.#index, completion);
  }

  fail(error: unknown): void {
    this.settled = true;
    this.#batch.fail(this.#index, error);
  }
}
