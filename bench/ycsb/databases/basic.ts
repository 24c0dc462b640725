/**
 * The database that does nothing: what is measured against it is the harness. A read finds a record of the run's size,
 * so that the loop goes the same way as with a real store.
 */
import type { Database, Facts } from './database.js';

export class BasicDatabase implements Database {
  readonly name = 'basic';
  readonly #record: Buffer;

  constructor(record: Buffer) {
    this.#record = record;
  }

  init(): Promise<void> {
    return Promise.resolve();
  }

  read(): Uint8Array {
    return this.#record;
  }

  insert(): void {
    return undefined;
  }

  update(): void {
    return undefined;
  }

  facts(): Facts {
    return { texts: {}, counts: {} };
  }

  cleanup(): Promise<void> {
    return Promise.resolve();
  }
}
