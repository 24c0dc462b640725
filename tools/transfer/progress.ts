/**
 * How far a long command is, on standard error: a bar on a terminal, elsewhere a line every ten seconds. Written from
 * `at`, without a timer, so that it says nothing while nothing goes on.
 */
import { formatSize } from '../../core/size.js';

const BAR = 30;
const BAR_MS = 100;
const LINE_MS = 10_000;

interface Sink {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

export class Progress {
  readonly #what: string;
  readonly #sink: Sink;
  readonly #now: () => number;
  #last: number;
  #drawn = false;

  constructor(what: string, sink: Sink = process.stderr, now: () => number = () => performance.now()) {
    this.#what = what;
    this.#sink = sink;
    this.#now = now;
    this.#last = now();
  }

  /** `share`: 0 to 1; `counts`: what was done so far. */
  at(share: number, counts: () => string): void {
    const bar = this.#sink.isTTY === true;
    const now = this.#now();
    if (now - this.#last < (bar ? BAR_MS : LINE_MS)) return;
    this.#last = now;
    const part = Math.max(0, Math.min(1, share));
    const percent = `${Math.floor(part * 100)} %`;
    if (!bar) {
      this.#sink.write(`${this.#what}: ${percent}, ${counts()}\n`);
      return;
    }
    const full = Math.round(part * BAR);
    this.#drawn = true;
    this.#sink.write(`\r\x1b[K${this.#what} [${'#'.repeat(full)}${'.'.repeat(BAR - full)}] ${percent}, ${counts()}`);
  }

  /** Takes the bar away. */
  end(): void {
    if (this.#drawn) this.#sink.write('\r\x1b[K');
    this.#drawn = false;
  }
}

/** 1,234 entries, 5.6 MiB */
export function countsOf(entries: number, bytes: number): string {
  return `${entries.toLocaleString('en')} ${entries === 1 ? 'entry' : 'entries'}, ${formatSize(bytes)}`;
}
