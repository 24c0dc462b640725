/**
 * FrontThread: the thread of clients and operators (front-worker.ts) as the thread of Raft sees it: it is sent each new
 * state of the metadata, and asks for what only this thread can answer. Nothing waits for it.
 */
import type { Worker } from 'node:worker_threads';
import { FarkvError } from '../../core/errors.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { startThread } from '../../native/package.js';
import type { HostPort } from '../config/units.js';
import { OwnerNews } from '../http/owner-news.js';
import { describeError, failedCall, type Log } from '../log.js';
import type { Caller } from './auth.js';
import type { FromFront, FrontFigures, FrontStart, ToFront } from './front-messages.js';
import { StateFeed } from './state-feed.js';
import { ThreadWatch } from './thread-watch.js';

export interface FrontOptions {
  /** As loadFront() made it. */
  readonly worker: Worker;
  /** Of this start, as the metadata names it. */
  readonly incarnation: string;
  /** Answers a call that was checked, or throws a FarkvError. */
  readonly call: (caller: Caller, method: string, args: unknown) => Promise<unknown>;
  readonly log: Log;
  /** The thread has ended by itself. */
  readonly failed: (error: FarkvError) => void;
  /** How long close() lets the thread end by itself. */
  readonly closeMs?: number;
  /** The thread is asked so often whether it still answers. */
  readonly lookMs?: number;
}

const CLOSE_MS = 2000;

/**
 * The thread, which loads its program and binds nothing until it is opened: that takes as long as what the thread of
 * Raft has to load, so a start does both at once.
 */
export function loadFront(settings: FrontStart): Worker {
  const { serverId, listen, httpListen, tls, access, maxConnections, handshakeMs, logLevel } = settings;
  const start: FrontStart = { serverId, listen, httpListen, tls, access, maxConnections, handshakeMs, logLevel };
  return startThread('server/control/front-worker', { workerData: start, name: 'farkv-front' });
}

export class FrontThread {
  readonly bound: readonly HostPort[];
  readonly http: readonly HostPort[];
  readonly #worker: Worker;
  readonly #feed: StateFeed;
  /** Of the page; read here, since the front is not told of copies, nor of each state. */
  readonly #owners: OwnerNews | undefined;
  readonly #options: FrontOptions;
  readonly #watch: ThreadWatch;
  readonly #ended: Promise<void>;
  #figures: FrontFigures = { connections: 0, clients: 0 };
  #closing = false;

  private constructor(options: FrontOptions, worker: Worker, message: Extract<FromFront, { t: 'bound' }>) {
    this.#options = options;
    this.#worker = worker;
    this.bound = message.bound;
    this.http = message.http;
    this.#feed = new StateFeed((change) => this.#say({ t: 'state', change }));
    const tell = (text: string, atMs: number): void => this.#say({ t: 'happened', text, atMs });
    this.#owners = message.http.length === 0 ? undefined : new OwnerNews({ ...options, tell });
    const { log, lookMs } = options;
    this.#watch = new ThreadWatch({
      ask: () => this.#say({ t: 'ask' }),
      log,
      ...(lookMs === undefined ? {} : { lookMs }),
    });
    worker.on('message', (message: FromFront) => this.#received(message));
    this.#ended = new Promise((resolve) => {
      worker.on('exit', () => {
        resolve();
        this.#watch.close();
        if (!this.#closing)
          options.failed(new FarkvError('ERR_INTERNAL', 'the thread of clients and operators has ended'));
      });
    });
  }

  /** Throws as Listener.open. */
  static async open(options: FrontOptions): Promise<FrontThread> {
    const { worker, incarnation } = options;
    worker.on('error', (error) =>
      options.log.error(`the thread of clients and operators: ${describeError(error)}`, { event: 'front-failed' }),
    );
    worker.postMessage({ t: 'open', incarnation } satisfies ToFront);
    const first = await new Promise<FromFront | undefined>((resolve) => {
      const end = (): void => over(undefined);
      const take = (message: FromFront): void => {
        if (message.t === 'log') options.log.pass(message.level, message.text, message.fields);
        else over(message);
      };
      const over = (message: FromFront | undefined): void => {
        worker.off('message', take).off('exit', end);
        resolve(message);
      };
      worker.on('message', take).on('exit', end);
    });
    if (first?.t === 'bound') return new FrontThread(options, worker, first);
    await worker.terminate();
    if (first?.t === 'failed') throw new FarkvError(first.failure.code, first.failure.message);
    throw new FarkvError('ERR_INTERNAL', 'the thread of clients and operators could not start');
  }

  get figures(): FrontFigures {
    return this.#figures;
  }

  /** For about so long the thread has not answered; undefined: it does. */
  get stalledMs(): number | undefined {
    return this.#watch.stalledMs;
  }

  stateChanged(state: MetadataState): void {
    this.#feed.offer(state);
    this.#owners?.observe(state, Date.now());
  }

  /** Cuts every connection. A thread that is busy with something else is ended all the same. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#owners?.close();
    this.#say({ t: 'stop' });
    const late = setTimeout(() => void this.#worker.terminate(), this.#options.closeMs ?? CLOSE_MS);
    await this.#ended;
    clearTimeout(late);
  }

  #say(message: ToFront): void {
    this.#worker.postMessage(message);
  }

  #received(message: FromFront): void {
    switch (message.t) {
      case 'here':
        this.#watch.answered();
        break;
      case 'taken':
        this.#feed.taken();
        break;
      case 'call':
        this.#figures = message.figures;
        void this.#answer(message.id, message.caller, message.method, message.args);
        break;
      case 'figures':
        this.#figures = message.figures;
        break;
      case 'log':
        this.#options.log.pass(message.level, message.text, message.fields);
        break;
      case 'bound':
      case 'failed':
        break;
    }
  }

  async #answer(id: number, caller: Caller, method: string, args: unknown): Promise<void> {
    try {
      this.#say({ t: 'answer', id, result: await this.#options.call(caller, method, args) });
    } catch (error) {
      const known = error instanceof FarkvError;
      if (!known) this.#options.log.error(`${method} failed: ${describeError(error)}`, failedCall(method, caller));
      const failure = known
        ? { code: error.code, message: error.message }
        : ({ code: 'ERR_INTERNAL', message: 'the server failed' } as const);
      this.#say({ t: 'answer', id, failure });
    }
  }
}
