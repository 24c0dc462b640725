/** A socket without a network: what the other end sends is pushed, what it is sent is kept. */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { FrameReader, SERVER_FRAME_LIMITS, type Frame } from '../../core/protocol/index.js';

class Ends extends Duplex {
  readonly remoteAddress = '127.0.0.1';
  readonly remotePort = 1;
  readonly #reader = new FrameReader(SERVER_FRAME_LIMITS);
  readonly frames: Frame[] = [];

  setNoDelay(): this {
    return this;
  }
  setKeepAlive(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  override _read(): void {
    // What comes is pushed.
  }
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    // Throws where the product sends what is no frame.
    this.#reader.push(chunk, (frame) => this.frames.push(frame) > 0);
    done();
  }
}

export class FakeSocket {
  readonly #ends = new Ends();
  closed = false;

  constructor() {
    this.#ends.on('close', () => (this.closed = true));
  }

  /** For the product. */
  get socket(): Socket {
    return this.#ends as unknown as Socket;
  }
  /** What the product sent. */
  get frames(): readonly Frame[] {
    return this.#ends.frames;
  }
  send(bytes: Uint8Array): void {
    if (!this.#ends.destroyed) this.#ends.push(Buffer.from(bytes));
  }
  end(): void {
    if (!this.#ends.destroyed) this.#ends.destroy();
  }
}

/** All that waits for this turn of the event loop, and for the next, has run. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
