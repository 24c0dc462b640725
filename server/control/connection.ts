/**
 * One control connection, accepted or dialed: frames in, frames out, a bound on what waits to be sent. It knows nothing of what the
 * frames mean, but that a malformed one ends the connection.
 *
 * `closed` is called once, after which nothing else is.
 */
import type { Socket } from 'node:net';
import { FarkvError } from '../../core/errors.js';
import { encodeFrame, FrameReader, type Frame, type FrameLimits } from '../../core/protocol/index.js';

export interface ConnectionHandlers {
  readonly frame: (frame: Frame) => void;
  /** `error` is why, undefined when the other side closed in order. */
  readonly closed: (error: Error | undefined) => void;
  /** What was waiting has gone out. */
  readonly drained?: () => void;
}

/** A peer that takes nothing costs at most this, and then its connection. */
export const BACKLOG_MAX = 64 << 20;

export class Connection {
  readonly #socket: Socket;
  readonly #reader: FrameReader;
  readonly #handlers: ConnectionHandlers;
  #closed = false;
  #corked = false;

  constructor(socket: Socket, limits: FrameLimits, handlers: ConnectionHandlers) {
    this.#socket = socket;
    this.#reader = new FrameReader(limits);
    this.#handlers = handlers;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 30_000);
    socket.on('data', (chunk: Buffer) => this.#received(chunk));
    socket.on('drain', () => handlers.drained?.());
    socket.on('error', (error) => this.close(error));
    socket.on('close', () => this.close());
    socket.on('end', () => this.close(this.#reader.atBoundary ? undefined : new FarkvError('ERR_PROTOCOL', 'the connection ended in the middle of a frame')));
  }

  get remote(): string {
    const { remoteAddress, remotePort } = this.#socket;
    return remoteAddress === undefined ? 'a closed connection' : `${remoteAddress}:${remotePort ?? 0}`;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Bytes that wait for the other side to take them. */
  get backlog(): number {
    return this.#socket.writableLength;
  }

  /** The frames that follow may be as large as this. */
  setLimits(limits: FrameLimits): void {
    this.#reader.limits = limits;
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

  /** Sends what waits, then closes; a peer that does not take it is cut off. */
  end(frame: Frame): void {
    if (this.#closed) return;
    this.send(frame);
    this.#finish(undefined);
    this.#socket.end();
    const deadline = setTimeout(() => this.#socket.destroy(), 1000);
    this.#socket.once('close', () => clearTimeout(deadline));
  }

  close(error?: Error): void {
    this.#socket.destroy();
    this.#finish(error);
  }

  #finish(error: Error | undefined): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#handlers.closed(error);
  }

  #received(chunk: Buffer): void {
    if (this.#closed) return;
    try {
      this.#reader.push(chunk, (frame) => {
        this.#handlers.frame(frame);
        return !this.#closed;
      });
    } catch (error) {
      this.close(error as Error);
    }
  }
}
