/**
 * A helper program that is told something by a line and answers by a line. It ends with its standard input, so none
 * outlives this process.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** Characters that are kept of what a program says on its standard error. */
const COMPLAINT = 4096;

export class LineProcess {
  readonly #child;
  readonly #lines: AsyncIterator<string>;
  readonly #ended: Promise<unknown>;
  #complaint = '';

  constructor(program: string, args: readonly string[]) {
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child.stdin.on('error', () => undefined);
    this.#child.stderr.on(
      'data',
      (chunk: Buffer) => (this.#complaint = (this.#complaint + chunk.toString()).slice(-COMPLAINT)),
    );
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
    this.#ended = once(this.#child, 'close');
    // Told by `heard`.
    this.#ended.catch(() => undefined);
  }

  /** Its next line. Rejects when it ended, with what it said on its standard error. */
  async heard(): Promise<string> {
    const next = await this.#lines.next();
    if (next.done !== true) return next.value;
    await this.#ended;
    throw new Error(`${this.#child.spawnfile} ended: ${this.#complaint.trim()}`);
  }

  /** `bytes` follow the line, where the program expects any. */
  async ask(line: string, bytes?: Uint8Array): Promise<string> {
    this.#child.stdin.write(`${line}\n`);
    if (bytes !== undefined) this.#child.stdin.write(bytes);
    return await this.heard();
  }

  async stop(): Promise<void> {
    this.#child.stdin.end();
    await this.#ended;
  }
}
