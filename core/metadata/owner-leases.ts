/**
 * Leases of owners: until when an owner may let clients rely on its memory. Arithmetic and rules, without a clock:
 * every method is told the time of its own machine, in milliseconds of a clock that goes on while the machine is
 * suspended.
 *
 *     owner                         leader of the term                                other members
 *       S  --- asks -------------->  t  asks a quorum whether it still leads  ------------->
 *                                    c  <---------------------------- confirmed ------------
 *                                       notes: held until c + D * (1 + 2 drift)
 *       <-- granted, index i ------
 *     applies the log up to i
 *     may grant until S + D
 *
 * D is the same for the whole cluster (MetadataState.ownerLease). Why nobody else owns a shard before S + D:
 *   - This leader proposes to take a shard away only when what it noted is over, and from then on grants that owner
 *     nothing until the entry is applied or refused. Then i is not before that entry: it is what the leader has applied
 *     when it grants, not when it was asked. S is before c, and what two clocks differ by in D is added.
 *   - A later leader was elected after t, since a quorum confirmed after t that there was none; and it waits D * (1 + 2
 *     drift) from the first commit of its own term before it takes anything.
 *   - An entry that an earlier leader proposed is in the log before the first one of the later leader's term, and a
 *     leader grants nothing before that one is committed (ReadIndex). So it lies at or before i, and the owner has
 *     applied it: it no longer believes that the shard is its own. For the same reason only the leader itself may
 *     propose such an entry, in its own term.
 *
 * With no quorum nothing is confirmed: owners' leases run out, and within D they stop granting and answering. They keep
 * what they hold, and go on when a leader hears them again: it takes shards only from owners that were silent while it
 * could hear (silence.ts).
 */
import { Silences } from './silence.js';
import type { LeaseTerms, Member } from './state.js';

/** Of the coarsest clock, and of rounding. */
const TICK_MS = 10;

/** How long a leader must count on a lease, from when it granted or from when it came to lead. */
export function heldMs({ leaseMs, driftPpm }: LeaseTerms): number {
  return leaseMs * (1 + (2 * driftPpm) / 1_000_000) + TICK_MS;
}

/** The leader's side, for one term. It is gone with the term. */
export class GrantedLeases {
  readonly #terms: LeaseTerms;
  /** When what earlier leaders have granted is over. */
  readonly #earlier: number;
  readonly #until = new Map<string, number>();
  readonly #ended = new Set<string>();
  readonly #silences: Silences;
  readonly #withheld = new Set<string>();
  /** When what starts that have ended were granted is over. */
  #startsOver = -Infinity;
  #incarnations: ReadonlyMap<string, string> | undefined;

  /** `nowMs`: the first entry of this leader's term is committed. */
  constructor(terms: LeaseTerms, nowMs: number) {
    this.#terms = terms;
    this.#earlier = nowMs + heldMs(terms);
    this.#silences = new Silences(terms, heldMs(terms), nowMs);
  }

  /**
   * To be called whenever a quorum has confirmed the leader, before what follows from that. Returns for how many
   * milliseconds the leader was deaf before, if it was (silence.ts).
   */
  confirmed(nowMs: number): number | undefined {
    return this.#silences.confirmed(nowMs);
  }

  /**
   * The members of the metadata as applied now; to be called before anybody is looked at. A server that has started
   * again is heard of by its join: what the leader asked of its earlier start, and when that one ended, says nothing of
   * this one.
   */
  observe(members: Iterable<Pick<Member, 'id' | 'incarnation'>>, nowMs: number): void {
    const before = this.#incarnations;
    const now = new Map<string, string>();
    for (const { id, incarnation } of members) {
      now.set(id, incarnation);
      if (before === undefined || before.get(id) === incarnation) continue;
      this.#startsOver = Math.max(this.#startsOver, this.overAt(id));
      this.#ended.delete(id);
      this.#silences.asked(id, nowMs);
    }
    this.#incarnations = now;
  }

  /** The owner has asked for a lease; to be called before a quorum is asked. */
  asked(id: string, nowMs: number): void {
    this.#silences.asked(id, nowMs);
  }

  /**
   * To be called when a quorum has confirmed the leader, after the request came. False: this owner is about to lose its
   * shards.
   */
  grant(id: string, nowMs: number): boolean {
    if (this.#withheld.has(id)) return false;
    this.#silences.asked(id, nowMs);
    this.#until.set(id, nowMs + heldMs(this.#terms));
    this.#ended.delete(id);
    return true;
  }

  /** Its owner says that nobody relies on it any more. */
  end(id: string, nowMs: number): void {
    this.#until.set(id, nowMs);
    this.#ended.add(id);
  }

  /** Whether nobody can rely on this owner any more. */
  over(id: string, nowMs: number): boolean {
    return nowMs >= this.overAt(id);
  }

  overAt(id: string): number {
    const until = this.#until.get(id);
    // What the owner itself says is also about what earlier leaders granted.
    if (until !== undefined && this.#ended.has(id)) return until;
    return Math.max(this.#earlier, until ?? this.#earlier);
  }

  /** From then on nobody can rely on what any start of a member owned that has ended, in this term or before it. */
  earlierStartsOverAt(): number {
    return Math.max(this.#earlier, this.#startsOver);
  }

  /** Nobody can rely on this owner any more, and it is not for want of a leader that hears. */
  dead(id: string, nowMs: number): boolean {
    return this.over(id, nowMs) && (this.#ended.has(id) || this.#silences.silent(id));
  }

  /** When a quorum must be asked again to learn whether this owner is dead; undefined: time alone changes nothing. */
  lookAt(id: string, nowMs: number): number | undefined {
    if (this.dead(id, nowMs)) return undefined;
    return this.#ended.has(id) ? this.overAt(id) : (this.#silences.lookAt(id, nowMs) ?? this.overAt(id));
  }

  /** It has asked in this term, and its lease is not over. */
  alive(id: string, nowMs: number): boolean {
    return nowMs < (this.#until.get(id) ?? -Infinity);
  }

  /** From before the entry that takes its shards is proposed, until that one was applied or refused. */
  withhold(id: string): void {
    this.#withheld.add(id);
  }

  release(id: string): void {
    this.#withheld.delete(id);
  }

  withheld(id: string): boolean {
    return this.#withheld.has(id);
  }
}

/** The owner's side. */
export class HeldLease {
  #untilMs = -Infinity;

  get untilMs(): number {
    return this.#untilMs;
  }

  held(nowMs: number): boolean {
    return nowMs < this.#untilMs;
  }

  /** A grant was answered to what was asked at `sentMs`, and the log is applied as far as the grant says. */
  granted(sentMs: number, leaseMs: number): void {
    this.#untilMs = Math.max(this.#untilMs, sentMs + leaseMs);
  }
}
