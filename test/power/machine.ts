/** A virtual machine (test/rdma/vm) with disks, in which guest.ts runs until its power is cut. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { PowerDisk } from './disk.js';
import type { GuestTask } from './guest.js';
import { lineOf, type Line } from './known.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** Ends one that hangs. */
const SECONDS_MAX = 900;

export class Machine {
  readonly #disks: readonly PowerDisk[];
  readonly #pidFile: string;
  readonly #vm: ChildProcess;
  readonly #ended: Promise<unknown>;
  #stderr = '';
  #cut = false;

  constructor(directory: string, disks: readonly PowerDisk[], task: GuestTask, heard: (line: Line) => void) {
    this.#disks = disks;
    this.#pidFile = join(directory, 'qemu.pid');
    rmSync(this.#pidFile, { force: true });
    const arguments_ = [`-pidfile ${this.#pidFile}`, ...disks.map((disk) => disk.powerOn())].join(' ');
    const command = `modprobe -a virtio_blk ext4 && exec node dist/test/power/guest.js '${JSON.stringify(task)}'`;
    const megabytes = String(1024 + 768 * disks.length);
    this.#vm = spawn('test/rdma/vm/vm.sh', ['-s', 'none', '-m', megabytes, '-t', String(SECONDS_MAX), command], {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, FARKV_VM_QEMU: arguments_ },
    });
    this.#vm.stderr!.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text));
    createInterface({ input: this.#vm.stdout! }).on('line', (text) => {
      const line = lineOf(text);
      if (line !== undefined) heard(line);
      else this.#stderr += `${text}\n`;
    });
    this.#ended = once(this.#vm, 'close');
  }

  /** Resolves when the machine is gone; rejects where nobody has cut its power. */
  async gone(): Promise<void> {
    await this.#ended;
    await Promise.all(this.#disks.map((disk) => disk.off()));
    if (!this.#cut) throw new Error(`the machine ended by itself\n${this.#stderr.slice(-6000)}`);
  }

  /** Disks first: what they have not written by then stays unwritten. */
  cut(): void {
    this.#cut = true;
    const qemu = Number(readFileSync(this.#pidFile, 'utf8'));
    for (const disk of this.#disks) disk.cut();
    process.kill(qemu, 'SIGKILL');
  }

  /** Whoever runs it is about to end. */
  end(): void {
    this.#vm.kill('SIGTERM');
  }

  /** What the guest and QEMU have printed beside lines. */
  get said(): string {
    return this.#stderr;
  }
}
