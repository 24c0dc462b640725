/** A helper program that is told something by a line and answers by a line. It ends with its standard input, so none outlives this process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

export class Spoken {
  readonly #child;
  readonly #lines: AsyncIterator<string>;
  readonly #ended: Promise<unknown>;

  constructor(program: string, args: readonly string[]) {
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdin.on('error', () => undefined);
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
    this.#ended = once(this.#child, 'close');
    // Told by `heard`.
    this.#ended.catch(() => undefined);
  }

  /** Its next line. Rejects when it ended. */
  async heard(): Promise<string> {
    const next = await this.#lines.next();
    if (next.done === true) throw new Error(`${this.#child.spawnfile} ended; what it said stands above`);
    return next.value;
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
