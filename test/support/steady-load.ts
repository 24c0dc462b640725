/** A client that reads and changes values until it is told to stop. Not for: how fast anything is. */
import type { ExecutionContext } from 'ava';
import { setTimeout as rest } from 'node:timers/promises';
import type { BufferValue, Client } from '../../client/index.js';

/** The values that it changes. */
export const KEYS = 500;
/** Looks like markup. */
const VALUE = '<b>value</b>';

export class SteadyLoad {
  #stopped = false;
  readonly #done: Promise<void>;

  private constructor(private readonly client: Client<BufferValue, Buffer>) {
    this.#done = this.#run();
    // A test that failed before does not wait for it.
    this.#done.catch(() => undefined);
  }

  /** KEYS values are there; then a PUT and three GETs, one of which is a hit, with rests: others need the processors too. */
  static async start(client: Client<BufferValue, Buffer>): Promise<SteadyLoad> {
    for (let i = 0; i < KEYS; i++) await client.put(`key ${i}`, VALUE);
    return new SteadyLoad(client);
  }

  async #run(): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
      const key = `key ${i % KEYS}`;
      await this.client.put(key, VALUE);
      for (let n = 0; n < 3; n++) await this.client.get(n === 0 ? key : `${key}, missing ${n}`);
      if (i % 5 === 0) await rest(5);
    }
  }

  async stop(t: ExecutionContext): Promise<void> {
    this.#stopped = true;
    await t.notThrowsAsync(this.#done);
  }
}
