/** Standard output for commands that may be piped: waits when the reader is slow, and ends quietly when it has gone (`farkv scan | head`). */
import { once } from 'node:events';

export class Output {
  #gone = false;

  constructor() {
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      this.#gone = true;
    });
  }

  /** Nobody reads any more. */
  get gone(): boolean {
    return this.#gone;
  }

  async write(chunk: string | Uint8Array): Promise<void> {
    if (this.#gone || process.stdout.write(chunk)) return;
    await Promise.race([once(process.stdout, 'drain'), once(process.stdout, 'close')]);
  }
}
