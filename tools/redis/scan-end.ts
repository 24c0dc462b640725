/**
 * Whether a SCAN of Redis still comes to an end. Redis passes each place of its table once, so a cursor never comes
 * again, and the keys that it names are no more than a few times those that are there. A server that goes round, or that
 * names more and more, is given up: without this an import from it has no end.
 *
 * One cursor is remembered, another one after twice as many pages (Brent): whatever the length of the round, it is seen,
 * and nothing is kept that grows.
 */
import { RedisFailure } from './replies.js';

/** Keys that are there may be named again while the table grows or shrinks, and others are made meanwhile. */
const TIMES = 4;
const KEYS_SPARE = 1_000_000;

export class ScanEnd {
  #pages = 0;
  #keys = 0;
  #remembered = '0';
  #until = 1;

  get keys(): number {
    return this.#keys;
  }

  /** A page was read. `size` asks how many keys there are now; undefined: the server does not say. Throws ERR_PROTOCOL. */
  async page(cursor: string, keys: number, size: () => Promise<number | undefined>): Promise<void> {
    this.#keys += keys;
    if (cursor === '0') return;
    if (cursor === this.#remembered)
      throw new RedisFailure(
        'ERR_PROTOCOL',
        `the Redis server goes round: after ${this.#pages.toLocaleString('en')} pages of SCAN the cursor ${cursor} comes again. What was imported so far stays`,
      );
    if (++this.#pages === this.#until) {
      this.#remembered = cursor;
      this.#until *= 2;
      // As rarely: a question each time would cost as much as the page.
      const now = await size();
      if (now !== undefined && this.#keys > TIMES * now + KEYS_SPARE)
        throw new RedisFailure(
          'ERR_PROTOCOL',
          `the Redis server does not come to an end: SCAN has named ${this.#keys.toLocaleString('en')} keys, DBSIZE says ${now.toLocaleString('en')}. What was imported so far stays`,
        );
    }
  }
}
