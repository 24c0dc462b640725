/** What every row is given: how much is to be measured, and the stores with their records, which are started when a row first asks for them. */
import { Stores } from './stores.js';

export interface LabOptions {
  readonly keys: number;
  readonly rounds: number;
  readonly servers: number;
  /** YCSB workloads, by letter. */
  readonly workloads: readonly string[];
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
}

export class Lab implements LabOptions {
  readonly keys: number;
  readonly rounds: number;
  readonly servers: number;
  readonly workloads: readonly string[];
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
  #stores: Stores | undefined;

  constructor(o: LabOptions) {
    this.keys = o.keys;
    this.rounds = o.rounds;
    this.servers = o.servers;
    this.workloads = o.workloads;
    this.signal = o.signal;
    this.note = o.note;
  }

  /** The stores with values of so many bytes. Those of another size are taken away first: memory is not there for both. */
  async stores(valueBytes: number): Promise<Stores> {
    if (this.#stores?.value.length !== valueBytes) {
      await this.close();
      this.#stores = new Stores(this, valueBytes);
    }
    return this.#stores;
  }

  async close(): Promise<void> {
    const stores = this.#stores;
    this.#stores = undefined;
    await stores?.stop();
  }
}
