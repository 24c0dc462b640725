/**
 * A disk that loses with the power what was not flushed: an image in a file, behind nbdkit's cache filter. That keeps all
 * writes to itself until the guest flushes them, or has a write say that it is to be durable (FUA). It is killed, not
 * ended.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const BYTES = 1 << 30;
/** QEMU asks for the socket until it is there. */
const OPEN_SECONDS = 30;

export class PowerDisk {
  /** Of the file system on it. */
  readonly label: string;
  readonly #directory: string;
  #server: ChildProcess | undefined;

  constructor(directory: string, number: number) {
    this.label = `farkv${number}`;
    this.#directory = directory;
    writeFileSync(this.#image, '');
    truncateSync(this.#image, BYTES);
    execFileSync('mkfs.ext4', ['-q', '-m', '0', '-L', this.label, this.#image]);
  }

  /** Serves it; gives the arguments with which QEMU has it. */
  powerOn(): string {
    rmSync(this.#socket, { force: true });
    const words = ['--foreground', '--exit-with-parent', '--unix', this.#socket, '--filter=cache', 'file', this.#image];
    this.#server = spawn('nbdkit', [...words, 'cache=writeback'], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, TMPDIR: this.#directory },
    });
    return [
      `-blockdev driver=nbd,node-name=${this.label},server.type=unix,server.path=${this.#socket},open-timeout=${OPEN_SECONDS}`,
      `-device virtio-blk-pci,drive=${this.label}`,
    ].join(' ');
  }

  /** What was not flushed is gone. */
  cut(): void {
    this.#server?.kill('SIGKILL');
  }

  async off(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    server.kill('SIGKILL');
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
  }

  get #image(): string {
    return join(this.#directory, `${this.label}.img`);
  }
  get #socket(): string {
    return join(this.#directory, `${this.label}.sock`);
  }
}
