/**
 * Starts a node in a thread of its own and stands for it in the thread that asked: the handle, its status, its end.
 * What is public of it is said in index.ts.
 */
import type { Worker } from 'node:worker_threads';
import { readdirSync } from 'node:fs';
import { FarkvError } from '../core/errors.js';
import type { FabricAddress } from '../core/metadata/state.js';
import { startThread } from '../native/package.js';
import { resolveListeners } from './config/listeners.js';
import { loadSettings } from './config/load.js';
import type { ServerOptions } from './config/server-options.js';
import type { LogLevel } from './config/settings.js';
import type { LogFields } from './log.js';
import type { ReadyInfo } from './node.js';
import type { ClusterStatus } from './status.js';
import type { Failure, FromNode, Start, ToNode } from './thread-messages.js';

export interface StartControl {
  /** Called with each line of the log; `fields`: for programs, of all lines but some of level debug. Default: nothing is written. */
  readonly log?: (level: LogLevel, text: string, fields?: LogFields) => void;
  /** Gives up the start (ERR_ABORTED). Has no effect afterwards. */
  readonly signal?: AbortSignal;
  readonly env?: NodeJS.ProcessEnv;
}

export interface ServerHandle extends AsyncDisposable {
  readonly id: string;
  readonly clusterId: string;
  /** Control addresses, host:port: what connect() is given. */
  readonly addresses: readonly string[];
  /** Addresses of the port between servers: what another server's `peers` and `join` are given. */
  readonly peerAddresses: readonly string[];
  /** Of the page and /metrics, host:port; empty: there is none. */
  readonly httpAddresses: readonly string[];
  /** Where the data plane listens. */
  readonly fabric: readonly FabricAddress[];
  /** Shards that were served when the start was done. */
  readonly shards: readonly number[];
  readonly dataDir: string;
  /** Settles when the server has ended: resolves after close(), rejects when it could not go on. */
  readonly closed: Promise<void>;
  status(): Promise<ClusterStatus>;
  /** Waits until clients can no longer read what this server had (their leases), for a bounded time. Idempotent. */
  close(): Promise<void>;
}

/** An RDMA device that the kernel knows. Whether it works shows when it is used (`farkv doctor`). */
export function hasRdmaDevice(): boolean {
  try {
    return readdirSync('/sys/class/infiniband').length > 0;
  } catch {
    return false;
  }
}

/**
 * Starts a server and resolves when its shards are served. Rejects with a FarkvError: ERR_CONFIG, ERR_ADDRESS_IN_USE,
 * ERR_ADDRESS_INVALID, ERR_DATA_DIR, ERR_ADDON, ERR_UNSUPPORTED, ERR_NO_MEMORY. It waits as long as it takes for the
 * majority of a cluster of several to come up; a signal ends the wait.
 */
export async function startServer(options: ServerOptions = {}, control: StartControl = {}): Promise<ServerHandle> {
  const settings = loadSettings(
    { ...options },
    { env: control.env ?? process.env, dashes: false, hasVerbs: hasRdmaDevice() },
  );
  return await startWith({ settings }, control);
}

/** For the command line, which has read its own options, and for tests that change what has no option. */
export async function startWith(start: Start, { log, signal }: StartControl): Promise<ServerHandle> {
  const given = (): boolean => signal?.aborted === true;
  if (given()) throw new FarkvError('ERR_ABORTED', 'the start was given up');
  const settings = await resolveListeners(start.settings);
  if (given()) throw new FarkvError('ERR_ABORTED', 'the start was given up');
  const thread = new NodeThread({ ...start, settings }, log);
  const abort = (): void => thread.stop();
  signal?.addEventListener('abort', abort, { once: true });
  try {
    const info = await thread.ready;
    return new Handle(info, thread);
  } catch (error) {
    if (given()) throw new FarkvError('ERR_ABORTED', 'the start was given up', { cause: error });
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

class NodeThread {
  readonly ready: Promise<ReadyInfo>;
  readonly closed: Promise<void>;
  readonly #worker: Worker;
  readonly #asked = new Map<
    number,
    { readonly resolve: (status: ClusterStatus) => void; readonly reject: (error: FarkvError) => void }
  >();
  #asks = 0;
  #over: FarkvError | undefined;

  constructor(start: Start, log: StartControl['log']) {
    // Threads inherit the options of Node.js, of which this one is about a program given by --eval and refused for a
    // file.
    const execArgv = process.execArgv.filter((option) => !option.startsWith('--input-type'));
    this.#worker = startThread('server/node-worker', { workerData: start, name: 'farkv-node', execArgv });
    let becomeReady: ((info: ReadyInfo) => void) | undefined;
    let startFailed: ((error: FarkvError) => void) | undefined;
    this.ready = new Promise((resolve, reject) => {
      becomeReady = resolve;
      startFailed = reject;
    });
    this.closed = new Promise((resolve, reject) => {
      let failure: FarkvError | undefined;
      let stopped = false;
      this.#worker.on('message', (message: FromNode) => {
        switch (message.t) {
          case 'log':
            log?.(message.level, message.text, message.fields);
            break;
          case 'ready':
            becomeReady?.(message.info);
            break;
          case 'status':
            this.#answered(message.id, message.status, message.failure);
            break;
          case 'failed':
            failure = errorOf(message.failure);
            void this.#worker.terminate();
            break;
          case 'stopped':
            stopped = true;
            void this.#worker.terminate();
            break;
        }
      });
      this.#worker.on(
        'error',
        (cause) =>
          (failure ??= new FarkvError('ERR_INTERNAL', `the server's thread has failed: ${cause.message}`, { cause })),
      );
      this.#worker.on('exit', () => {
        this.#over = stopped
          ? new FarkvError('ERR_CLOSED', 'the server is closed')
          : (failure ?? new FarkvError('ERR_INTERNAL', "the server's thread has ended"));
        for (const asked of this.#asked.values()) asked.reject(this.#over);
        startFailed?.(this.#over);
        if (stopped) resolve();
        else reject(this.#over);
      });
    });
    this.ready.catch(() => undefined);
    this.closed.catch(() => undefined);
  }

  stop(): void {
    this.#say({ t: 'stop' });
  }

  async status(): Promise<ClusterStatus> {
    return await new Promise((resolve, reject) => {
      if (this.#over !== undefined) {
        reject(this.#over);
        return;
      }
      const id = ++this.#asks;
      this.#asked.set(id, { resolve, reject });
      this.#say({ t: 'status', id });
    });
  }

  #say(message: ToNode): void {
    this.#worker.postMessage(message);
  }

  #answered(id: number, status: ClusterStatus | undefined, failure: Failure | undefined): void {
    const asked = this.#asked.get(id);
    this.#asked.delete(id);
    if (status !== undefined) asked?.resolve(status);
    else asked?.reject(errorOf(failure));
  }
}

class Handle implements ServerHandle {
  readonly id: string;
  readonly clusterId: string;
  readonly addresses: readonly string[];
  readonly peerAddresses: readonly string[];
  readonly httpAddresses: readonly string[];
  readonly fabric: readonly FabricAddress[];
  readonly shards: readonly number[];
  readonly dataDir: string;
  readonly #thread: NodeThread;

  constructor(info: ReadyInfo, thread: NodeThread) {
    this.id = info.id;
    this.clusterId = info.clusterId;
    this.addresses = info.control;
    this.peerAddresses = info.peer;
    this.httpAddresses = info.http;
    this.fabric = info.fabric;
    this.shards = info.shards;
    this.dataDir = info.dataDir;
    this.#thread = thread;
  }

  get closed(): Promise<void> {
    return this.#thread.closed;
  }

  async status(): Promise<ClusterStatus> {
    return await this.#thread.status();
  }

  async close(): Promise<void> {
    this.#thread.stop();
    // A server that failed before is closed as well.
    await this.#thread.closed.catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function errorOf(failure: Failure | undefined): FarkvError {
  return new FarkvError(failure?.code ?? 'ERR_INTERNAL', failure?.message ?? 'the server failed');
}
