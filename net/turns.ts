/**
 * Turns: how much of one turn of the event loop the frames of many connections may take, of each and of all together.
 * What is over waits for the next turn, in the order in which it came to wait, so that no connection keeps the loop
 * from the others, from timers, or from new connections.
 *
 * Invariants:
 *   - In one turn at most `all.frames` frames are handled, and frames are begun only below `all.bytes`; of one
 *     connection `each`. The last frame of a turn may be larger than what was left.
 *   - A connection that waits is served before one that comes later.
 */
export interface Share {
  readonly frames: number;
  readonly bytes: number;
}

export interface Budget {
  readonly each: Share;
  readonly all: Share;
}

/** What a connection has used of a turn. One for each connection; only Turns changes it. */
export class Spent {
  turn = -1;
  frames = 0;
  bytes = 0;
}

export class Turns {
  readonly #budget: Budget;
  readonly #next: (serve: () => void) => void;
  /** In the order in which they are served: each takes its frames, and waits again if some are left. */
  readonly #waiting = new Set<() => void>();
  #turn = 0;
  #frames = 0;
  #bytes = 0;
  #scheduled = false;

  /** `next` calls its argument in the next turn of the event loop. */
  constructor(budget: Budget, next: (serve: () => void) => void = setImmediate) {
    this.#budget = budget;
    this.#next = next;
  }

  /** Whether a connection may begin one more frame in this turn. */
  allows(spent: Spent): boolean {
    const { each, all } = this.#budget;
    if (this.#frames >= all.frames || this.#bytes >= all.bytes) return false;
    return spent.turn !== this.#turn || (spent.frames < each.frames && spent.bytes < each.bytes);
  }

  /** A connection has handled a frame. */
  spend(spent: Spent, bytes: number): void {
    if (spent.turn !== this.#turn) {
      spent.turn = this.#turn;
      spent.frames = 0;
      spent.bytes = 0;
    }
    spent.frames += 1;
    spent.bytes += bytes;
    this.#frames += 1;
    this.#bytes += bytes;
    this.#schedule();
  }

  /** `serve` is called in a later turn. */
  wait(serve: () => void): void {
    this.#waiting.add(serve);
    this.#schedule();
  }

  /** The connection is gone. */
  forget(serve: () => void): void {
    this.#waiting.delete(serve);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#next(() => this.#begin());
  }

  #begin(): void {
    this.#scheduled = false;
    this.#turn += 1;
    this.#frames = 0;
    this.#bytes = 0;
    const { frames, bytes } = this.#budget.all;
    for (const serve of [...this.#waiting]) {
      if (this.#frames >= frames || this.#bytes >= bytes) break;
      // One that was served before may have closed this one.
      if (this.#waiting.delete(serve)) serve();
    }
    if (this.#waiting.size > 0) this.#schedule();
  }
}
