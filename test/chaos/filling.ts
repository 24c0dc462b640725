/**
 * Keys that fill the tables while a fault is made, so that these grow: in a namespace of their own, which the clients of
 * the run do not look at. What was acknowledged must be there afterwards, and is then deleted.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, FarkvError, type BufferValue, type Client, type ConnectOptions } from '../../client/index.js';

const SPACE = 60_000;
const LANES = 32;
const KEYS_MAX = 6000;
const VALUE_BYTES = 1500;
const CALL_MS = 30_000;
/** So many are asked for at once when they are looked for. */
const LOOKED_FOR = 500;
/** What a program asks again after: the owner pushes back, or is not there at present. */
const PASSING: ReadonlySet<string> = new Set(['ERR_BUSY', 'ERR_TIMEOUT', 'ERR_SHARD_UNAVAILABLE', 'ERR_DISCONNECTED']);
const AGAIN_MS = 200;

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
    const missing: string[] = [];
    for (let from = 0; from < this.#acknowledged.length; from += LOOKED_FOR) {
      const keys = this.#acknowledged.slice(from, from + LOOKED_FOR);
      const found = await untilAnswered(() => this.#client.getMany(keys));
      missing.push(
        ...keys.filter((key, i) => {
          const value = found[i];
          return !Buffer.isBuffer(value) || !value.equals(valueOf(key));
        }),
      );
    }
    return missing;
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

/** As a program does that needs the answer, and not for ever. */
export async function untilAnswered<T>(ask: () => Promise<T>, patienceMs = 2 * CALL_MS): Promise<T> {
  const until = performance.now() + patienceMs;
  for (;;)
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof FarkvError) || !PASSING.has(error.code) || performance.now() >= until) throw error;
      await sleep(AGAIN_MS);
    }
}

const valueOf = (key: string): Buffer => Buffer.alloc(VALUE_BYTES, key);
