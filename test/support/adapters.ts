/**
 * What tests of adapters share: one server process for the tests of a file, and a look at which keys are stored.
 */
import type { TestFn } from 'ava';
import { connect, type BufferValue, type Client, type Keyspace } from '../../client/index.js';
import { Cluster } from './cluster.js';

const PATIENT = { timeoutMs: 120_000, connectTimeoutMs: 120_000 } as const;

export interface OneServer {
  readonly address: string;
  readonly client: Client<BufferValue, Buffer>;
  /** A namespace that no other test of the file uses. */
  space(): Keyspace<BufferValue, Buffer>;
}

/** Starts a server, and a client of it, before the tests of this file; stops both afterwards. */
export function oneServer(test: TestFn): () => OneServer {
  let started: OneServer | undefined;
  let spaces = 0;
  const teardowns: (() => unknown)[] = [];
  test.before(async () => {
    const cluster = await Cluster.start({ teardown: (f) => void teardowns.push(f) }, { servers: 1 });
    const { address } = cluster.server(0);
    const client = await connect({ servers: address, ...PATIENT });
    teardowns.unshift(() => client.close());
    started = { address, client, space: () => client.namespace(++spaces) };
  });
  test.after.always(async () => {
    for (const f of teardowns) await f();
  });
  return () => {
    if (started === undefined) throw new Error('the server has not been started');
    return started;
  };
}

/** All keys of a namespace, in order. */
export async function keysOf(kv: Keyspace<never, unknown>): Promise<string[]> {
  const keys = new Set<string>();
  for await (const { key } of kv.scan()) keys.add(String(key));
  return [...keys].sort();
}
