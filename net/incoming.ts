/**
 * Incoming: one accepted connection, from its first byte to its end: the time for the hello, the hello, a welcome or a
 * refusal. Whether somebody may come in is decided by its handler (server/control/control-plane.ts).
 *
 * Invariants:
 *   - Until `welcome` is called a connection costs a socket, one frame of HELLO_FRAME_LIMITS, one refusal, and
 *     `handshakeMs` of time, and no frame but the hello reaches the handler.
 *   - `hello` is called at most once, before any `frame`; `closed` once, last.
 */
import type { Socket } from 'node:net';
import { FarkvError, type ErrorCode } from '../core/errors.js';
import {
  CLIENT_FRAME_LIMITS,
  HELLO_FRAME_LIMITS,
  type Frame,
  type FrameLimits,
  type Hello,
} from '../core/protocol/index.js';
import { Connection, type ConnectionHandlers, type Shared } from './connection.js';
import { Deadline } from './deadline.js';
import { commonVersion, makeRefusal, type WelcomeFields } from './hello.js';

export interface IncomingHandlers {
  /** Calls `welcome`, or throws a FarkvError, with which the other end is refused. */
  readonly hello: (hello: Hello) => void;
  /** The other end was sent this reason; `closed` follows. */
  readonly refused: (message: string, code: ErrorCode) => void;
  /** Frames after the welcome, but pings, which are answered here. What it throws closes the connection. */
  readonly frame: (frame: Frame) => void;
  readonly closed: (error: FarkvError | undefined) => void;
  /** What was waiting has gone out. */
  readonly drained: () => void;
}

/**
 * With more than this to take, an end gets no answers to its pings: what it has not taken shows as well that this end
 * lives. Small, since a short answer that waits costs many times its bytes.
 */
const PONGS_UNREAD = 4 << 10;
/** A refusal with the longest message. */
const REFUSAL_MAX = 16 << 10;

export class Incoming {
  readonly connection: Connection;
  readonly #handlers: IncomingHandlers;
  #deadline: Deadline;
  #version = 0;
  #welcomed = false;
  /** Frames that may still come. */
  #left = Infinity;

  constructor(socket: Socket, handshakeMs: number, handlers: IncomingHandlers, shared?: Shared) {
    this.#handlers = handlers;
    this.#deadline = new Deadline(handshakeMs, () =>
      this.connection.close(new FarkvError('ERR_TIMEOUT', 'no hello received in time')),
    );
    const events: ConnectionHandlers = {
      frame: (frame) => this.#received(frame),
      closed: (error) => {
        this.#deadline.clear();
        handlers.closed(error);
      },
      drained: handlers.drained,
    };
    this.connection = new Connection(socket, HELLO_FRAME_LIMITS, events, shared);
    this.connection.setLimits(HELLO_FRAME_LIMITS, REFUSAL_MAX);
  }

  /**
   * The other end is let in, and may send as much as `limits` say; `visit`: so many frames, pings among them, and no
   * longer than that.
   */
  welcome(
    fields: WelcomeFields,
    limits: FrameLimits = CLIENT_FRAME_LIMITS,
    visit?: { readonly frames: number; readonly ms: number },
  ): void {
    this.#welcomed = true;
    if (visit !== undefined) {
      this.#left = visit.frames;
      this.#deadline = new Deadline(visit.ms, () =>
        this.connection.close(new FarkvError('ERR_TIMEOUT', 'this connection was for one call, and is over')),
      );
    }
    this.connection.setLimits(limits);
    this.connection.send({ t: 'welcome', ok: true, version: this.#version, ...fields });
  }

  #received(frame: Frame): void {
    if (!this.#welcomed) {
      this.#arrives(frame);
      return;
    }
    this.#left -= 1;
    if (this.#left < 0) throw new FarkvError('ERR_PROTOCOL', 'more frames than a visit has');
    if (frame.t === 'ping') {
      if (this.connection.backlog <= PONGS_UNREAD) this.connection.send({ t: 'pong', id: frame.id });
    } else {
      this.#handlers.frame(frame);
    }
  }

  #arrives(frame: Frame): void {
    if (frame.t !== 'hello') throw new FarkvError('ERR_PROTOCOL', 'the first frame is not a hello');
    this.#deadline.clear();
    try {
      this.#version = commonVersion(frame);
      this.#handlers.hello(frame);
    } catch (error) {
      if (this.#welcomed || !(error instanceof FarkvError)) throw error;
      this.#refuse(error.code, error.message);
    }
  }

  #refuse(code: ErrorCode, message: string): void {
    this.#handlers.refused(message, code);
    this.connection.end(makeRefusal(code, message));
  }
}
