/**
 * What raft-storage needs of a file system: one flat directory, positioned writes, and the two calls that make things
 * durable. The real one is file-disk.ts; the simulator has one in memory that forgets what was not synced and tears
 * what was half written.
 *
 * All calls are synchronous. They run in the worker thread that owns the Raft member, which has nothing else to do
 * until its disk has answered: no message may leave before that. An asynchronous call would cross the thread pool twice
 * for each batch and would let the member be stepped in the middle of one, for nothing. A disk that stalls longer than
 * an election time-out costs this member its leadership, as it should.
 */
export interface DiskFile {
  readonly size: number;
  /** Writes all of `bytes`. On an error the file may hold any part of them. */
  write(bytes: Uint8Array, position: number): void;
  /** Makes the contents and the size durable (fdatasync). */
  datasync(): void;
  truncate(size: number): void;
  close(): void;
}

export interface Disk {
  /** For messages to people. */
  readonly path: string;
  names(): string[];
  /** What is on the disk, with all that was written; undefined: there is no such file. Throws when a sync fails. */
  read(name: string): Uint8Array | undefined;
  /** Makes a new, empty file; one of that name is replaced. */
  create(name: string): DiskFile;
  open(name: string): DiskFile;
  /** Replaces `to`. */
  rename(from: string, to: string): void;
  remove(name: string): void;
  /** Makes created, renamed and removed names durable. */
  syncNames(): void;
  /** Holds the directory against other processes until close; false when one has it. */
  lock(name: string): boolean;
  close(): void;
}

/**
 * There was no room for new bytes or a new name. The only failure of a write after which the directory is still
 * trusted.
 */
export class NoRoom extends Error {}

/**
 * Does one write or one creation (never a sync: after a failed one nothing is known), and tells want of room from other
 * failures.
 */
export function needingRoom<T>(write: () => T): T {
  try {
    return write();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    if (!['ENOSPC', 'EDQUOT', 'EFBIG'].includes(String(error.code))) throw error;
    throw new NoRoom(error.message, { cause: error });
  }
}
