/**
 * A file system of its own for a test that needs a full disk, or one that fails: ext4 in a file, mounted. Only the
 * superuser may mount.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { ExecutionContext } from 'ava';

const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

export const mayMount = process.getuid?.() === 0;

export class FileSystem {
  /** Where it is mounted. */
  readonly path: string;
  readonly #directory: string;

  /** It is taken away when the test has ended, whatever uses it. */
  constructor(t: Pick<ExecutionContext, 'teardown'>, bytes: number) {
    this.#directory = mkdtempSync(join(tmpdir(), 'farkv-fs-'));
    this.path = join(this.#directory, 'mounted');
    mkdirSync(this.path);
    writeFileSync(this.#image, '');
    truncateSync(this.#image, bytes);
    run('mkfs.ext4', '-q', '-m', '0', this.#image);
    this.#mount();
    t.teardown(() => {
      run('umount', '--lazy', this.path);
      rmSync(this.#directory, { recursive: true, force: true });
    });
  }

  #mount(): void {
    run('mount', '-o', 'loop,errors=remount-ro', this.#image, this.path);
  }
  get #image(): string {
    return join(this.#directory, 'image');
  }
  get #filler(): string {
    return join(this.path, 'filler');
  }

  /** Takes all space but so many bytes. */
  fillUpTo(left: number): void {
    const free = Number(run('stat', '--file-system', '--format', '%a', this.path)) * this.#blockBytes;
    run('fallocate', '--length', String(free - left), this.#filler);
  }

  empty(): void {
    rmSync(this.#filler);
  }

  /** As the kernel does by itself when it finds the file system damaged: nothing can be written any more. */
  fail(): void {
    writeFileSync(`/sys/fs/ext4/${basename(this.#device)}/trigger_fs_error`, '1');
  }

  /** As an operator does after that. What used it has ended. */
  repair(): void {
    run('umount', this.path);
    // It answers 1 where it has repaired something.
    run('sh', '-c', 'e2fsck -fy "$0" || [ $? -eq 1 ]', this.#image);
    this.#mount();
  }

  get #device(): string {
    return run('findmnt', '--noheadings', '--output', 'SOURCE', this.path).trim();
  }
  get #blockBytes(): number {
    return Number(run('stat', '--file-system', '--format', '%S', this.path));
  }
}
