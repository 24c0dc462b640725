/**
 * WatchedFiles: a value made of files, made again when one of them has changed. So tokens and certificates are exchanged
 * without a restart. Files are looked at when the value is asked for, or by `look`, no more often than once per second. One whose
 * mode or owner is another has changed, too: whoever reads it may refuse it for that.
 *
 * Invariant: what cannot be read, or does not fit together, changes nothing: the value before stays, and the files are
 * looked at again. An operator writes a certificate and its key one after the other.
 */
import { statSync } from 'node:fs';

const LOOK_MS = 1000;

export interface WatchOptions {
  /** Called when changed files cannot be used, once for each change. */
  readonly unusable?: (error: unknown) => void;
  /** Called when changed files are used from now on, also where they are again as they were before `unusable`. */
  readonly changed?: () => void;
  readonly nowMs?: () => number;
}

export interface Watched<T> {
  readonly value: T;
  /** Looks at its files; without: there are none. */
  readonly look?: () => void;
}

export class WatchedFiles<T> implements Watched<T> {
  readonly #paths: readonly string[];
  readonly #read: () => T;
  readonly #options: WatchOptions;
  #value: T;
  #version: string;
  #refused = '';
  #lookedMs = -Infinity;

  /** Throws what `read` throws, and errors of fs.stat. */
  constructor(paths: readonly string[], read: () => T, options: WatchOptions = {}) {
    this.#paths = paths;
    this.#read = read;
    this.#options = options;
    this.#version = this.#versions();
    this.#value = read();
  }

  get value(): T {
    this.look();
    return this.#value;
  }

  /** What has changed is said, also while nobody asks for the value. */
  readonly look = (): void => {
    const now = (this.#options.nowMs ?? (() => performance.now()))();
    if (now - this.#lookedMs < LOOK_MS) return;
    this.#lookedMs = now;
    let version = 'missing';
    try {
      version = this.#versions();
      const isChanged = version !== this.#version;
      if (isChanged) this.#value = this.#read();
      // What was refused may be as it was before.
      if (isChanged || this.#refused !== '') this.#options.changed?.();
      this.#version = version;
      this.#refused = '';
    } catch (error) {
      if (version !== this.#refused) this.#options.unusable?.(error);
      this.#refused = version;
    }
  };

  #versions(): string {
    return this.#paths
      .map((path) => {
        const { ino, size, mtimeNs, mode, uid, gid } = statSync(path, { bigint: true });
        return [ino, size, mtimeNs, mode, uid, gid].join(' ');
      })
      .join();
  }
}
