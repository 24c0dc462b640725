/**
 * Connection: frames on one socket, dialed or accepted. It knows nothing of what frames mean. outgoing.ts and
 * incoming.ts are built on it.
 *
 * Invariants:
 *   - Bytes become frames in `#received` and nowhere else. What one end may cost the other per turn is bounded there:
 *     by `limits`, and by the handler, which closes the connection.
 *   - At most BACKLOG_MAX bytes wait to be sent; then the connection is closed.
 *   - `closed` is called once, and no handler after it.
 */
import type { Socket } from 'node:net';
import { FarkvError } from '../core/errors.js';
import { encodeFrame, FrameReader, type Frame, type FrameLimits } from '../core/protocol/index.js';

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

export class Connection {
  readonly #socket: Socket;
  readonly #reader: FrameReader;
  readonly #handlers: ConnectionHandlers;
  #heardAt = performance.now();
  #closed = false;
  #corked = false;

  constructor(socket: Socket, limits: FrameLimits, handlers: ConnectionHandlers) {
    this.#socket = socket;
    this.#reader = new FrameReader(limits);
    this.#handlers = handlers;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on('data', (chunk: Buffer) => this.#received(chunk));
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

  /** Bytes that wait for the other end to take them. */
  get backlog(): number {
    return this.#socket.writableLength;
  }

  /** When the last bytes came, by performance.now(); before that, when the connection was made. */
  get heardAt(): number {
    return this.#heardAt;
  }

  /** The frames that follow may be as large as this. */
  setLimits(limits: FrameLimits): void {
    this.#reader.limits = limits;
  }

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
    if (this.#socket.writableLength + bytes.length > BACKLOG_MAX) {
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
    this.#socket.write(bytes);
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
    this.#finish(error);
  }

  #finish(error: FarkvError | undefined): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#handlers.closed(error);
  }

  #received(chunk: Buffer): void {
    if (this.#closed) return;
    this.#heardAt = performance.now();
    try {
      this.#reader.push(chunk, (frame) => {
        this.#handlers.frame(frame);
        return !this.#closed;
      });
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
