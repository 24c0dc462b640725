/**
 * What every row is given: how much is to be measured, and the stores with their records, which are started when a row
 * first asks for them.
 */
import { Stores } from './stores.js';

export interface LabOptions {
  readonly keys: number;
  readonly rounds: number;
  readonly servers: number;
  /** YCSB workloads, by letter. */
  readonly workloads: readonly string[];
  /** How long the row of written bytes writes. */
  readonly writeSeconds: number;
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
}

export interface Lab extends LabOptions {
  /**
   * The stores with values of so many bytes. Those of another size are taken away first: memory is not there for both.
   */
  stores(valueBytes: number): Promise<Stores>;
  close(): Promise<void>;
}

export function openLab(options: LabOptions): Lab {
  let stores: Stores | undefined;
  const close = async (): Promise<void> => {
    const open = stores;
    stores = undefined;
    await open?.stop();
  };
  return {
    ...options,
    close,
    async stores(valueBytes) {
      if (stores?.value.length !== valueBytes) {
        await close();
        stores = new Stores(options, valueBytes);
      }
      return stores;
    },
  };
}
