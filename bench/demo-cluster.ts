/**
 * Three farkv servers as processes of their own, in a temporary directory, for as long as the demonstration takes.
 *
 * They are started as an operator would: `farkv server ...`. They end with their standard input, so none outlives this
 * process however it ends; `stop` asks first, and removes the directory. Not for: tests (test/support/cluster.ts).
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { FarkvError } from '../core/errors.js';
import { withCluster } from '../server/cli/cluster.js';
import type { ClusterStatus } from '../server/status.js';
import { freePorts } from '../test/support/cluster.js';

const CLI = fileURLToPath(new URL('../server/cli/main.js', import.meta.url));
const READY_MS = 60_000;
const STOP_MS = 10_000;
const STATUS_MS = 60_000;
/** A busy machine makes copies slowly. */
const COPIES_MS = 120_000;

/** As stores keep values that are compared with farkv, unless a row says otherwise. */
export const ONE_COPY = ['--level', 'cache'] as const;

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
    const ports = await freePorts(2 * count);
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
        '--fabric-listen',
        '127.0.0.1:0',
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

  /** The status that makes the condition true. */
  async until(condition: (status: ClusterStatus) => boolean): Promise<ClusterStatus> {
    return await withCluster({ addresses: this.addresses, timeoutMs: STATUS_MS }, (c) =>
      c.until(condition, COPIES_MS, 'that every record is where it is to be', () => []),
    );
  }

  /** The server that is killed, when one is. */
  get last(): { readonly id: string } {
    return this.#last;
  }

  /** kill -9. Resolves when it has ended. */
  async killLast(): Promise<void> {
    this.#last.child.kill('SIGKILL');
    await this.#last.ended;
  }

  get #last(): Running {
    const last = this.#servers.at(-1);
    if (last === undefined) throw new FarkvError('ERR_CONFIG', 'there is no server');
    return last;
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
