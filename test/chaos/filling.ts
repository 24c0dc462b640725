/**
 * Keys that fill the tables while a fault is made, so that these grow: in a namespace of their own, which the clients of
 * the run do not look at. What was acknowledged must be there afterwards, and is then deleted.
 */
import { connect, type BufferValue, type Client, type ConnectOptions } from '../../client/index.js';

const SPACE = 60_000;
const LANES = 32;
const KEYS_MAX = 6000;
const VALUE_BYTES = 1500;
const CALL_MS = 30_000;

let fillings = 0;

export class Filling {
  readonly #client: Client<BufferValue, Buffer>;
  readonly #name = `fill ${fillings++}`;
  readonly #acknowledged: string[] = [];
  readonly #lanes: readonly Promise<void>[];
  #begun = 0;
  #stopped = false;

  private constructor(client: Client<BufferValue, Buffer>) {
    this.#client = client;
    this.#lanes = Array.from({ length: LANES }, () => this.#lane());
  }

  static async begin(options: Pick<ConnectOptions, 'servers' | 'tls'>): Promise<Filling> {
    const client = await connect({
      ...options,
      namespace: SPACE,
      timeoutMs: CALL_MS,
      connectTimeoutMs: CALL_MS,
      unavailableAfterMs: Infinity,
    });
    return new Filling(client);
  }

  /** No PUT is under way any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#lanes);
  }

  /** Acknowledged keys that are gone or have another value. */
  async missing(): Promise<string[]> {
    const found = await this.#client.getMany(this.#acknowledged);
    return this.#acknowledged.filter((key, i) => {
      const value = found[i];
      return !Buffer.isBuffer(value) || !value.equals(valueOf(key));
    });
  }

  async remove(): Promise<void> {
    await this.stop();
    await Promise.allSettled(Array.from({ length: this.#begun }, (_, i) => this.#client.delete(`${this.#name} ${i}`)));
    await this.#client.close();
  }

  async #lane(): Promise<void> {
    while (!this.#stopped && this.#begun < KEYS_MAX) {
      const key = `${this.#name} ${this.#begun++}`;
      // One that failed may be there or not.
      await this.#client.put(key, valueOf(key)).then(
        () => this.#acknowledged.push(key),
        () => undefined,
      );
    }
  }
}

const valueOf = (key: string): Buffer => Buffer.alloc(VALUE_BYTES, key);
