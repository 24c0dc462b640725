/**
 * Counts the leaders of the metadata group that this server has seen, the first one included. A leader that is elected
 * again counts again: between its two terms nobody led.
 */
export class LeaderChanges {
  #term = 0;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** `leader`: 0 while none is known. A term has one leader at most. */
  seen(leader: number, term: number): void {
    if (leader === 0 || term === this.#term) return;
    this.#term = term;
    this.#count += 1;
  }
}
