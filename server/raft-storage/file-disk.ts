/** A Disk that is a directory. See disk.ts for why it is synchronous. */
import fs from 'node:fs';
import { join } from 'node:path';
import type { Addon } from '../../native/addon.js';
import { openRegular, readRegular } from '../../net/regular-file.js';
import { ownFile } from '../own-file.js';
import type { Disk, DiskFile } from './disk.js';

const { O_CREAT, O_RDWR, O_TRUNC } = fs.constants;

class OpenFile implements DiskFile {
  #size: number;

  constructor(private readonly fd: number) {
    this.#size = fs.fstatSync(fd).size;
  }

  get size(): number {
    return this.#size;
  }

  write(bytes: Uint8Array, position: number): void {
    // A short write is not an error: what stopped it says so when the rest is tried.
    for (let done = 0; done < bytes.length;) {
      done += fs.writeSync(this.fd, bytes, done, bytes.length - done, position + done);
      this.#size = Math.max(this.#size, position + done);
    }
  }

  datasync(): void {
    fs.fdatasyncSync(this.fd);
  }

  truncate(size: number): void {
    fs.ftruncateSync(this.fd, size);
    this.#size = size;
  }

  close(): void {
    fs.closeSync(this.fd);
  }
}

/** Only its owner may read it: the log holds rkeys and secrets. */
const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;
/** The largest is a snapshot: a state of STATE_LIMITS (core/protocol/limits.ts), and its head. */
const FILE_BYTES_MAX = 512 << 20;

export class FileDisk implements Disk {
  readonly #directory: number;
  #lock: number | undefined;

  /** Makes the directory if there is none. */
  constructor(
    readonly path: string,
    private readonly native: Pick<Addon, 'tryLock' | 'dropCleanPages'>,
  ) {
    fs.mkdirSync(path, { recursive: true, mode: DIRECTORY_MODE });
    this.#directory = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
    const parent = fs.openSync(join(path, '..'), fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
    fs.fsyncSync(parent);
    fs.closeSync(parent);
  }

  names(): string[] {
    return fs.readdirSync(this.path);
  }

  read(name: string): Uint8Array | undefined {
    try {
      this.#settle(name);
      // Not the Buffer itself: its slice() would share memory where Uint8Array's copies.
      const { buffer, byteOffset, byteLength } = ownFile(join(this.path, name), (path) =>
        readRegular(path, FILE_BYTES_MAX),
      );
      return new Uint8Array(buffer, byteOffset, byteLength);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /**
   * What was written is on the disk, or fails here. Of what a sync failed for before, the kernel says that it is (Rebello
   * et al., "Can Applications Recover from fsync Failures?", ATC 2020): it is not to be found in the page cache.
   */
  #settle(name: string): void {
    const fd = this.#open(name, fs.constants.O_RDONLY);
    try {
      fs.fdatasyncSync(fd);
      this.native.dropCleanPages(fd); // mutation: storage/page-cache-believed
    } finally {
      fs.closeSync(fd);
    }
  }

  create(name: string): DiskFile {
    return new OpenFile(this.#open(name, O_RDWR | O_CREAT | O_TRUNC));
  }

  open(name: string): DiskFile {
    return new OpenFile(this.#open(name, O_RDWR));
  }

  rename(from: string, to: string): void {
    fs.renameSync(join(this.path, from), join(this.path, to));
  }

  remove(name: string): void {
    fs.rmSync(join(this.path, name));
  }

  syncNames(): void {
    fs.fsyncSync(this.#directory);
  }

  lock(name: string): boolean {
    // Opened without truncation and never removed: a lock file that is replaced would be two files, each locked by one
    // process.
    const fd = this.#open(name, O_RDWR | O_CREAT);
    if (!this.native.tryLock(fd)) {
      fs.closeSync(fd);
      return false;
    }
    this.#lock = fd;
    return true;
  }

  #open(name: string, how: number): number {
    return ownFile(join(this.path, name), (path) => openRegular(path, how, FILE_MODE));
  }

  close(): void {
    if (this.#lock !== undefined) fs.closeSync(this.#lock);
    this.#lock = undefined;
    fs.closeSync(this.#directory);
  }
}
