/**
 * ControlClient: an outgoing connection on which calls are made, each answered once. Servers among themselves
 * (server/metadata/peer-link.ts), `farkv status` and operators' commands use it. The SDK makes no calls; it follows
 * maps (client/control-connection.ts).
 *
 * Invariant: every call ends: with its answer, with ERR_TIMEOUT, or with ERR_DISCONNECTED when the connection ends.
 */
import { FarkvError } from '../core/errors.js';
import type { Answer, Frame } from '../core/protocol/index.js';
import type { Connection } from './connection.js';
import { Deadline } from './deadline.js';
import type { Accepted } from './hello.js';
import { Outgoing, type OutgoingOptions } from './outgoing.js';

export interface OpenOptions extends OutgoingOptions {
  /** For dialing and the welcome. */
  readonly timeoutMs: number;
  /** Frames other than answers. */
  readonly frame?: (frame: Frame) => void;
  /** The answer to a ping. */
  readonly ponged?: (id: number) => void;
  /** An opened connection is gone. */
  readonly closed?: (error: FarkvError) => void;
  readonly signal?: AbortSignal;
}

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly deadline: Deadline;
}

export class ControlClient {
  readonly welcome: Accepted;
  readonly connection: Connection;
  readonly #outgoing: Outgoing;
  readonly #waiting = new Map<number, Waiting>();
  #calls = 0;

  private constructor(welcome: Accepted, outgoing: Outgoing) {
    this.welcome = welcome;
    this.#outgoing = outgoing;
    this.connection = outgoing.connection;
  }

  /**
   * Rejects with the server's reason when it refuses, ERR_DISCONNECTED when nobody listens or the connection ends,
   * ERR_TIMEOUT when nobody answers, ERR_ABORTED with the signal.
   */
  static open(options: OpenOptions): Promise<ControlClient> {
    const { address, timeoutMs, signal } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) throw aborted();
      let client: ControlClient | undefined;
      const outgoing = new Outgoing(options, {
        welcomed: (welcome) => {
          settled();
          client = new ControlClient(welcome, outgoing);
          resolve(client);
        },
        refused: reject,
        ponged: options.ponged,
        frame: (frame) => {
          if (client !== undefined && frame.t === 'answer') client.#answered(frame);
          else options.frame?.(frame);
        },
        closed: (error) => {
          settled();
          reject(new FarkvError('ERR_DISCONNECTED', `${address}: ${error.message}`, { cause: error.cause ?? error }));
          if (client === undefined) return;
          client.#lost(new FarkvError('ERR_DISCONNECTED', `the connection to ${address} was lost`, { cause: error }));
          options.closed?.(error);
        },
      });
      const giveUp = (error: FarkvError): void => {
        reject(error);
        outgoing.connection.close(error);
      };
      const abort = (): void => giveUp(aborted());
      const deadline = new Deadline(timeoutMs, () =>
        giveUp(new FarkvError('ERR_TIMEOUT', `${address} did not answer within ${timeoutMs} ms`)),
      );
      const settled = (): void => {
        deadline.clear();
        signal?.removeEventListener('abort', abort);
      };
      signal?.addEventListener('abort', abort);
    });
  }

  /** Rejects with the error that the other end answered, ERR_TIMEOUT, or ERR_DISCONNECTED. */
  call(method: string, args: unknown, timeoutMs: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.connection.closed) throw new FarkvError('ERR_DISCONNECTED', 'the connection is closed');
      const id = ++this.#calls;
      const deadline = new Deadline(timeoutMs, () => {
        this.#waiting.delete(id);
        reject(new FarkvError('ERR_TIMEOUT', `${method} was not answered within ${timeoutMs} ms`));
      });
      this.#waiting.set(id, { resolve, reject, deadline });
      this.connection.send({ t: 'call', id, method, args });
    });
  }

  /** As Outgoing.lapsed. */
  lapsed(wallMs: number): string | undefined {
    return this.#outgoing.lapsed(wallMs);
  }

  close(): void {
    this.connection.close();
  }

  /** An answer that comes too late is dropped. */
  #answered(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    if (waiting === undefined) return;
    this.#waiting.delete(answer.id);
    waiting.deadline.clear();
    if (answer.ok) waiting.resolve(answer.result);
    else waiting.reject(new FarkvError(answer.code, answer.message));
  }

  #lost(error: FarkvError): void {
    for (const { deadline, reject } of this.#waiting.values()) {
      deadline.clear();
      reject(error);
    }
    this.#waiting.clear();
  }
}

function aborted(): FarkvError {
  return new FarkvError('ERR_ABORTED', 'no longer wanted');
}
