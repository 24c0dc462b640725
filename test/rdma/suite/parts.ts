/**
 * Runs the parts of the suite one after the other, each with a cluster of its own that is taken away, and says which
 * failed.
 */
import assert from 'node:assert/strict';
import { Cluster, type ClusterOptions } from '../../support/cluster.js';
import { connect, type BufferValue, type Client, type ConnectOptions } from '../../../client/index.js';
import { resources } from './device.js';

export interface Scene {
  readonly device: string;
  readonly cluster: (options: ClusterOptions) => Promise<Cluster>;
  readonly client: (cluster: Cluster, options?: Partial<ConnectOptions>) => Promise<Client<BufferValue, Buffer>>;
}

export type Part = readonly [title: string, run: (scene: Scene) => Promise<void>];

/** A part that hangs has failed; the virtual machine's own time limit is the last guard. */
const PART_MS = 900_000;
/** The kernel frees what a dead process held by itself, and not at once. */
const SETTLE_MS = 20_000;

/**
 * What there is more of than before: a process of an earlier part may have let go of something meanwhile. Contexts are
 * not counted: librdmacm opens one on every device in each process that uses it, and so do those of the suite that runs
 * over the other device at the same time. They are counted when all has ended (guest.sh).
 */
function leftBehind(before: string, now: string): string[] {
  const counts = (text: string): Map<string, number> =>
    new Map([...text.matchAll(/(\w+) (\d+)/g)].map(([, name = '', count]) => [name, Number(count)]));
  const had = counts(before);
  return [...counts(now)]
    .filter(([name, count]) => name !== 'ctx' && count > (had.get(name) ?? 0))
    .map(([name, count]) => `${name} ${had.get(name) ?? 0} -> ${count}`);
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function runPart([title, run]: Part, device: string): Promise<boolean> {
  const undo: (() => unknown)[] = [];
  const scene: Scene = {
    device,
    async cluster(options) {
      const args = [
        '--transport',
        'verbs',
        '--rdma-device',
        device,
        '--insecure',
        '--election-ms',
        '3000',
        '--data-plane-threads',
        '1',
        ...(options.args ?? []),
      ];
      return await Cluster.start({ teardown: (f) => undo.push(f) }, { ...options, args });
    },
    async client(cluster, options) {
      const client = await connect({
        servers: cluster.addresses,
        transport: 'verbs',
        strict: true,
        timeoutMs: 60_000,
        connectTimeoutMs: 60_000,
        unavailableAfterMs: Infinity,
        ...options,
      });
      undo.push(() => client.close());
      return client;
    },
  };
  const before = resources(device);
  const begun = Date.now();
  let late: NodeJS.Timeout | undefined;
  const tooLong = new Promise<never>((_, reject) => {
    late = setTimeout(() => reject(new Error(`still running after ${PART_MS / 1000} s`)), PART_MS);
  });
  let failure: unknown;
  try {
    await Promise.race([run(scene), tooLong]);
  } catch (error) {
    failure = error;
  }
  clearTimeout(late);
  for (const f of undo.reverse()) await f();
  if (failure === undefined) {
    for (const until = Date.now() + SETTLE_MS; leftBehind(before, resources(device)).length > 0 && Date.now() < until;)
      await sleep(100);
    try {
      assert.deepEqual(leftBehind(before, resources(device)), [], 'queue pairs, regions or others were left behind');
    } catch (error) {
      failure = error;
    }
  }
  console.log(`${failure === undefined ? 'ok' : 'FAILED'}: ${title} (${Math.round((Date.now() - begun) / 1000)} s)`);
  if (failure !== undefined) console.log(failure instanceof Error ? failure.stack : failure);
  return failure === undefined;
}

/** `only`: words of titles, all parts when empty. Returns whether all passed. */
export async function runParts(parts: readonly Part[], device: string, only: readonly string[]): Promise<boolean> {
  let passed = true;
  for (const part of parts) {
    if (only.length === 0 || only.some((word) => part[0].includes(word)))
      passed = (await runPart(part, device)) && passed;
  }
  return passed;
}
