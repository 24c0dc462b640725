/**
 * Which owners have been silent for a whole lease, measured by the leader of one term. Arithmetic without a clock, as
 * owner-leases.ts.
 *
 * An owner whose lease is over may be alive: if the leader was stopped, its host suspended, or no quorum answered, no
 * owner could renew. So silence is not measured by the clock but by heard time, which passes only while the leader can
 * hear. A quorum confirms the leader again and again, since every lease is granted after that (lease-grantor.ts); heard
 * time is the sum of the gaps between two confirmations, where
 *
 *     a gap up to CAP (a quarter of a lease)     counts whole
 *     a longer gap, below one lease              counts as CAP: the leader stalled
 *     a gap of one lease or more                 counts nothing: the leader was deaf, and every owner gets a grace
 *
 * Safety does not rest on this file: shards are taken only if the lease is over by the clock too (GrantedLeases.dead).
 *
 * Fairness: an owner that runs, and reaches the leader whenever the leader runs and has a quorum, is never found
 * silent.
 *   1. An owner asks every CAP; an ask without an answer is repeated after at most half a lease (lease-holder.ts).
 *   2. An ask counts when the leader reads it, before a quorum confirms the leader (asked). A join counts as an ask
 *      when it is applied.
 *   3. After a stall the event loop runs timers first, then reads sockets, then handles confirmations (setImmediate in
 *      driver.ts). So the asks that arrived during a gap are read before that gap counts.
 *   4. The owner ran during the gap: then it asked in it or after it, by 1; its silence is at most half a lease and one
 *      CAP, by 2 and 3.
 *   5. The owner was stopped too, for less than a lease: its last ask was at most a CAP before the gap, which counts as
 *      CAP. Half a lease of heard time is left for its next ask.
 *   6. The leader was deaf: from the end of the gap the owner has a lease, as in a new term, and also the length of the
 *      gap, up to RECONNECT_MS, because connections break in long gaps and must be made anew.
 *
 * Liveness: a dead owner is found silent, also by a leader that stalls.
 *   7. A dead owner does not ask. Its silence grows with heard time, except for one grace: a second one comes only
 *      after an ask.
 *   8. While the leader runs with a quorum, no gap is longer than CAP: it asks a quorum by itself, every half CAP, once
 *      an owner has been silent for half a lease (lookAt), and before that owners that are alive ask.
 *   9. So a stall of less than three quarters of a lease costs at most its own length. Stalled for 200 ms in every
 *      second, a leader with leases of 800 ms finds a dead owner silent within 1.3 s of its last ask. A longer stall
 *      may cost a CAP more, and the grace of 7.
 */
import type { LeaseTerms } from './state.js';

/** An owner asks for its lease so often within one lease. */
export const RENEWALS = 4;
/**
 * The longest that a broken connection takes to be made anew, once both ends run: the pause between two SYNs or two
 * attempts.
 */
export const RECONNECT_MS = 2000;

interface Silence {
  /** Heard time at its beginning. */
  from: number;
  /** It has had its grace. */
  excused: boolean;
}

export class Silences {
  readonly #leaseMs: number;
  readonly #capMs: number;
  readonly #heldMs: number;
  #heardMs = 0;
  #confirmedMs: number;
  readonly #of = new Map<string, Silence>();
  /** The silence of all that have not asked in this term. */
  readonly #unheard: Silence = { from: 0, excused: false };

  /** `nowMs`: a quorum has just confirmed the leader. `heldMs`: what counts as a whole lease. */
  constructor({ leaseMs }: LeaseTerms, heldMs: number, nowMs: number) {
    this.#leaseMs = leaseMs;
    this.#capMs = leaseMs / RENEWALS;
    this.#heldMs = heldMs;
    this.#confirmedMs = nowMs;
  }

  /** A quorum has confirmed the leader. Returns how long it was deaf before, if it was: every owner has a grace then. */
  confirmed(nowMs: number): number | undefined {
    const gapMs = nowMs - this.#confirmedMs;
    this.#heardMs += this.#counted(gapMs);
    this.#confirmedMs = nowMs;
    if (gapMs < this.#leaseMs) return undefined;
    for (const silence of [this.#unheard, ...this.#of.values()]) {
      if (silence.excused) continue;
      silence.from = this.#heardMs + Math.min(gapMs, RECONNECT_MS);
      silence.excused = true;
    }
    return gapMs;
  }

  /**
   * The owner has asked for its lease. What has not been confirmed yet of the time before does not count against it.
   */
  asked(id: string, nowMs: number): void {
    this.#of.set(id, { from: this.#heardMs + this.#counted(nowMs - this.#confirmedMs), excused: false });
  }

  /** Whether the leader has heard nothing of this owner for a whole lease in which it could hear. */
  silent(id: string): boolean {
    return this.#missingMs(id) <= 0;
  }

  /**
   * When the leader must ask a quorum, because the owner may be silent then or because heard time would stand still;
   * undefined: it is silent.
   */
  lookAt(id: string, nowMs: number): number | undefined {
    const missingMs = this.#missingMs(id);
    if (missingMs <= 0) return undefined;
    const waitMs = Math.max(missingMs - this.#heldMs / 2, Math.min(missingMs, this.#capMs / 2));
    return Math.max(this.#confirmedMs + waitMs, nowMs + 1);
  }

  #missingMs(id: string): number {
    return (this.#of.get(id) ?? this.#unheard).from + this.#heldMs - this.#heardMs;
  }

  #counted(gapMs: number): number {
    return gapMs < this.#leaseMs ? Math.min(gapMs, this.#capMs) : 0;
  }
}
