/**
 * Outbox: the bytes that wait to be taken by the other ends of many connections, together. When they are too many, the
 * connection with the most is closed: an end that does not read costs itself, not the others.
 */
export interface Holder {
  /** Bytes of this connection in the outbox. */
  readonly unsent: number;
  /** The sum is too large, and this connection has the largest part of it. */
  readonly overrun: () => void;
}

export class Outbox {
  readonly #most: number;
  readonly #holders = new Set<Holder>();
  #bytes = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** To be called after the bytes have been added to `unsent` of the holder. */
  added(holder: Holder, bytes: number): void {
    this.#holders.add(holder);
    this.#bytes += bytes;
    while (this.#bytes > this.#most) {
      const [first, ...others] = this.#holders;
      if (first === undefined) return;
      const largest = others.reduce((most, one) => (one.unsent > most.unsent ? one : most), first);
      this.#holders.delete(largest);
      largest.overrun();
    }
  }

  /** To be called after the bytes have been taken off `unsent`: they were sent, or the connection has ended. */
  removed(holder: Holder, bytes: number): void {
    this.#bytes -= bytes;
    if (holder.unsent === 0) this.#holders.delete(holder);
  }
}
