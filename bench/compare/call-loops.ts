/** Loops over calls of one client: a module of a variant of the SDK (client-variants.ts), so they have one kind of it. */
import { connect } from '../../client/index.js';

const KEYS_OF_MANY = 10;

export type CallLoop = (calls: number) => Promise<void>;
export const CALLS = ['getIntoSync', 'get', 'getMany'] as const;
export type CallName = (typeof CALLS)[number];

export interface OpenLoops {
  readonly loops: Readonly<Record<CallName, CallLoop>>;
  close(): Promise<void>;
}

/** `key` has a value of no more than 1,000 B. One key, so that the calls take as little as they can. */
export async function openLoops(address: string, key: string, latencies: boolean): Promise<OpenLoops> {
  const client = await connect({ servers: address, transport: 'shm', strict: true, latencies });
  const target = Buffer.alloc(1064);
  const keys = Array.from({ length: KEYS_OF_MANY }, () => key);
  const sync = (calls: number): void => {
    for (let i = 0; i < calls; i++) client.getIntoSync(key, target);
  };
  return {
    close: () => client.close(),
    loops: {
      getIntoSync: (calls) => {
        sync(calls);
        return Promise.resolve();
      },
      get: async (calls) => {
        for (let i = 0; i < calls; i++) await client.get(key);
      },
      getMany: async (calls) => {
        for (let i = 0; i < calls; i++) await client.getMany(keys);
      },
    },
  };
}
