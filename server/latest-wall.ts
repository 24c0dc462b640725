/**
 * The latest time that this server's wall clock has shown. A revocation is dated by it: where the clock was set back,
 * tickets that were made before then look later than now, and are meant too.
 */
const LOOK_MS = 1000;

export class LatestWall {
  readonly #wallMs: () => number;
  #latest = -Infinity;

  constructor(wallMs: () => number = Date.now, lookMs = LOOK_MS) {
    this.#wallMs = wallMs;
    setInterval(() => this.ms(), lookMs).unref();
    this.ms();
  }

  /** Milliseconds since 1970; never less than before. */
  ms(): number {
    this.#latest = Math.max(this.#latest, this.#wallMs());
    return this.#latest;
  }
}
