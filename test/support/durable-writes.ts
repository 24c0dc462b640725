/** Clients of durable values that know what was acknowledged, while servers are killed, or their disks fail. */
import type { ExecutionContext } from 'ava';
import { connect, FarkvError } from '../../client/index.js';
import type { Cluster } from './cluster.js';

const WRITERS = 4;
export const MIB = 1 << 20;
const KEYS = 16;
type Client = Awaited<ReturnType<typeof connect>>;
/** What was acknowledged, by key. */
export type Values = Map<string, string>;

/** Changes keys until it is told to stop, and knows what was acknowledged of each. */
export class Writing {
  readonly #acknowledged = new Map<string, string>();
  readonly #writers: Promise<void>[];
  #stopped = false;

  constructor(client: Client) {
    this.#writers = Array.from({ length: WRITERS }, (_, n) => this.#write(client, n));
  }

  get keys(): number {
    return this.#acknowledged.size;
  }

  async have(keys: number): Promise<void> {
    while (this.keys < keys) await new Promise((resolve) => setImmediate(resolve));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#writers);
  }

  async missing(client: Client): Promise<string[]> {
    const missing: string[] = [];
    for (const [key, value] of this.#acknowledged) {
      const found = await client.get(key);
      if (found?.toString() !== value) missing.push(`${key}: ${found?.toString() ?? 'nothing'}, not ${value}`);
    }
    return missing;
  }

  async #write(client: Client, n: number): Promise<void> {
    for (let i = 0; !this.#stopped; i++) {
      // One in a hundred is a large value.
      const [key, value] = [`key-${n}-${i % 500}`, `value-${n}-${i}`.padEnd(i % 100 === 0 ? 100_000 : 0, '.')];
      try {
        await client.put(key, Buffer.from(value));
        this.#acknowledged.set(key, value);
      } catch (error) {
        if (!(error instanceof FarkvError)) throw error;
        // The test has failed, and its client is closed.
        if (error.code === 'ERR_CLOSED') return;
        // What became of it is not known: it says nothing any more.
        this.#acknowledged.delete(key);
      }
    }
  }
}

export async function open(t: ExecutionContext, cluster: Cluster): Promise<Client> {
  // Servers that come back on a machine that is shared take their time.
  const client = await connect({ servers: cluster.addresses, timeoutMs: 120_000, unavailableAfterMs: Infinity });
  t.teardown(() => client.close());
  return client;
}

/** Small values, one batch of the log after the other; all are acknowledged. */
export async function writeSmall(client: Client, values: Values, count: number, prefix: string): Promise<void> {
  for (let i = 0; i < count; i++) {
    await client.put(`${prefix}-${i}`, `value ${prefix} ${i}`);
    values.set(`${prefix}-${i}`, `value ${prefix} ${i}`);
  }
}

/** So much of values of 1 MiB, in few keys: the log grows, and the tables do not. */
export async function writeLarge(client: Client, values: Values, mebibytes: number, prefix: string): Promise<void> {
  for (let i = 0; i < mebibytes; i++) {
    const [key, value] = [`large-${i % KEYS}`, `${prefix} ${i} `.padEnd(MIB, 'x')];
    await client.put(key, value);
    values.set(key, value);
  }
}

/** Which of them are not there as they were acknowledged. */
export async function wrong(client: Client, values: Values): Promise<string[]> {
  const found: string[] = [];
  for (const [key, value] of values) {
    const is = (await client.get(key))?.toString();
    if (is !== value) found.push(`${key}: ${is?.slice(0, 40) ?? 'nothing'}, not ${value.slice(0, 40)}`);
  }
  return found;
}
