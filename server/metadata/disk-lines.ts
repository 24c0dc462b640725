/** Lines of the log about a disk that has no room for a log of the server's, which tries it again all the time. */
import type { LogEvent } from '../log-events.js';
import type { Log } from '../log.js';

/** Between two lines about a disk that stays full. */
const QUIET_MS = 60_000;

export interface DiskLinesOptions {
  readonly log: Log;
  /** Of which log it has no room, what is not done until then, and what is done again. */
  readonly full: { readonly event: LogEvent; readonly text: string; readonly retryMs?: number };
  readonly hasRoom: { readonly event: LogEvent; readonly text: string };
  /** Default: a minute. */
  readonly quietMs?: number | undefined;
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
    const { log, quietMs = QUIET_MS } = this.#options;
    const now = performance.now();
    this.#sinceMs ??= now;
    if (now - this.#saidMs < quietMs) return;
    this.#saidMs = now;
    this.#isSaid = true;
    const { text, ...fields } = this.#options.full;
    log.error(`no room on the disk of the data directory: ${text}`, fields);
  }

  /** Whatever was to be written is written. */
  hasRoom(): void {
    if (this.#sinceMs === undefined) return;
    const fullMs = Math.round(performance.now() - this.#sinceMs);
    const isSaid = this.#isSaid;
    this.#sinceMs = undefined;
    this.#isSaid = false;
    if (!isSaid) return;
    const { log, hasRoom } = this.#options;
    log.info(`the disk of the data directory has room again: ${hasRoom.text}`, { event: hasRoom.event, fullMs });
  }
}
