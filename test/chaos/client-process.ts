/** A worker (worker.ts) as a process: started, killed and started again under another name, told to finish. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Victim } from './nemesis.js';
import type { WorkerTask } from './worker.js';

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));

export interface Ended {
  readonly name: string;
  readonly file: string;
  readonly exit: string;
  readonly stderr: string;
}

export class ClientProcess implements Victim {
  readonly #launcher: readonly string[];
  /** Of the n-th start. */
  readonly #task: (start: number) => WorkerTask;
  readonly #ended: Promise<Ended>[] = [];
  #child: ChildProcess | undefined;
  #killed = false;
  #finishing = false;

  constructor(launcher: readonly string[], task: (start: number) => WorkerTask) {
    this.#launcher = launcher;
    this.#task = task;
  }

  get running(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  launch(): void {
    if (this.#finishing) return;
    const task = this.#task(this.#ended.length);
    const [command, ...words] = [
      ...this.#launcher,
      process.execPath,
      '--enable-source-maps',
      WORKER,
      JSON.stringify(task),
    ];
    // A value that is given back while the worker holds it shall be seen changed (client/value-memory.ts).
    const child = spawn(command, words, {
      stdio: ['pipe', 'ignore', 'pipe'],
      env: { ...process.env, FARKV_POISON_SLABS: '1' },
    });
    child.stdin.on('error', () => undefined);
    this.#child = child;
    this.#killed = false;
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    this.#ended.push(
      new Promise((resolve) => {
        child.once('close', (code, signal) =>
          resolve({
            name: task.name,
            file: task.file,
            exit: this.#killed && signal === 'SIGKILL' ? 'killed' : String(signal ?? code),
            stderr,
          }),
        );
      }),
    );
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal);
  }

  async kill(): Promise<void> {
    if (!this.running) return;
    this.#killed = true;
    const closed = once(this.#child!, 'close');
    this.#child?.kill('SIGKILL');
    await closed;
  }

  /** No start after this. Resolves when all starts have ended. */
  async finish(): Promise<Ended[]> {
    this.#finishing = true;
    this.#child?.kill('SIGCONT');
    this.#child?.stdin?.end('finish\n');
    return await Promise.all(this.#ended);
  }
}
