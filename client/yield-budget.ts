/**
 * Calls that are answered at once never let the event loop go on by themselves: a loop of them would keep timers, sockets
 * and signals waiting. So one of BUDGET answers comes in a later turn.
 */
const BUDGET = 1024;

export class YieldBudget {
  #left = BUDGET;

  /** Counts answers. True: this one is to come in the next turn. */
  isOver(answers: number): boolean {
    this.#left -= answers;
    if (this.#left > 0) return false;
    this.#left = BUDGET;
    return true;
  }
}

export function inNextTurn<T>(value: T): Promise<T> {
  return new Promise((resolve) => setImmediate(resolve, value));
}
