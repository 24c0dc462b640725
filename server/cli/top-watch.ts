/**
 * `farkv top` over time: one look after the other. Where the server that is asked is silent or gone, every server that is
 * known is asked at once, and the first that answers is asked from then on.
 *
 * Invariants:
 *   - It ends where no server has answered for the time-out, and at once with the signal, whatever is waited for.
 *   - Every server that was asked is closed in the end.
 */
import { FarkvError } from '../../core/errors.js';
import type { Look } from '../http/view.js';
import { EXIT, exitCodeOf } from './exit-codes.js';

const EACH_MS = 1000;
/** A server that waits a second for another one is not silent. */
const SILENT_MS = 1500;

/** A server that may be asked: the first look connects. */
export interface Asked {
  readonly look: () => Promise<Look>;
  /** A look that is waited for rejects. */
  readonly close: () => void;
}

export interface Watched {
  readonly addresses: readonly string[];
  readonly timeoutMs: number;
  readonly server: (address: string) => Asked;
  readonly show: (now: Look, before: Look | undefined) => void;
  /** What `show` was called with last is all that is known. */
  readonly silent: () => void;
  /** May end early, with the signal. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
}

interface Answer {
  readonly from: Asked;
  readonly now: Look;
}

async function answerOf(from: Asked): Promise<Answer> {
  return { from, now: await from.look() };
}

const mayPass = (error: unknown): boolean => exitCodeOf(error) === EXIT.unavailable;

/** One error of several servers that were asked. */
function errorOf(errors: readonly Error[]): Error {
  const [first = new Error('no server was asked')] = errors;
  if (errors.length < 2 || !(first instanceof FarkvError)) return first;
  return new FarkvError(first.code, errors.map(({ message }) => message).join('; '), { cause: first });
}

class Watch {
  readonly #watched: Watched;
  readonly #signal: AbortSignal;
  /** That which answered last, and those that are asked beside it. */
  #open: Asked[] = [];
  #before: Look | undefined;

  constructor(watched: Watched, signal: AbortSignal) {
    this.#watched = watched;
    this.#signal = signal;
  }

  close(): void {
    for (const one of this.#open) one.close();
    this.#open = [];
  }

  async run(): Promise<void> {
    const { show, wait, timeoutMs } = this.#watched;
    let heardAt = performance.now();
    while (!this.#signal.aborted) {
      try {
        const now = await this.#look();
        show(now, this.#before);
        this.#before = now;
        heardAt = performance.now();
      } catch (error) {
        this.close();
        if (!(error instanceof AggregateError)) throw error;
        const errors = error.errors as Error[];
        const isOver = performance.now() - heardAt >= timeoutMs;
        if (this.#before === undefined || isOver || !errors.some(mayPass)) throw errorOf(errors);
      }
      await wait(EACH_MS, this.#signal);
    }
  }

  /** Throws an AggregateError where no server answers. */
  async #look(): Promise<Look> {
    const { server, silent } = this.#watched;
    const pending = this.#open.map(answerOf);
    let answer = pending.length === 0 ? undefined : await this.#soon(Promise.any(pending));
    // What is asked from here on would not be closed.
    this.#signal.throwIfAborted();
    if (answer === undefined) {
      if (this.#before !== undefined) silent();
      const all = this.#known().map(server);
      this.#open.push(...all);
      // Why a connection that was of use broke says less than why there is no new one.
      const fresh = Promise.any(all.map(answerOf));
      answer = await Promise.any([...pending, fresh]).catch(() => fresh);
    }
    const { from, now } = answer;
    for (const one of this.#open) if (one !== from) one.close();
    this.#open = [from];
    return now;
  }

  /** undefined: it failed, or nothing came for a while. */
  async #soon(answer: Promise<Answer>): Promise<Answer | undefined> {
    const come = new AbortController();
    // Not AbortSignal.any: nothing would keep that signal while it is waited for.
    this.#signal.addEventListener('abort', () => come.abort(), { signal: come.signal });
    const silence = this.#watched.wait(SILENT_MS, come.signal);
    const soon = await Promise.race([answer.catch(() => undefined), silence]);
    come.abort();
    return soon ?? undefined;
  }

  #known(): string[] {
    const members = this.#before?.status.members ?? [];
    return [...new Set([...this.#watched.addresses, ...members.flatMap(({ control }) => control)])];
  }
}

export async function watch(watched: Watched, signal: AbortSignal): Promise<void> {
  const one = new Watch(watched, signal);
  const close = (): void => one.close();
  signal.addEventListener('abort', close);
  try {
    await one.run();
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    signal.removeEventListener('abort', close);
    one.close();
  }
}
