/**
 * When a client leaves its control server because the map of that server may be old. A server that is cut off from the
 * others answers pings and pushes nothing: only the operations show that its map is of no use.
 *
 *   not owner     an owner refuses what the map gives to it: the server is left, unless the map is younger than STALE_MS
 *   unavailable   nobody answers for a shard, or none did within an operation's time: the same, but each time in vain
 *                 doubles the wait, up to MOST_MS. A shard may have no owner for long, or a slow one, and then no
 *                 server's map helps
 *
 * Another server's map is safe to ask for: one with a lower epoch than the client's is dropped (cluster.ts).
 */
const STALE_MS = 2000;
const MOST_MS = 60_000;

export class StaleMap {
  readonly #leave: () => void;
  readonly #nowMs: () => number;
  #waitMs = STALE_MS;
  /** When the last map came, or the last server was left. */
  #atMs = 0;

  constructor(leave: () => void, nowMs = (): number => performance.now()) {
    this.#leave = leave;
    this.#nowMs = nowMs;
  }

  /** A map was taken. `isNewer`: its epoch is above that of the one before. */
  taken(isNewer: boolean): void {
    this.#atMs = this.#nowMs();
    if (isNewer) this.#waitMs = STALE_MS;
  }

  notOwner(): void {
    this.#leaveAfter(STALE_MS);
  }

  unavailable(): void {
    if (this.#leaveAfter(this.#waitMs)) this.#waitMs = Math.min(MOST_MS, 2 * this.#waitMs);
  }

  #leaveAfter(ms: number): boolean {
    const now = this.#nowMs();
    if (now - this.#atMs < ms) return false;
    this.#atMs = now;
    this.#leave();
    return true;
  }
}
