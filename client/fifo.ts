/** First in, first out: what a step costs does not depend on how many there are. */

/** So many places at the front may be empty before the rest moves there. */
const EMPTY_MAX = 1024;

export class Fifo<T> {
  #items: (T | undefined)[] = [];
  /** Those before it are gone. */
  #first = 0;

  get length(): number {
    return this.#items.length - this.#first;
  }

  get first(): T | undefined {
    return this.#items[this.#first];
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#first];
    this.#items[this.#first++] = undefined;
    if (this.length === 0 || (this.#first >= EMPTY_MAX && this.#first * 2 >= this.#items.length))
      this.replace(this.#items.slice(this.#first) as T[]);
    return item;
  }

  /** All of it, which stays. */
  all(): T[] {
    return this.#items.slice(this.#first) as T[];
  }

  replace(items: T[]): void {
    this.#items = items;
    this.#first = 0;
  }
}
