/**
 * Connection: frames on one socket, dialed or accepted. It knows nothing of what frames mean. outgoing.ts and
 * incoming.ts are built on it.
 *
 * Invariants:
 *   - Bytes become frames in `#read` and nowhere else. What one end may cost the other per turn is bounded there: by
 *     `limits`, by the budget of `turns`, and by the handler, which holds or closes the connection. A connection whose
 *     frames wait reads nothing: its socket is paused.
 *   - At most `backlogMax` bytes wait to be sent; then the connection is closed. `outbox` bounds the sum over all.
 *   - `closed` is called once, and no handler after it.
 */
import type { Socket } from 'node:net';
import { FarkvError } from '../core/errors.js';
import { encodeFrame, FrameReader, type Frame, type FrameLimits } from '../core/protocol/index.js';
import type { Holder, Outbox } from './outbox.js';
import { Spent, type Turns } from './turns.js';

export interface ConnectionHandlers {
  /** A FarkvError that it throws closes the connection; another error does too, as an ERR_INTERNAL. */
  readonly frame: (frame: Frame) => void;
  /**
   * `error` is why; undefined when the other end closed in order, or this end without a reason. ERR_DISCONNECTED: the
   * network, whose error is the cause. ERR_PROTOCOL: bytes that are no frame. ERR_INTERNAL: a fault of this program.
   */
  readonly closed: (error: FarkvError | undefined) => void;
  /** What was waiting has gone out. */
  readonly drained?: () => void;
}

/** What an end that takes nothing costs the other before the connection is closed. */
export const BACKLOG_MAX = 64 << 20;
/** The last frame of a connection must be taken within this time. */
const END_MS = 1000;
const KEEP_ALIVE_MS = 30_000;

/** What the connections of a port share, so that none takes all of it. */
export interface Shared {
  readonly turns: Turns;
  readonly outbox: Outbox;
}

export class Connection implements Holder {
  readonly #socket: Socket;
  readonly #reader: FrameReader;
  readonly #handlers: ConnectionHandlers;
  readonly #shared: Shared | undefined;
  readonly #spent = new Spent();
  #backlogMax = BACKLOG_MAX;
  /** Bytes counted in the outbox. */
  #counted = 0;
  #held = false;
  /** Frames that have arrived wait for a later turn. */
  #waiting = false;
  #heardAt = performance.now();
  #closed = false;
  #corked = false;

  /** A dialed connection shares nothing: this program chose whom it talks to. */
  constructor(socket: Socket, limits: FrameLimits, handlers: ConnectionHandlers, shared?: Shared) {
    this.#socket = socket;
    this.#reader = new FrameReader(limits);
    this.#handlers = handlers;
    this.#shared = shared;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on('data', (chunk: Buffer) => {
      this.#heardAt = performance.now();
      this.#read(chunk);
    });
    socket.on('drain', () => {
      if (!this.#closed) handlers.drained?.();
    });
    socket.on('error', (error) => this.close(socketError(error)));
    socket.on('close', () => this.close());
    socket.on('end', () =>
      this.close(
        this.#reader.atBoundary
          ? undefined
          : new FarkvError('ERR_PROTOCOL', 'the connection ended in the middle of a frame'),
      ),
    );
  }

  get remote(): string {
    const { remoteAddress, remotePort } = this.#socket;
    return remoteAddress === undefined ? 'a closed connection' : `${remoteAddress}:${remotePort ?? 0}`;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get unsent(): number {
    return this.#counted;
  }

  /** Bytes that wait for the other end to take them. */
  get backlog(): number {
    return this.#socket.writableLength;
  }

  /** When the last bytes came, by performance.now(); before that, when the connection was made. */
  get heardAt(): number {
    return this.#heardAt;
  }

  /** The frames that follow may be as large as this, and so many bytes may wait for the other end. */
  setLimits(limits: FrameLimits, backlogMax = BACKLOG_MAX): void {
    this.#reader.limits = limits;
    this.#backlogMax = backlogMax;
  }

  /** No frame is handled and nothing is read until `release`. */
  hold(): void {
    this.#held = true;
    this.#socket.pause();
  }

  release(): void {
    if (!this.#held || this.#closed) return;
    this.#held = false;
    this.#wait();
  }

  readonly overrun = (): void =>
    this.close(new FarkvError('ERR_BUSY', `${this.backlog} bytes sent and not read, the most of all connections`));

  /** The connection does not keep the process alive. */
  unref(): void {
    this.#socket.unref();
  }

  /** Frames sent in one turn of the event loop leave in one write. */
  send(frame: Frame): void {
    this.sendBytes(encodeFrame(frame));
  }

  sendBytes(bytes: Uint8Array): void {
    if (this.#closed) return;
    if (this.#socket.writableLength + bytes.length > this.#backlogMax) {
      this.close(new FarkvError('ERR_BUSY', `${this.#socket.writableLength} bytes sent and not read by the other end`));
      return;
    }
    if (!this.#corked) {
      this.#corked = true;
      this.#socket.cork();
      process.nextTick(() => {
        this.#corked = false;
        this.#socket.uncork();
      });
    }
    const outbox = this.#shared?.outbox;
    if (outbox === undefined) {
      this.#socket.write(bytes);
      return;
    }
    this.#counted += bytes.length;
    this.#socket.write(bytes, () => this.#sent(bytes.length));
    outbox.added(this, bytes.length);
  }

  /** What was sent in this turn of the event loop leaves now, before what holds the turn up. */
  flush(): void {
    if (!this.#corked) return;
    this.#corked = false;
    this.#socket.uncork();
  }

  #sent(bytes: number): void {
    const counted = Math.min(bytes, this.#counted);
    this.#counted -= counted;
    this.#shared?.outbox.removed(this, counted);
  }

  /** Sends what waits and this frame, then closes; an end that does not take it is cut off. */
  end(frame: Frame): void {
    if (this.#closed) return;
    this.send(frame);
    this.#finish(undefined);
    this.#socket.end();
    const deadline = setTimeout(() => this.#socket.destroy(), END_MS);
    this.#socket.once('close', () => clearTimeout(deadline));
  }

  close(error?: FarkvError): void {
    this.#socket.destroy();
    this.#sent(this.#counted);
    this.#finish(error);
  }

  #finish(error: FarkvError | undefined): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#shared?.turns.forget(this.#goOn);
    this.#handlers.closed(error);
  }

  readonly #goOn = (): void => {
    this.#waiting = false;
    if (this.#closed || this.#held) return;
    this.#read();
    if (!this.#isStopped()) this.#socket.resume();
  };

  /** The handlers of a frame change these. */
  #isStopped(): boolean {
    return this.#closed || this.#held || this.#waiting;
  }

  /** The frames that are left are handled in a later turn, and nothing is read until then. */
  #wait(): void {
    if (this.#waiting) return;
    if (this.#shared === undefined) {
      setImmediate(this.#goOn);
    } else {
      this.#shared.turns.wait(this.#goOn);
    }
    this.#waiting = true;
    this.#socket.pause();
  }

  #read(chunk?: Buffer): void {
    if (this.#closed) return;
    const turns = this.#shared?.turns;
    const deliver = (frame: Frame, bytes: number): boolean => {
      this.#handlers.frame(frame);
      turns?.spend(this.#spent, bytes);
      if (this.#isStopped()) return false;
      if (turns?.allows(this.#spent) !== false) return true;
      this.#wait();
      return false;
    };
    try {
      if (this.#held || this.#waiting || turns?.allows(this.#spent) === false) {
        if (chunk !== undefined) this.#reader.keep(chunk);
        if (!this.#held) this.#wait();
      } else if (chunk === undefined) this.#reader.read(deliver);
      else this.#reader.push(chunk, deliver);
    } catch (error) {
      this.close(
        error instanceof FarkvError
          ? error
          : new FarkvError('ERR_INTERNAL', 'a frame could not be handled', { cause: error }),
      );
    }
  }
}

function socketError(error: Error): FarkvError {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return new FarkvError('ERR_DISCONNECTED', error.message === '' ? code : error.message, { cause: error });
}
