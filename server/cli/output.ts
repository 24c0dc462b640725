/**
/**
 * Where commands write. Every line for people goes through `print` or `printError`, which show what a terminal would
 * obey (core/visible-text.ts): a server, another store or a file may have given any part of it. And what is said when
 * standard output cannot be written: one line, and EX_IOERR.
 */
import { WriteFailure } from '../../tools/transfer/write-failure.js';
import { EXIT } from './exit-codes.js';
import { FarkvError } from '../../core/errors.js';
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

/** What a positional argument names. Throws ERR_CONFIG for no name, as of a variable that is not set. */
export function namedFile(given: string): string {
  if (given === '') throw new FarkvError('ERR_CONFIG', 'the name of the file is empty; - is standard input or output');
  return isStandardInput(given) ? STANDARD : given;
}

/** What a command has told of `cause` itself; the exit code is that of this. */
export class Told extends Error {
  constructor(cause: unknown) {
    super('', { cause });
  }
}

/**
 * From now on a full disk behind standard output is said once, in one line, and the exit code is EX_IOERR whatever else
 * the command says; `goesOn`: it is said alone, since the command is there for something else than its output. A reader
 * that has gone is no failure, and nobody could be told of one of standard error.
 */
export function watchOutput(name: string, goesOn: boolean): void {
  const isWatched = watched !== undefined;
  watched = { name, goesOn };
  if (isWatched) return;
  let failed = false;
  process.stderr.on('error', () => undefined);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (failed || watched === undefined || error.code === 'EPIPE') return;
    failed = true;
    printError(`${watched.name}: ${new WriteFailure('standard output', error).message}\n`);
    if (!watched.goesOn) process.once('exit', () => (process.exitCode = EXIT.output));
  });
}

/** For whom standard output is watched. */
let watched: { readonly name: string; readonly goesOn: boolean } | undefined;

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
    // Said by watchOutput, if it is worth a word.
    process.stdout.on('error', () => {
      this.#gone = true;
      this.#wake();
    });
  }

  /** Nobody reads any more, or nothing more can be written. */
  get gone(): boolean {
    return this.#gone;
  }

  async write(chunk: string | Uint8Array): Promise<void> {
    if (this.#gone) return;
    const drained = new Promise<void>((resolve) => (this.#wake = resolve));
    if (!process.stdout.write(chunk)) await drained;
  }
}
