/**
 * Three farkv servers as processes of their own, in a temporary directory, for as long as the demonstration takes.
 *
 * They are started as an operator would: `farkv server ...`. They end with their standard input, so none outlives this
 * process however it ends; `stop` asks first, and removes the directory. Not for: tests (test/support/cluster.ts).
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { FarkvError } from '../core/errors.js';
import { withCluster } from '../server/cli/cluster.js';
import type { ClusterStatus } from '../server/status.js';

const CLI = fileURLToPath(new URL('../server/cli/main.js', import.meta.url));
const READY_MS = 60_000;
const STOP_MS = 10_000;
const STATUS_MS = 10_000;

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

interface Running {
  readonly id: string;
  readonly child: ChildProcess;
  readonly ended: Promise<void>;
}

export class DemoCluster {
  readonly addresses: readonly string[];
  readonly #directory: string;
  readonly #servers: readonly Running[];

  private constructor(directory: string, addresses: readonly string[], servers: readonly Running[]) {
    this.#directory = directory;
    this.addresses = addresses;
    this.#servers = servers;
  }

  /** Resolves when all servers are ready. What was started is gone again when it rejects. */
  static async start(
    count: number,
    memory: string,
    signal: AbortSignal,
    more: readonly string[] = [],
  ): Promise<DemoCluster> {
    const ports = await Promise.all(Array.from({ length: 2 * count }, freePort));
    const directory = mkdtempSync(join(tmpdir(), 'farkv-demo-'));
    const addresses = ports.slice(0, count).map((port) => `127.0.0.1:${port}`);
    const peers = ports
      .slice(count)
      .map((port, i) => `s${i + 1}=127.0.0.1:${port}`)
      .join(',');
    const servers = addresses.map((address, i): Running => {
      const id = `s${i + 1}`;
      // Servers that are ended together warn of each other's silence: only errors matter here.
      const options = [
        '--id',
        id,
        '--listen',
        address,
        '--peers',
        peers,
        '--data-dir',
        join(directory, id),
        '--memory',
        memory,
        '--log-level',
        'error',
        ...more,
      ];
      const child = spawn(process.execPath, [CLI, 'server', '--json', '--stop-with-stdin', ...options], {
        stdio: ['pipe', 'pipe', 'inherit'],
        // A group of their own: Ctrl-C is for this process, which then stops them in order.
        detached: true,
      });
      child.stdin.on('error', () => undefined);
      return { id, child, ended: new Promise((resolve) => child.once('close', () => resolve())) };
    });
    const cluster = new DemoCluster(directory, addresses, servers);
    try {
      await cluster.#ready(signal);
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  get pids(): number[] {
    return this.#servers.flatMap(({ child }) => child.pid ?? []);
  }

  /** Who owns which shard, as the server knows that has heard of the most. */
  async shards(): Promise<ClusterStatus['shards']> {
    const asked = await Promise.allSettled(
      this.addresses.map((address) => withCluster({ addresses: [address], timeoutMs: STATUS_MS }, (c) => c.status())),
    );
    const [latest] = asked
      .flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
      .sort((a, b) => b.mapEpoch - a.mapEpoch);
    if (latest === undefined)
      throw new FarkvError(
        'ERR_TIMEOUT',
        'no server says who owns its shards: run the demo again when the machine has two processors to spare',
      );
    return latest.shards;
  }

  async #ready(signal: AbortSignal): Promise<void> {
    const all = Promise.all(
      this.#servers.map(
        ({ id, child, ended }) =>
          new Promise<void>((resolve, reject) => {
            if (child.stdout !== null)
              createInterface({ input: child.stdout }).on(
                'line',
                (line) => line.startsWith('{"event":"ready"') && resolve(),
              );
            child.once('error', reject);
            void ended.then(() =>
              reject(
                new FarkvError('ERR_INTERNAL', `server ${id} ended before it was ready; what it said stands above`),
              ),
            );
          }),
      ),
    );
    let onAbort: () => void = () => undefined;
    let timer: NodeJS.Timeout | undefined;
    const given = new Promise<never>((_, reject) => {
      onAbort = () => reject(new FarkvError('ERR_ABORTED', 'interrupted'));
      signal.addEventListener('abort', onAbort);
      if (signal.aborted) onAbort();
      timer = setTimeout(
        () => reject(new FarkvError('ERR_TIMEOUT', `the servers were not ready within ${READY_MS / 1000} s`)),
        READY_MS,
      );
    });
    try {
      await Promise.race([all, given]);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Ends the servers, kindly first, and removes their directory. */
  async stop(): Promise<void> {
    await Promise.all(
      this.#servers.map(async ({ child, ended }) => {
        child.stdin?.end();
        const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
        await ended;
        clearTimeout(timer);
      }),
    );
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
