/**
 * Clients of server processes for the SDK's integration tests: of three servers that the tests of a file share, or of a
 * cluster of their own; each in a namespace of its own. And the programs of sdk-child.ts.
 */
import type { ExecutionContext, TestFn } from 'ava';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { json } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { connect, FarkvError, type BufferValue, type Client, type ConnectOptions } from '../../client/index.js';
import { Cluster } from './cluster.js';
import type { ChildTask } from './sdk-child.js';

/** The file of sdk-child.ts. */
export const CHILD = fileURLToPath(new URL('./sdk-child.js', import.meta.url));
/**
 * The SDK's own times are for users who would rather have an error; a machine that compiles beside the tests may take
 * longer for thousands of calls.
 */
export const PATIENT = { timeoutMs: 120_000, connectTimeoutMs: 120_000 } as const;

/** A client whose calls end when they are answered, however busy the machine is; closed with the test. */
export async function patient(
  t: ExecutionContext,
  servers: string | string[],
  options: Partial<ConnectOptions> = {},
): Promise<Client<BufferValue, Buffer>> {
  const made = await connect({ servers, ...PATIENT, unavailableAfterMs: 120_000, ...options });
  t.teardown(() => made.close());
  return made;
}

/** Starts three servers before the tests of this file, which break nothing, and stops them afterwards. */
export function sharedCluster(test: TestFn): () => Cluster {
  let cluster: Cluster | undefined;
  const teardowns: (() => unknown)[] = [];
  test.before(async () => {
    cluster = await Cluster.start(
      { teardown: (f) => void teardowns.push(f) },
      { servers: 3, memory: '1gb', shards: 6 },
    );
  });
  test.after.always(async () => {
    for (const f of teardowns) await f();
  });
  return () => {
    if (cluster === undefined) throw new Error('the servers have not been started');
    return cluster;
  };
}

let namespaces = 0;
/** A namespace that no other test of this process uses. */
export const ownNamespace = (): number => ++namespaces;

/** A client that sees a namespace of its own. */
export async function clientOf(
  t: ExecutionContext,
  cluster: Cluster,
  options: Partial<ConnectOptions> = {},
): Promise<Client<BufferValue, Buffer>> {
  const made = await connect({ servers: cluster.addresses, namespace: ownNamespace(), ...PATIENT, ...options });
  t.teardown(() => made.close());
  return made;
}

/** A value of so many bytes comes back whole by each kind of GET. */
export async function storesWhole(t: ExecutionContext, kv: Client<BufferValue, Buffer>, bytes: number): Promise<void> {
  const value = Buffer.alloc(bytes, `${bytes} bytes, `);
  await kv.put('v', value);
  const back = await kv.get('v');
  t.true(back?.equals(value), `${bytes} bytes by get`);
  const target = Buffer.alloc(bytes + 3);
  t.is(await kv.getInto('v', target, 3), bytes);
  t.true(target.subarray(3).equals(value), `${bytes} bytes by getInto`);
  const [one] = await kv.getMany(['v']);
  t.true(one?.equals(value), `${bytes} bytes by getMany`);
}

/** 'ok', or the code of its error, for each. */
export async function settled(promises: readonly Promise<unknown>[]): Promise<string[]> {
  const results = await Promise.allSettled(promises);
  return results.map((result) =>
    result.status === 'fulfilled'
      ? 'ok'
      : result.reason instanceof FarkvError
        ? result.reason.code
        : String(result.reason),
  );
}

/** Runs a program of sdk-child.ts; resolves with its answer and its exit code. */
export function inProcess(task: ChildTask): Promise<unknown> {
  const { task: name, servers, transport, argument } = task;
  const child = spawn(process.execPath, ['--enable-source-maps', CHILD, name, servers, transport, String(argument)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return Promise.all([json(child.stdout), once(child, 'close')]).then(([answer, [code]]) => ({
    ...(answer as object),
    code: code as unknown,
  }));
}
