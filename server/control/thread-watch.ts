/**
 * ThreadWatch: whether another thread still answers. It is asked again and again, and counts as stalled when it has left
 * a question unanswered for STALLED looks in a row. Looks are turns of this thread's event loop, in which answers are
 * read too: so a pause of the whole process, or of this thread, is not taken for one of the other.
 */
import type { Log } from '../log.js';

export interface ThreadWatchOptions {
  /** Asks; the answer comes to `answered`. */
  readonly ask: () => void;
  readonly log: Pick<Log, 'warn' | 'info'>;
  readonly lookMs?: number;
}

const LOOK_MS = 500;
const STALLED = 4;

export class ThreadWatch {
  readonly #options: ThreadWatchOptions;
  readonly #lookMs: number;
  readonly #timer: NodeJS.Timeout;
  #asked = false;
  /** Looks since the question that waits for its answer. */
  #looks = 0;

  constructor(options: ThreadWatchOptions) {
    this.#options = options;
    this.#lookMs = options.lookMs ?? LOOK_MS;
    this.#timer = setInterval(() => this.#look(), this.#lookMs);
  }

  /** For about so long it has not answered; undefined: it does. */
  get stalledMs(): number | undefined {
    return this.#looks < STALLED ? undefined : this.#looks * this.#lookMs;
  }

  answered(): void {
    const { stalledMs } = this;
    this.#asked = false;
    this.#looks = 0;
    if (stalledMs !== undefined)
      this.#options.log.info(`the thread of clients and operators answers again, after about ${stalledMs} ms`, {
        event: 'front-answers',
        stalledMs,
      });
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    if (!this.#asked) {
      this.#asked = true;
      this.#options.ask();
      return;
    }
    this.#looks += 1;
    if (this.#looks === STALLED)
      this.#options.log.warn(
        `the thread of clients and operators has not answered for ${this.#looks * this.#lookMs} ms: they wait, data and leases do not`,
        { event: 'front-stalled', stalledMs: this.#looks * this.#lookMs },
      );
  }
}
