/** What a start says of the values that it reads, several times a second: a bar on a terminal, else a line now and then. */
import { formatSize } from '../../core/size.js';
import { Progress } from '../../tools/transfer/progress.js';
import type { LogFields } from '../log.js';
import { RECOVERING } from '../values-log.js';

const LINE_MS = 2000;

export class RecoveryBar {
  readonly #bar: Progress | undefined;
  readonly #now: () => number;
  #lineMs: number;

  /** `terminal`: lines for people are written there; undefined: it is none, or they are for programs. */
  constructor(
    terminal: ConstructorParameters<typeof Progress>[1] | undefined,
    now: () => number = () => performance.now(),
  ) {
    this.#bar = terminal === undefined ? undefined : new Progress('recovering values', terminal, now);
    this.#now = now;
    this.#lineMs = now();
  }

  /** Whether the line is not to be written. Any other one goes above the bar. */
  takes(fields: LogFields | undefined): boolean {
    if (fields?.event !== RECOVERING) {
      this.#bar?.end();
      return false;
    }
    const [bytes, all] = [Number(fields.bytes), Number(fields.all)];
    if (this.#bar !== undefined) {
      this.#bar.at(bytes / all, () => `${formatSize(Math.min(bytes, all))} of ${formatSize(all)}`);
      return true;
    }
    const now = this.#now();
    if (now - this.#lineMs < LINE_MS) return true;
    this.#lineMs = now;
    return false;
  }
}
