/**
 * The calling side of the control plane: dials, says hello, and makes calls. Used between servers (metadata/peer-link.ts) and by
 * `farkv status`; the SDK has its own (client/), which follows maps and reconnects.
 *
 * Invariant: an answer that came in time is taken, also when this process stood still until the time was over (a disk that was slow to write, a machine
 * that is busy): timers are looked at before sockets, so the end of a time waits until those have been looked at once more.
 */
import { FarkvError } from '../../core/errors.js';
import {
  PEER_FRAME_LIMITS, PROTOCOL_MAX, PROTOCOL_MIN, SERVER_FRAME_LIMITS, type Answer, type Frame, type Hello, type Welcome,
} from '../../core/protocol/index.js';
import { Connection } from './connection.js';
import { connectEvent, dial, type Trust } from './tls.js';

export type HelloFields = Omit<Hello, 't' | 'magic' | 'versions'>;
export type Accepted = Extract<Welcome, { ok: true }>;

export interface OpenOptions {
  readonly address: string;
  readonly trust: Trust | undefined;
  readonly hello: HelloFields;
  readonly timeoutMs: number;
  /** Frames other than answers and pongs. */
  readonly frame?: (frame: Frame) => void;
  readonly closed?: (error: Error | undefined) => void;
  readonly signal?: AbortSignal;
}

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** Runs `act` once what has come by then was looked at. */
function afterMs(ms: number, act: () => void): NodeJS.Timeout {
  return setTimeout(() => setImmediate(act), ms);
}

/** A server with TLS and one without have no words for each other. */
function unanswered(trust: Trust | undefined): string {
  return trust === undefined ? 'the connection was closed without an answer: does it want TLS?' : 'the connection was closed in the TLS handshake: is it one without TLS?';
}

export class ControlClient {
  readonly welcome: Accepted;
  readonly #connection: Connection;
  readonly #waiting: Map<number, Waiting>;
  #calls = 0;

  private constructor(welcome: Accepted, connection: Connection, waiting: Map<number, Waiting>) {
    this.welcome = welcome;
    this.#connection = connection;
    this.#waiting = waiting;
  }

  /** Rejects with the server's reason when it refuses, ERR_DISCONNECTED when nobody listens, ERR_TIMEOUT when nobody answers. */
  static open(options: OpenOptions): Promise<ControlClient> {
    return new Promise((resolve, reject) => {
      const waiting = new Map<number, Waiting>();
      let client: ControlClient | undefined;
      let settled = false;
      const socket = dial(options.address, options.trust);
      const fail = (error: FarkvError): void => {
        if (settled) return;
        settle();
        socket.destroy();
        reject(error);
      };
      const aborted = (): void => fail(new FarkvError('ERR_ABORTED', 'no longer wanted'));
      const settle = (): void => {
        settled = true;
        clearTimeout(timer);
        options.signal?.removeEventListener('abort', aborted);
      };
      const timer = afterMs(options.timeoutMs, () => fail(new FarkvError('ERR_TIMEOUT', `${options.address} did not answer within ${options.timeoutMs} ms`)));
      options.signal?.addEventListener('abort', aborted);
      if (options.signal?.aborted === true) aborted();
      const connection = new Connection(socket, options.hello.role === 'peer' ? PEER_FRAME_LIMITS : SERVER_FRAME_LIMITS, {
        frame: (frame) => {
          if (client !== undefined) {
            client.#received(frame, options.frame);
            return;
          }
          if (frame.t !== 'welcome') {
            fail(new FarkvError('ERR_PROTOCOL', `${options.address} did not answer with a welcome`));
            return;
          }
          if (!frame.ok) {
            fail(new FarkvError(frame.code, frame.message));
            return;
          }
          if (settled) return;
          settle();
          client = new ControlClient(frame, connection, waiting);
          resolve(client);
        },
        closed: (cause) => {
          fail(new FarkvError('ERR_DISCONNECTED', `${options.address}: ${cause?.message ?? (options.hello.role === 'peer' ? 'the connection was closed' : unanswered(options.trust))}`, { cause }));
          for (const w of waiting.values()) {
            clearTimeout(w.timer);
            w.reject(new FarkvError('ERR_DISCONNECTED', `the connection to ${options.address} was lost`, { cause }));
          }
          waiting.clear();
          if (client !== undefined) options.closed?.(cause);
        },
      });
      socket.once(connectEvent(options.trust), () => {
        connection.send({ t: 'hello', magic: 'farkv', versions: [PROTOCOL_MIN, PROTOCOL_MAX], ...options.hello });
      });
    });
  }

  get backlog(): number {
    return this.#connection.backlog;
  }

  send(frame: Frame): void {
    this.#connection.send(frame);
  }

  /** Rejects with the error that the other side answered, ERR_TIMEOUT, or ERR_DISCONNECTED. */
  call(method: string, args: unknown, timeoutMs: number): Promise<unknown> {
    return this.#ask(timeoutMs, method, (id) => ({ t: 'call', id, method, args }));
  }

  /** Resolves when the other side has answered: it is there. */
  async ping(timeoutMs: number): Promise<void> {
    await this.#ask(timeoutMs, 'ping', (id) => ({ t: 'ping', id }));
  }

  close(error?: Error): void {
    this.#connection.close(error);
  }

  #ask(timeoutMs: number, what: string, frame: (id: number) => Frame): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#connection.closed) {
        reject(new FarkvError('ERR_DISCONNECTED', 'the connection is closed'));
        return;
      }
      const id = ++this.#calls;
      const timer = afterMs(timeoutMs, () => {
        if (this.#waiting.delete(id)) reject(new FarkvError('ERR_TIMEOUT', `${what} was not answered within ${timeoutMs} ms`));
      });
      this.#waiting.set(id, { resolve, reject, timer });
      this.#connection.send(frame(id));
    });
  }

  #received(frame: Frame, other: ((frame: Frame) => void) | undefined): void {
    if (frame.t === 'answer' || frame.t === 'pong') {
      const waiting = this.#waiting.get(frame.id);
      if (waiting === undefined) return;
      this.#waiting.delete(frame.id);
      clearTimeout(waiting.timer);
      if (frame.t === 'pong' || frame.ok) waiting.resolve(frame.t === 'pong' ? undefined : frame.result);
      else waiting.reject(answeredError(frame));
    } else if (frame.t === 'ping') {
      this.send({ t: 'pong', id: frame.id });
    } else {
      other?.(frame);
    }
  }
}

function answeredError(answer: Extract<Answer, { ok: false }>): FarkvError {
  return new FarkvError(answer.code, answer.message);
}
