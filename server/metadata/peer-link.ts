/**
 * The way to one other server: a connection that this server dials and keeps, for Raft messages and calls. What the
 * other server sends comes over the connection that it dials (server/control/control-plane.ts). A message that cannot
 * go now is lost: Raft sends again.
 */
import { FarkvError } from '../../core/errors.js';
import type { RaftMessage } from '../../core/raft/index.js';
import { ControlClient } from '../../net/control-client.js';
import { Heartbeat } from '../../net/heartbeat.js';
import type { Accepted, HelloFields } from '../../net/hello.js';
import type { Trust } from '../../net/tls.js';
import type { Log } from '../log.js';
import { describeError } from '../log.js';

export interface PeerLinkOptions {
  readonly id: string;
  readonly addresses: readonly string[];
  readonly trust: Trust | undefined;
  readonly hello: () => HelloFields;
  /** Throws when the other server is not the one that it should be. */
  readonly checkWelcome: (welcome: Accepted) => void;
  /** The other server refused, and says why. */
  readonly refused: (error: FarkvError) => void;
  readonly up: () => void;
  readonly log: Log;
  readonly timeoutMs: number;
}

const BACKOFF_MS = { first: 50, most: 1000 };
/**
 * Raft messages beyond this many waiting bytes are dropped, so that one slow server does not hold the memory of this
 * one.
 */
const BACKLOG_MAX = 8 << 20;
const PING_MS = 2000;

export class PeerLink {
  readonly #options: PeerLinkOptions;
  readonly #abort = new AbortController();
  #client: ControlClient | undefined;
  #closed = false;
  #lastError = '';

  constructor(options: PeerLinkOptions) {
    this.#options = options;
  }

  get id(): string {
    return this.#options.id;
  }
  get connected(): boolean {
    return this.#client !== undefined;
  }

  start(): void {
    void this.#run();
  }

  send(message: RaftMessage): void {
    const connection = this.#client?.connection;
    if (connection !== undefined && connection.backlog < BACKLOG_MAX) connection.send({ t: 'raft', message });
  }

  /** Rejects with ERR_DISCONNECTED at once when there is no connection. */
  async call(method: string, args: unknown, timeoutMs: number): Promise<unknown> {
    if (this.#client === undefined)
      throw new FarkvError('ERR_DISCONNECTED', `there is no connection to ${this.#options.id}`);
    return await this.#client.call(method, args, timeoutMs);
  }

  close(): void {
    this.#closed = true;
    this.#abort.abort();
    this.#client?.close();
  }

  async #run(): Promise<void> {
    const { addresses } = this.#options;
    for (let attempt = 0; !this.#closed; attempt++) {
      const address = addresses[attempt % addresses.length];
      if (address === undefined) return;
      try {
        await this.#connected(address);
        attempt = -1;
      } catch (error) {
        this.#failed(error);
      }
      if (this.#abort.signal.aborted) return;
      const most = Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** Math.floor((attempt + 1) / addresses.length));
      await pause(most / 2 + Math.random() * (most / 2), this.#abort.signal);
    }
  }

  /** Resolves when a connection that was there is gone. */
  async #connected(address: string): Promise<void> {
    const { trust, hello, timeoutMs, checkWelcome, id, log } = this.#options;
    let lost: (() => void) | undefined;
    const gone = new Promise<void>((resolve) => (lost = resolve));
    const client = await ControlClient.open({
      address,
      trust,
      hello: hello(),
      timeoutMs,
      signal: this.#abort.signal,
      closed: () => lost?.(),
    });
    try {
      checkWelcome(client.welcome);
    } catch (error) {
      client.close();
      throw error;
    }
    this.#lastError = '';
    this.#client = client;
    log.debug(`connected to ${id} at ${address}`);
    const heartbeat = new Heartbeat(client.connection, { pingMs: PING_MS, silentMs: PING_MS + timeoutMs });
    this.#options.up();
    await gone;
    heartbeat.stop();
    this.#client = undefined;
    log.debug(`the connection to ${id} is gone`);
  }

  #failed(error: unknown): void {
    if (this.#closed) return;
    const text = describeError(error);
    if (text !== this.#lastError) this.#options.log.info(`${this.#options.id} cannot be reached: ${text}`);
    this.#lastError = text;
    if (
      error instanceof FarkvError &&
      !['ERR_DISCONNECTED', 'ERR_TIMEOUT', 'ERR_ABORTED', 'ERR_BUSY'].includes(error.code)
    )
      this.#options.refused(error);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done);
  });
}
