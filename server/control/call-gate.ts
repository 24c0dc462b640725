/**
 * CallGate: the calls of operators and monitors on their way to the thread of Raft, which is asked for a bounded number
 * at a time, so no number of callers keeps it busy. Clients make no calls.
 *
 * `status` is asked by monitors and by anybody: those that wait for one get the same answer, and the next one is put
 * together only after STATUS_PAUSE_MS. An answer never is older than its question.
 */
import { FarkvError } from '../../core/errors.js';
import type { Caller } from './auth.js';
import { CALLS_ALL, STATUS_PAUSE_MS } from './bounds.js';

export type Ask = (caller: Caller, method: string, args: unknown) => Promise<unknown>;

export class CallGate {
  readonly #ask: Ask;
  readonly #pause: (then: () => void) => void;
  #underWay = 0;
  /** The status that is asked for when the present one is answered and the pause is over. */
  #next: { readonly answer: Promise<unknown>; readonly begin: () => void } | undefined;
  #busy = false;

  constructor(ask: Ask, pause = (then: () => void): void => void setTimeout(then, STATUS_PAUSE_MS)) {
    this.#ask = ask;
    this.#pause = pause;
  }

  /** Throws ERR_BUSY when too many are under way. */
  async call(caller: Caller, method: string, args: unknown): Promise<unknown> {
    if (method === 'status') return await this.#status();
    if (this.#underWay >= CALLS_ALL)
      throw new FarkvError('ERR_BUSY', `this server answers at most ${CALLS_ALL} calls at once`);
    this.#underWay += 1;
    try {
      return await this.#ask(caller, method, args);
    } finally {
      this.#underWay -= 1;
    }
  }

  #status(): Promise<unknown> {
    if (this.#next !== undefined) return this.#next.answer;
    let begin: () => void = () => undefined;
    const answer = new Promise<void>((resolve) => (begin = resolve)).then(() => this.#ask('monitor', 'status', {}));
    this.#next = { answer, begin };
    this.#look();
    return answer;
  }

  #look(): void {
    const next = this.#next;
    if (this.#busy || next === undefined) return;
    this.#busy = true;
    this.#next = undefined;
    const over = (): void =>
      this.#pause(() => {
        this.#busy = false;
        this.#look();
      });
    next.answer.then(over, over);
    next.begin();
  }
}
