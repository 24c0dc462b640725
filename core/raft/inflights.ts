/**
 * The window of append messages to one follower that are sent and not acknowledged: a ring of their last indexes,
 * bounded in messages and in bytes.
 */
import { present } from './invariant.js';

export class Inflights {
  readonly #lastIndexes: number[] = [];
  readonly #sizes: number[] = [];
  #start = 0;
  #count = 0;
  #bytes = 0;

  constructor(
    private readonly maxMessages: number,
    private readonly maxBytes: number,
  ) {}

  get full(): boolean {
    return this.#count >= this.maxMessages || this.#bytes >= this.maxBytes;
  }
  get count(): number {
    return this.#count;
  }

  add(lastIndex: number, bytes: number): void {
    const at = (this.#start + this.#count) % this.maxMessages;
    this.#lastIndexes[at] = lastIndex;
    this.#sizes[at] = bytes;
    this.#count++;
    this.#bytes += bytes;
  }

  /** Everything up to `index` is acknowledged. */
  freeTo(index: number): void {
    while (this.#count > 0 && present(this.#lastIndexes[this.#start]) <= index) this.freeFirst();
  }

  /** Gives up on the oldest message, so that a window full of lost messages does not stay shut. */
  freeFirst(): void {
    if (this.#count === 0) return;
    this.#bytes -= present(this.#sizes[this.#start]);
    this.#start = (this.#start + 1) % this.maxMessages;
    this.#count--;
  }

  clear(): void {
    this.#start = 0;
    this.#count = 0;
    this.#bytes = 0;
  }
}
