/**
 * WatchedFiles: a value made of files, made again when one of them has changed. So tokens and certificates are exchanged
 * without a restart. Files are looked at when the value is asked for, and no more often than once per second.
 *
 * Invariant: what cannot be read, or does not fit together, changes nothing: the value before stays, and the files are
 * looked at again. An operator writes a certificate and its key one after the other.
 */
import { statSync } from 'node:fs';

const LOOK_MS = 1000;

export interface WatchOptions {
  /** Called when changed files cannot be used, once for each change. */
  readonly unusable?: (error: unknown) => void;
  /** Called when changed files are used from now on. */
  readonly changed?: () => void;
  readonly nowMs?: () => number;
}

export class WatchedFiles<T> {
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
    const now = (this.#options.nowMs ?? (() => performance.now()))();
    if (now - this.#lookedMs < LOOK_MS) return this.#value;
    this.#lookedMs = now;
    let version = 'missing';
    try {
      version = this.#versions();
      if (version !== this.#version) {
        this.#value = this.#read();
        this.#version = version;
        this.#options.changed?.();
      }
      this.#refused = '';
    } catch (error) {
      if (version !== this.#refused) this.#options.unusable?.(error);
      this.#refused = version;
    }
    return this.#value;
  }

  #versions(): string {
    return this.#paths
      .map((path) => {
        const { ino, size, mtimeNs } = statSync(path, { bigint: true });
        return `${ino} ${size} ${mtimeNs}`;
      })
      .join();
  }
}
