/**
 * What a client does when an owner refuses its ticket: it asks for another one. The ticket may have expired early, by a
 * clock that was set or a machine that slept, or be of a secret that is gone.
 *
 * Servers that notice push another ticket within a second, to all their clients. So a client waits about that long
 * before it asks, each for another time, and longer each time that the next ticket is refused too.
 */
const FIRST_MS = 1000;
const MOST_MS = 60_000;

export class RefusedTicket {
  readonly #ask: () => void;
  #waitMs = FIRST_MS;
  #timer: NodeJS.Timeout | undefined;

  constructor(ask: () => void) {
    this.#ask = ask;
  }

  /** An owner has refused the ticket in hand. */
  refused(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#ask();
      },
      this.#waitMs * (0.5 + Math.random()),
    ).unref();
    this.#waitMs = Math.min(MOST_MS, 2 * this.#waitMs);
  }

  /** Another ticket is there. */
  replaced(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** An owner has taken the ticket in hand. */
  accepted(): void {
    this.#waitMs = FIRST_MS;
  }
}
