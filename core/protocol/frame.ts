/**
 * Frames on a byte stream: a length of four bytes, big-endian, then that many bytes of MessagePack. The reader believes
 * nothing: a length over the limit is refused before a byte after it is kept, so a peer costs at most one frame's
 * memory and one chunk's.
 *
 * Both sides of the control plane use this: `encodeFrame` to write, a FrameReader per connection to read.
 */
import { FarkvError } from '../errors.js';
import { checkFrame } from './frames.js';
import type { FrameLimits } from './limits.js';
import type { Frame } from './messages.js';
import { decodeValue, encodeValue } from './value.js';

const PREFIX = 4;
/** `HTTP`, as the answers of web servers begin. */
const HTTP = 0x48545450;

/** A frame's bytes, with its length, ready to be written. */
export function encodeFrame(frame: Frame): Uint8Array {
  const body = encodeValue(frame);
  const out = new Uint8Array(PREFIX + body.length);
  new DataView(out.buffer).setUint32(0, body.length);
  out.set(body, PREFIX);
  return out;
}

const EMPTY = new Uint8Array(0);

export class FrameReader {
  /** May be raised when the peer has shown who it is. */
  limits: FrameLimits;
  /**
   * What has arrived and is not read: #kept[#from ... #to). Between two pushes it is memory of the reader's own, or
   * EMPTY.
   */
  #kept: Uint8Array = EMPTY;
  #from = 0;
  #to = 0;

  constructor(limits: FrameLimits) {
    this.limits = limits;
  }

  /** True when the stream may end here. */
  get atBoundary(): boolean {
    return this.#from === this.#to;
  }

  /**
   * Takes what arrived and hands each whole frame to `deliver`, in order, with the bytes that it had. Throws
   * ERR_PROTOCOL for the first one that is not well formed; the connection must then be closed, for nothing after it can
   * be found. `deliver` may raise `limits` for the frames that follow, and stops the delivery by returning false; read()
   * goes on. The chunk is not kept.
   */
  push(chunk: Uint8Array, deliver: (frame: Frame, bytes: number) => boolean): void {
    // Without a copy: most chunks are whole frames.
    if (this.#from === this.#to) {
      this.#kept = chunk;
      this.#from = 0;
      this.#to = chunk.length;
    } else {
      this.#append(chunk);
    }
    try {
      while (this.#next(deliver));
    } finally {
      const left = this.#to - this.#from;
      if (left === 0) this.#hold(EMPTY);
      // `new` copies, where a Buffer's own slice would not.
      else if (this.#kept === chunk) this.#hold(new Uint8Array(chunk.subarray(this.#from, this.#to)));
    }
  }

  /** Takes what arrived without reading it: `read` does that. */
  keep(chunk: Uint8Array): void {
    this.#append(chunk);
  }

  /** As push, with what has arrived before. */
  read(deliver: (frame: Frame, bytes: number) => boolean): void {
    this.push(EMPTY, deliver);
  }

  #hold(bytes: Uint8Array): void {
    this.#kept = bytes;
    this.#from = 0;
    this.#to = bytes.length;
  }

  #next(deliver: (frame: Frame, bytes: number) => boolean): boolean {
    const have = this.#to - this.#from;
    if (have < PREFIX) return false;
    const body = this.#from + PREFIX;
    const bytes = new DataView(this.#kept.buffer, this.#kept.byteOffset + this.#from, PREFIX).getUint32(0);
    if (bytes === 0 || bytes > this.limits.bytes) {
      throw new FarkvError(
        'ERR_PROTOCOL',
        bytes === HTTP
          ? 'it speaks http: clients and operators use the port that a server of farkv has by --listen'
          : `a frame of ${bytes} bytes, 1 to ${this.limits.bytes} are taken: not farkv, or not this version`,
      );
    }
    if (have - PREFIX < bytes) return false;
    this.#from = body + bytes;
    return deliver(checkFrame(decodeValue(this.#kept.subarray(body, body + bytes), this.limits)), PREFIX + bytes);
  }

  /**
   * Adds to what is kept, in memory that grows by doubling: a frame in many small pieces costs a linear number of
   * copied bytes.
   */
  #append(chunk: Uint8Array): void {
    const left = this.#to - this.#from;
    if (this.#kept.length - this.#to < chunk.length) {
      const grown = new Uint8Array(Math.max(2 * left, left + chunk.length));
      grown.set(this.#kept.subarray(this.#from, this.#to));
      this.#kept = grown;
      this.#from = 0;
      this.#to = left;
    }
    this.#kept.set(chunk, this.#to);
    this.#to += chunk.length;
  }
}
