/**
 * `values/early`: a file that is there while this server may have acknowledged changes that its disk does not have
 * (--sync). It is there, and synced, before the server joins, and goes when it has ended in order. A start that finds it
 * says so with its join, and the metadata marks the copies that it brings back (docs/early-answers.md).
 */
import { closeSync, existsSync, fsyncSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { syncDirectory } from '../net/sync-directory.js';

export class EarlyMark {
  #found: boolean;
  readonly #directory: string;
  /** The metadata knows of all that `found` is about. */
  #isTold: boolean;

  /** @param directory - values/, which is there, and whose name is on the disk. */
  constructor(directory: string) {
    this.#directory = directory;
    this.#found = existsSync(this.#path);
    this.#isTold = !this.#found;
  }

  /** An earlier run did not end in order. */
  get found(): boolean {
    return this.#found;
  }

  get #path(): string {
    return join(this.#directory, 'early');
  }

  /** Before this server acknowledges anything; it does so before its disk has it unless `syncMs` is 0. */
  begins(syncMs: number): void {
    if (syncMs === 0) return;
    const fd = openSync(this.#path, 'a', 0o600);
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    syncDirectory(this.#directory);
  }

  /** The copies that it was about are elsewhere, and it with them. */
  movedAway(): void {
    this.#found = false;
    this.#isTold = true;
  }

  /**
   * The join was applied. `all`: with every copy that the metadata takes for whole; else a later start may read another
   * one, and has to say so again.
   */
  joined(all: boolean, syncMs: number): void {
    if (!this.#found || !all) return;
    this.#isTold = true;
    if (syncMs === 0) this.#remove();
  }

  /** `isSynced`: the disk has all that was acknowledged. */
  ended(isSynced: boolean): void {
    if (isSynced && this.#isTold) this.#remove(); // mutation: marked/mark-before-told, marked/mark-after-failure
  }

  /** Should it come back after a loss of power, copies are marked in vain. */
  #remove(): void {
    rmSync(this.#path, { force: true });
  }
}
