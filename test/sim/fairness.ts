/**
 * Checks that leaders take shards only from owners that had their chance. It knows what no leader can: when a member
 * stood still, and when a question reached a leader's machine, also while the leader did not run. So it does not ask
 * the product what it has heard.
 *
 *   owner fairness     shards are taken from an owner that has not started again only after a lease in which the leader
 *                      ran, since the last of: a question of this owner reached the leader's machine; the leader came
 *                      to lead; the leader had stood still for a lease or longer, for the first time in this silence.
 *                      Of a shorter stop a quarter of a lease counts at most. One that had been silent for such a
 *                      lease before the leader stood still may lose its shards in the moment in which that goes on,
 *                      though its question has come meanwhile: it is read next.
 */
import { GrantedLeases } from '../../core/metadata/owner-leases.js';
import { Violation } from './checker.js';

/** What clocks differ by. */
const DRIFT = 0.03;
const LONGEST_STALL = 1 / 4;

interface Silence {
  readonly incarnation: string;
  /** By the leader's running time. */
  from: number;
  excused: boolean;
  /** The question came while the leader stood still, to an owner that had been silent for long enough before. */
  late: boolean;
}

/** A member as a leader. */
interface Ears {
  /** Time in which it ran, up to `sinceUs`. */
  ranUs: number;
  sinceUs: number;
  stopped: boolean;
  readonly silences: Map<string, Silence>;
  /** Of all that have not asked in this term. */
  unheard: Silence;
}

export class Fairness {
  readonly #nowUs: () => number;
  readonly #leaseUs: number;
  readonly #members = new Map<number, Ears>();

  constructor(nowUs: () => number, leaseMs: number) {
    this.#nowUs = nowUs;
    this.#leaseUs = leaseMs * 1000;
  }

  paused(member: number): void {
    const ears = this.#ears(member);
    this.#run(ears);
    ears.stopped = true;
  }

  resumed(member: number): void {
    const ears = this.#ears(member);
    if (!ears.stopped) return;
    const stallUs = this.#nowUs() - ears.sinceUs;
    ears.sinceUs = this.#nowUs();
    ears.stopped = false;
    const deaf = stallUs > this.#leaseUs * (1 + DRIFT);
    if (!deaf) ears.ranUs += Math.min(stallUs, this.#leaseUs * LONGEST_STALL);
    for (const silence of [ears.unheard, ...ears.silences.values()]) {
      if (silence.from === Infinity) silence.from = ears.ranUs;
      if (!deaf || silence.excused) continue;
      silence.from = ears.ranUs;
      silence.excused = true;
    }
  }

  /** A question of an owner's lease is at the leader's machine. */
  arrived(leader: number, owner: string, incarnation: string): void {
    const ears = this.#ears(leader);
    this.#run(ears);
    const before = this.#silence(ears, owner, incarnation);
    const late = ears.stopped && (before.from === Infinity ? before.late : this.#isLong(ears, before));
    // It is heard when the leader goes on.
    ears.silences.set(owner, { incarnation, from: ears.stopped ? Infinity : ears.ranUs, excused: false, late });
  }

  /** A new term has begun for the leases. */
  leads(member: number): void {
    const ears = this.#ears(member);
    this.#run(ears);
    ears.silences.clear();
    ears.unheard = { incarnation: '', from: ears.ranUs, excused: false, late: false };
  }

  taken(leader: number, owner: string, incarnation: string): void {
    const ears = this.#ears(leader);
    this.#run(ears);
    const silence = this.#silence(ears, owner, incarnation);
    const heardUs = ears.ranUs - silence.from;
    if (this.#isLong(ears, silence) || (silence.late && heardUs === 0)) return;
    throw new Violation(
      'owner fairness',
      `${leader} takes the shards of ${owner}, which it could hear for ${Math.floor(heardUs / 1000)} ms only since it heard of it last`,
    );
  }

  #silence({ silences, unheard }: Ears, owner: string, incarnation: string): Silence {
    const asked = silences.get(owner);
    return asked?.incarnation === incarnation ? asked : unheard;
  }

  #isLong({ ranUs }: Ears, { from }: Silence): boolean {
    return ranUs - from >= this.#leaseUs * (1 - DRIFT);
  }

  #ears(member: number): Ears {
    let ears = this.#members.get(member);
    if (ears === undefined) {
      ears = {
        ranUs: 0,
        sinceUs: this.#nowUs(),
        stopped: false,
        silences: new Map(),
        unheard: { incarnation: '', from: 0, excused: false, late: false },
      };
      this.#members.set(member, ears);
    }
    return ears;
  }

  #run(ears: Ears): void {
    if (ears.stopped) return;
    ears.ranUs += this.#nowUs() - ears.sinceUs;
    ears.sinceUs = this.#nowUs();
  }
}

/** A mistake to be found: whoever has no lease is dead, as if the leader could always hear. */
export class ByClockAlone extends GrantedLeases {
  override dead(id: string, nowMs: number): boolean {
    return this.over(id, nowMs);
  }
}

/** A mistake to be found: the leader counts the time in which it stood still as if it had heard all through it. */
export class StandingStill extends GrantedLeases {
  #lastMs = Infinity;

  override confirmed(nowMs: number): number | undefined {
    for (let at = this.#lastMs + 1; at < nowMs; at++) super.confirmed(at);
    this.#lastMs = nowMs;
    return super.confirmed(nowMs);
  }
}
