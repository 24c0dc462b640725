/** Load that knows what may be read: used while servers, clients and wires fail. */
import assert from 'node:assert/strict';
import type { BufferValue, Client } from '../../../client/index.js';

/**
 * Writes and reads counters until told to stop: a value read is never older than the last one acknowledged, nor newer
 * than the last one sent.
 */
export class Load {
  readonly #acknowledged: number[];
  readonly #lanes: Promise<void>[];
  #stopped = false;
  done = 0;

  constructor(client: Client<BufferValue, Buffer>, lanes: number, prefix: string) {
    this.#acknowledged = new Array<number>(lanes).fill(0);
    this.#lanes = Array.from({ length: lanes }, (_, lane) => this.#run(client, lane, `${prefix}-${lane}`));
    for (const lane of this.#lanes) lane.catch(() => undefined);
  }

  async #run(client: Client<BufferValue, Buffer>, lane: number, key: string): Promise<void> {
    for (let n = 1; !this.#stopped; n++) {
      const put = await client.put(key, String(n).padStart(200, '.')).then(
        () => true,
        () => false,
      );
      if (put) this.#acknowledged[lane] = n;
      const found = await client.get(key).catch(() => undefined);
      if (found !== undefined) {
        const read = Number(found.toString().replaceAll('.', ''));
        // What a killed server held is gone, and never comes back older than it was.
        const least = this.#acknowledged[lane] ?? 0;
        assert.ok(read >= least && read <= n, `${key}: read ${read}, acknowledged ${least}, sent ${n}`);
      }
      this.done++;
    }
  }

  async until(operations: number): Promise<void> {
    const target = this.done + operations;
    while (this.done < target) await Promise.race([...this.#lanes, new Promise((resolve) => setTimeout(resolve, 20))]);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#lanes);
  }
}
