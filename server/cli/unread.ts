/**
 * What a server writes to a pipe that nobody reads: it never waits for the reader, and keeps no more than a bound.
 *
 * A pipe is opened once more. Whether a write blocks is kept with what was opened, which a server shares with whoever
 * started it: others may set it, and Node.js does when it ends.
 */
import { constants, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';

const BYTES_MAX = 1 << 20;
/** So long a process that is done waits until its last lines are read. */
const LAST_MS = 3000;

/** Where standard output or error goes. */
export function unshared(stream: NodeJS.WriteStream & { readonly fd: number }): Writable {
  try {
    if (!fstatSync(stream.fd).isFIFO()) return stream;
    const fd = openSync(`/proc/self/fd/${stream.fd}`, constants.O_WRONLY | constants.O_NONBLOCK);
    // Whoever reads may go away.
    return new Socket({ fd, readable: false, writable: true }).on('error', () => undefined);
  } catch {
    return stream;
  }
}

/** Lines, as many as fit; then as many as were left out, as soon as what waited was read. */
export class BoundedLines {
  readonly #stream: Pick<Writable, 'write' | 'writableLength'>;
  readonly #bytesMax: number;
  readonly #omitted: (count: number) => string;
  #leftOut = 0;

  /** `omitted`: the line that says how many were left out. */
  constructor(
    stream: Pick<Writable, 'write' | 'writableLength' | 'on'>,
    omitted: (count: number) => string,
    bytesMax = BYTES_MAX,
  ) {
    this.#stream = stream;
    this.#bytesMax = bytesMax;
    this.#omitted = omitted;
    stream.on('drain', () => this.#sayOmitted());
  }

  #sayOmitted(): void {
    if (this.#leftOut > 0) this.#stream.write(this.#omitted(this.#leftOut));
    this.#leftOut = 0;
  }

  write(line: string): void {
    // What comes later is left out too, so that the gap is one.
    if (this.#leftOut > 0 || this.#stream.writableLength + line.length > this.#bytesMax) this.#leftOut += 1;
    else this.#stream.write(line);
  }

  /** With what the process ends: it is never left out. */
  writeLast(line: string): void {
    this.#sayOmitted();
    this.#stream.write(line);
  }
}

/** To be called when nothing is left to be done but that the last lines are read: then the process ends all the same. */
export function endUnread(): void {
  setTimeout(() => process.exit(), LAST_MS).unref();
}
