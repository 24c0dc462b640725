/**
 * Operations of one batch: they end one by one and are awaited together. Each is a small object where an operation that
 * is awaited by itself has a promise, its functions and its reactions: of a hundred keys that is most of what
 * JavaScript does.
 *
 * Not for: batches that a signal may end (an AbortSignal is watched for operations by themselves), nor for what waits
 * for room: those are Pending.
 */
import { inspect } from 'node:util';
import { CompletionField, type NativeClient } from '../native/native-client.js';
import type { BatchLine } from './batch-line.js';
import type { Completion } from './completion.js';
import { asFarkvError, FarkvError } from './errors.js';
import type { Key } from './pending.js';

const STATUS: number = CompletionField.Status;

/** What ended: the native side's record of operation `index`; throws FarkvError. */
export type BatchOutcome = (index: number, status: number, completion: Completion) => void;

/** The cause of a batch's error: `errors[i]` is that of the key, or item, with the number `indexes[i]`. */
export interface BatchFailures extends AggregateError {
  readonly indexes: readonly number[];
  /**
   * So many keys or items were looked at. Of an iterable whose batch was ended those behind them were not taken: the first
   * of these is among the failures, the others have no number there.
   */
  readonly taken: number;
}

/** What failed of a batch. */
export class Failures {
  readonly #indexes: number[] = [];
  readonly #errors: unknown[] = [];
  /** Errors that say the same of many keys, by what makes them differ. */
  #shared: Map<number, FarkvError> | undefined;

  get length(): number {
    return this.#indexes.length;
  }

  add(index: number, error: unknown): void {
    this.#indexes.push(index);
    this.#errors.push(asFarkvError(error));
  }

  /** All from one number to before another. */
  addAll(from: number, end: number, error: unknown): void {
    for (let i = from; i < end; i++) this.add(i, error);
  }

  /** The same error for all failures with this number: an error for each of a million keys would take gigabytes. */
  share(what: number, make: () => FarkvError): FarkvError {
    const known = this.#shared?.get(what);
    if (known !== undefined) return known;
    const error = make();
    (this.#shared ??= new Map()).set(what, error);
    return error;
  }

  /** One error for the batch: the code of the first key's that failed, all of them in its cause. */
  error(keys: number, taken = keys): FarkvError {
    let [indexes, errors] = [this.#indexes, this.#errors];
    if (indexes.some((index, i) => i > 0 && index < (indexes[i - 1] ?? 0))) {
      const order = indexes.map((_, i) => i).sort((a, b) => (indexes[a] ?? 0) - (indexes[b] ?? 0));
      [indexes, errors] = [order.map((i) => indexes[i] ?? -1), order.map((i) => errors[i])];
    }
    const [first] = errors;
    const { code, message: text } = asFarkvError(first, 'ERR_INTERNAL');
    const cause: BatchFailures = Object.assign(new AggregateError([]), { errors, indexes, taken });
    Object.defineProperty(cause, inspect.custom, { value: () => summary(errors, indexes) });
    return new FarkvError(code, `${errors.length} of ${keys} keys failed; the first: ${text}`, { cause });
  }
}

const SHOWN = 3;

/** As `console.log` shows it: of a thousand failures not each with its stack. */
function summary(errors: readonly unknown[], indexes: readonly number[]): string {
  const shown = errors.slice(0, SHOWN).map((error, i) => `\n  [${indexes[i]}] ${textOf(error)}`);
  const more = errors.length - shown.length;
  return `AggregateError: ${errors.length} failures (errors, indexes)${shown.join('')}${more > 0 ? `\n  and ${more} more` : ''}`;
}

function textOf(error: unknown): string {
  const { code, message } = asFarkvError(error);
  return `${code}: ${message}`;
}

export class Batch {
  readonly space: number;
  readonly failures: Failures;
  readonly #line: BatchLine;
  readonly #outcome: BatchOutcome;
  #left = 0;
  #resolve: (() => void) | undefined;

  constructor(space: number, line: BatchLine, failures: Failures, outcome: BatchOutcome) {
    this.space = space;
    this.failures = failures;
    this.#line = line;
    this.#outcome = outcome;
  }

  operation(index: number, key: Key): BatchOperation {
    this.#left++;
    this.#line.outstanding++;
    return new BatchOperation(this, index, key);
  }

  /** undefined: all operations have ended; else resolves when they have. What failed is in `failures`. */
  ended(): Promise<void> | undefined {
    return this.#left === 0 ? undefined : new Promise((resolve) => (this.#resolve = resolve));
  }

  settle(index: number, completion: Completion): void {
    try {
      this.#outcome(index, completion.words[completion.at + STATUS] ?? 0, completion);
    } catch (error) {
      this.failures.add(index, error);
    }
    this.#end();
  }

  fail(index: number, error: unknown): void {
    this.failures.add(index, error);
    this.#end();
  }

  #end(): void {
    this.#line.outstanding--;
    if (--this.#left === 0) this.#resolve?.();
  }
}

export class BatchOperation {
  id = -1;
  settled = false;
  readonly #batch: Batch;
  readonly #index: number;
  readonly #key: Key;

  constructor(batch: Batch, index: number, key: Key) {
    this.#batch = batch;
    this.#index = index;
    this.#key = key;
  }

  shard(native: NativeClient): number {
    return native.shardOf(this.#batch.space, this.#key);
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
