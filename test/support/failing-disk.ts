/** Servers whose disk fails when a test says so, with the error that a broken one gives, or is slow (failing_disk.c). */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** From dist/test/support. */
const SOURCE = fileURLToPath(new URL('../../../test/support/failing_disk.c', import.meta.url));
const FLAGS = ['-std=c11', '-Wall', '-Wextra', '-Werror', '-O1', '-shared', '-fPIC'];

export class FailingDisk {
  readonly #library: string;
  readonly #flag: string;

  /** The library is compiled into the directory. */
  constructor(directory: string) {
    this.#library = join(directory, 'failing_disk.so');
    this.#flag = join(directory, 'the disk fails');
    execFileSync('cc', [...FLAGS, '-o', this.#library, SOURCE, '-ldl']);
  }

  /** What the command line of a server begins with; `part`: of the paths of files that fail. */
  launcher(operation: 'write' | 'sync' | 'read', error: keyof typeof constants.errno, part: string): string[] {
    return this.#launcher(operation, constants.errno[error], part);
  }

  /** The same of a disk that fails in nothing: while it is told to, each sync takes so much longer. */
  slowLauncher(ms: number, part: string): string[] {
    return this.#launcher('slow', ms, part);
  }

  #launcher(operation: string, number: number, part: string): string[] {
    return [
      'env',
      `LD_PRELOAD=${this.#library}`,
      `FARKV_FAILING_DISK=${operation}:${number}:${part}`,
      `FARKV_FAILING_DISK_WHEN=${this.#flag}`,
    ];
  }

  fail(): void {
    writeFileSync(this.#flag, '');
  }
  repair(): void {
    rmSync(this.#flag, { force: true });
  }
}
