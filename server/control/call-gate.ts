/**
 * CallGate: the calls of operators and monitors on their way to the thread of Raft, which is asked for a bounded number
 * at a time, so no number of callers keeps it busy. Clients make no calls.
 *
 * `status` is asked by monitors and by anybody: those that wait for one get the same answer, and the next one is put
 * together only after STATUS_PAUSE_MS. An answer never is older than its question. Callers with a short time-out share
 * statuses of their own: they cannot wait for one that gives a silent server its full time (status-call.ts).
 */
import { FarkvError } from '../../core/errors.js';
import { checkStatusCall, isHurried, type StatusCall } from '../status-call.js';
import type { Caller } from './auth.js';
import { CALLS_ALL, STATUS_PAUSE_MS } from './bounds.js';

export type Ask = (caller: Caller, method: string, args: unknown) => Promise<unknown>;
type Pause = (then: () => void) => void;

export class CallGate {
  readonly #ask: Ask;
  readonly #patient: SharedStatus;
  readonly #hurried: SharedStatus;
  #underWay = 0;

  constructor(ask: Ask, pause: Pause = (then) => void setTimeout(then, STATUS_PAUSE_MS)) {
    this.#ask = ask;
    const status = (call: StatusCall) => (): Promise<unknown> => ask('monitor', 'status', call);
    this.#patient = new SharedStatus(status({}), pause);
    // As for any caller with little time.
    this.#hurried = new SharedStatus(status({ timeoutMs: 0 }), pause);
  }

  /** Throws ERR_BUSY when too many are under way, ERR_PROTOCOL for arguments of `status` that are none. */
  async call(caller: Caller, method: string, args: unknown): Promise<unknown> {
    if (method === 'status') {
      const call = checkStatusCall(args, method);
      return await (isHurried(call) ? this.#hurried : this.#patient).get();
    }
    if (this.#underWay >= CALLS_ALL)
      throw new FarkvError('ERR_BUSY', `this server answers at most ${CALLS_ALL} calls at once`);
    this.#underWay += 1;
    try {
      return await this.#ask(caller, method, args);
    } finally {
      this.#underWay -= 1;
    }
  }
}

interface NextStatus {
  readonly answer: Promise<unknown>;
  readonly begin: () => void;
}

/** One status at a time, for all who wait for it. */
class SharedStatus {
  readonly #ask: () => Promise<unknown>;
  readonly #pause: Pause;
  /** What is asked for when the present one is answered and the pause is over. */
  #next: NextStatus | undefined;
  #busy = false;

  constructor(ask: () => Promise<unknown>, pause: Pause) {
    this.#ask = ask;
    this.#pause = pause;
  }

  get(): Promise<unknown> {
    if (this.#next !== undefined) return this.#next.answer;
    let begin: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const answer = begun.then(() => this.#ask());
    this.#next = { begin, answer };
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
