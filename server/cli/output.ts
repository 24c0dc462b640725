/**
 * Where commands write. Every line for people goes through `print` or `printError`, which show what a terminal would
 * obey (core/visible-text.ts): a server, another store or a file may have given any part of it.
 */
import { visibleLines } from '../../core/visible-text.js';

/** Whole lines to standard output. */
export function print(text: string): void {
  process.stdout.write(visibleLines(text));
}

/** Whole lines to standard error. */
export function printError(text: string): void {
  process.stderr.write(visibleLines(text));
}

/** In the place of a file's name: standard input or output. */
export const STANDARD = '-';

/** Whether it names standard input, which may be a pipe where a file may not. */
export function isStandardInput(given: string): boolean {
  return given === STANDARD || given === '/dev/stdin';
}

/** What a positional argument names: yargs gives a lone dash as nothing. */
export function namedFile(given: string): string {
  return given === '' || isStandardInput(given) ? STANDARD : given;
}

/**
 * Standard output for commands that may be piped: waits when the reader is slow, and ends quietly when it has gone
 * (`farkv scan | head`). What is written comes out as it is.
 */
export class Output {
  #gone = false;
  #wake: () => void = () => undefined;

  constructor() {
    process.stdout.on('drain', () => this.#wake());
    process.stdout.on('close', () => this.#wake());
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      this.#gone = true;
      this.#wake();
    });
  }

  /** Nobody reads any more. */
  get gone(): boolean {
    return this.#gone;
  }

  async write(chunk: string | Uint8Array): Promise<void> {
    if (this.#gone) return;
    const drained = new Promise<void>((resolve) => (this.#wake = resolve));
    if (!process.stdout.write(chunk)) await drained;
  }
}
