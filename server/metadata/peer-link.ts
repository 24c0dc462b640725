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
import type { TrustSource } from '../../net/tls.js';
import { credentialEnded } from '../audit.js';
import type { Tokens } from '../control/auth.js';
import type { Standing, Stander } from '../control/standing.js';
import type { Log } from '../log.js';
import { codeOf, describeError } from '../log.js';
import { probe } from '../shards/probe.js';

export interface PeerLinkOptions {
  readonly id: string;
  readonly addresses: readonly string[];
  readonly trust: TrustSource | undefined;
  /** The tokens of this server. */
  readonly tokens: Tokens | undefined;
  /** Where the connection stands. */
  readonly standing: Standing;
  readonly hello: (token: string | undefined) => HelloFields;
  /** Throws when the other server is not the one that it should be. */
  readonly checkWelcome: (welcome: Accepted, address: string) => void;
  /** The other server refused, and says why. */
  readonly refused: (error: FarkvError) => void;
  readonly up: () => void;
  /** There was a connection, and nobody listens any more: the other server's process has ended. Said again, until it is back. */
  readonly gone: () => void;
  readonly log: Log;
  readonly timeoutMs: number;
  /** Messages that could not go over the links to this server before this one; default 0. */
  readonly lostBefore?: number;
}

export interface PeerFigures {
  readonly id: string;
  readonly connected: boolean;
  /** Of the last answered ping over this connection; absent: none was yet. */
  readonly rttUs?: number;
  /** Raft messages that could not go, since the start of this server: no connection, or one that takes nothing. */
  readonly lostMessages: number;
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
  /** Where it was found or says that it is, beside where it is expected. */
  #found: readonly string[] = [];
  #client: ControlClient | undefined;
  #closed = false;
  #lastError = '';
  /** While tokens are exchanged servers have different ones: after a refusal the next one is shown. */
  #turn = 0;
  /** Tokens refused one after the other. */
  #refused = 0;
  #heartbeat: Heartbeat | undefined;
  #lost: number;

  constructor(options: PeerLinkOptions) {
    this.#options = options;
    this.#lost = options.lostBefore ?? 0;
  }

  get id(): string {
    return this.#options.id;
  }
  get connected(): boolean {
    return this.#client !== undefined;
  }

  get figures(): PeerFigures {
    const rttMs = this.#heartbeat?.rttMs;
    return {
      id: this.id,
      connected: this.connected,
      ...(rttMs === undefined ? {} : { rttUs: Math.round(rttMs * 1000) }),
      lostMessages: this.#lost,
    };
  }

  /** It is looked for there, too, from now on. What was said before is no longer so. */
  isAt(addresses: readonly string[]): void {
    this.#found = addresses;
  }

  start(): void {
    void this.#run();
  }

  /** `leavesNow`: before this returns, where the socket takes it; else at the end of this turn of the event loop. */
  send(message: RaftMessage, leavesNow: boolean): void {
    const connection = this.#client?.connection;
    if (connection === undefined || connection.backlog >= BACKLOG_MAX) {
      this.#lost += 1;
      return;
    }
    connection.send({ t: 'raft', message });
    if (leavesNow) connection.flush();
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
    /** Where it was there last. */
    let wasAt: string | undefined;
    for (let attempt = 0; !this.#closed; attempt++) {
      const addresses = [...new Set([...this.#options.addresses, ...this.#found])];
      const address = addresses[attempt % addresses.length];
      if (address === undefined) return;
      try {
        await this.#connected(address);
        attempt = -1;
        wasAt = address;
      } catch (error) {
        this.#failed(error);
      }
      if (wasAt !== undefined) this.#seeWhetherGone(wasAt);
      if (this.#abort.signal.aborted) return;
      const most = Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** Math.floor((attempt + 1) / addresses.length));
      await pause(most / 2 + Math.random() * (most / 2), this.#abort.signal);
    }
  }

  /** A connection can break for many reasons; only a refusal where it was says that the process has ended. */
  #seeWhetherGone(address: string): void {
    probe([address]).catch(() => {
      if (!this.#closed && !this.connected) this.#options.gone();
    });
  }

  /** Resolves when a connection that was there is gone. */
  async #connected(address: string): Promise<void> {
    const { trust, hello, tokens, timeoutMs, checkWelcome, id, log, standing } = this.#options;
    const all = tokens?.all ?? [];
    const token = all.length === 0 ? undefined : all[this.#turn % all.length];
    let lost: (() => void) | undefined;
    const gone = new Promise<void>((resolve) => (lost = resolve));
    const client = await ControlClient.open({
      address,
      trust,
      serverId: id,
      hello: hello(token),
      timeoutMs,
      signal: this.#abort.signal,
      ponged: (pong) => this.#heartbeat?.ponged(pong),
      closed: () => lost?.(),
    });
    try {
      checkWelcome(client.welcome, address);
    } catch (error) {
      client.close();
      throw error;
    }
    this.#lastError = '';
    this.#refused = 0;
    this.#client = client;
    log.debug(`connected to ${id} at ${address}`);
    const heartbeat = (this.#heartbeat = new Heartbeat(client.connection, {
      pingMs: PING_MS,
      silentMs: PING_MS + timeoutMs,
    }));
    const stander = this.#stander(client, token);
    standing.add(stander);
    this.#options.up();
    await gone;
    standing.remove(stander);
    heartbeat.stop();
    this.#heartbeat = undefined;
    this.#client = undefined;
    log.debug(`the connection to ${id} is gone`);
  }

  /** The connection ends with the certificates of both ends, and with the token that was shown: then it is dialed anew. */
  #stander(client: ControlClient, token: string | undefined): Stander {
    const { tokens, id, log } = this.#options;
    const tokenLapsed = token === undefined ? undefined : tokens?.lapsed(token);
    const { remote: address } = client.connection;
    return {
      lapsed: (wallMs) => client.lapsed(wallMs) ?? tokenLapsed?.(),
      end: (why) => {
        log.audit(credentialEnded({ role: 'peer', name: id, address }, why.message));
        client.connection.close(why);
      },
    };
  }

  #failed(error: unknown): void {
    if (this.#closed) return;
    const text = describeError(error);
    if (text !== this.#lastError)
      this.#options.log.info(`${this.#options.id} cannot be reached: ${text}`, {
        event: 'server-unreachable',
        server: this.#options.id,
        ...codeOf(error),
      });
    this.#lastError = text;
    // Told to wait, it may have shown a wrong token too: others of its address have shown many.
    if (error instanceof FarkvError && error.code === 'ERR_BUSY') this.#turn += 1;
    if (error instanceof FarkvError && error.code === 'ERR_UNAUTHORIZED') {
      this.#turn += 1;
      this.#refused += 1;
      if (this.#refused < (this.#options.tokens?.all.length ?? 0)) return;
    }
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
