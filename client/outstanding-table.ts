/**
 * What the native side works on, by the place that an operation's id names: an array that is as long as operations were
 * ever outstanding at once. (A Map would hash each id twice and be rehashed for ever, because ids do not come back
 * soon.)
 */
import { PLACE_BITS } from '../native/native-client.js';
import type { NativeClient } from '../native/native-client.js';
import type { Completion } from './completion.js';

/** What the engine does with an operation that has an id: a Pending, or an operation of a batch. */
export interface Outstanding {
  readonly id: number;
  readonly settled: boolean;
  /** What may end it. */
  readonly signal?: AbortSignal | undefined;
  settle(completion: Completion): void;
  fail(error: unknown): void;
  shard(native: NativeClient): number;
}

const PLACE = (1 << PLACE_BITS) - 1;

export class OutstandingTable {
  readonly #operations: (Outstanding | undefined)[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Under operation.id. */
  put(operation: Outstanding): void {
    const place = operation.id & PLACE;
    while (this.#operations.length <= place) this.#operations.push(undefined);
    this.#operations[place] = operation;
    this.#size++;
  }

  /** Takes out the operation with this id, if it is there. */
  take(id: number): Outstanding | undefined {
    const place = id & PLACE;
    const operation = this.#operations[place];
    if (operation?.id !== id) return undefined;
    this.#operations[place] = undefined;
    this.#size--;
    return operation;
  }

  /** Takes out all. */
  clear(): Outstanding[] {
    this.#size = 0;
    return this.#operations.splice(0).filter((operation) => operation !== undefined);
  }
}
