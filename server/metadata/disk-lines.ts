/** Lines of the log about the disk of the metadata's log: it has no room, and is tried again all the time. */
import type { Log } from '../log.js';

/** Between two lines about a disk that stays full. */
const QUIET_MS = 60_000;

export interface DiskLinesOptions {
  readonly log: Log;
  readonly retryMs: number;
  /** Default: a minute. */
  readonly quietMs: number | undefined;
}

export class DiskLines {
  readonly #options: DiskLinesOptions;
  #sinceMs: number | undefined;
  #saidMs = -Infinity;
  /** Of this time without room there was a line. */
  #isSaid = false;

  constructor(options: DiskLinesOptions) {
    this.#options = options;
  }

  get isFull(): boolean {
    return this.#sinceMs !== undefined;
  }

  full(): void {
    const { log, retryMs, quietMs = QUIET_MS } = this.#options;
    const now = performance.now();
    this.#sinceMs ??= now;
    if (now - this.#saidMs < quietMs) return;
    this.#saidMs = now;
    this.#isSaid = true;
    log.error('no room on the disk of the data directory: this server accepts no metadata changes until there is', {
      event: 'raft-log-full',
      retryMs,
    });
  }

  /** Whatever was to be written is written. */
  hasRoom(): void {
    if (this.#sinceMs === undefined) return;
    const fullMs = Math.round(performance.now() - this.#sinceMs);
    const isSaid = this.#isSaid;
    this.#sinceMs = undefined;
    this.#isSaid = false;
    if (!isSaid) return;
    this.#options.log.info('the disk of the data directory has room again: metadata changes are accepted', {
      event: 'raft-log-has-room',
      fullMs,
    });
  }
}
