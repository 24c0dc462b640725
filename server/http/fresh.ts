/**
 * Fresh: an answer that several ask for. One question is under way at a time, and its answer serves whoever asks within
 * `freshMs`: however many ask, the thread that answers is asked at most once in that time.
 */
import { FarkvError } from '../../core/errors.js';

export interface FreshOptions<T> {
  readonly ask: () => Promise<T>;
  readonly freshMs: number;
  /** ERR_TIMEOUT when the answer takes longer. */
  readonly answerMs: number;
  readonly now?: () => number;
}

export class Fresh<T> {
  readonly #options: FreshOptions<T>;
  #answer: Promise<T> | undefined;
  #answeredMs: number | undefined;

  constructor(options: FreshOptions<T>) {
    this.#options = options;
  }

  async get(): Promise<T> {
    const { ask, freshMs, answerMs, now = () => performance.now() } = this.#options;
    const isOld = this.#answeredMs !== undefined && now() - this.#answeredMs >= freshMs;
    if (this.#answer === undefined || isOld) {
      this.#answeredMs = undefined;
      const answered = (): void => void (this.#answeredMs = now());
      this.#answer = ask();
      this.#answer.then(answered, answered);
    }
    let late: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_, reject) => {
      late = setTimeout(
        () => reject(new FarkvError('ERR_TIMEOUT', `the thread of Raft has not answered for ${answerMs} ms`)),
        answerMs,
      );
    });
    try {
      return await Promise.race([this.#answer, timeout]);
    } finally {
      clearTimeout(late);
    }
  }
}
