/**
 * Which losses of values were permitted, by what the nemesis really did.
 *
 * Values live in the memory of one server. A shard's next epoch may begin without them only if, while the owner of the
 * epoch before had the shard,
 *
 *   1. that owner's process was ended: its memory is gone; or
 *   2. that owner could not be heard by a leader for its lease, while that leader could hear a majority. "Could not be
 *      heard" is: one of the two was stopped, or what one of them sent did not reach the other. A leader that stood
 *      still itself, or had no majority, could have heard nobody. So time counts only while the leader could hear:
 *      where it could not for less than a lease, at most 1/RENEWALS of a lease of that counts; and after a lease or
 *      more in which it could not, it begins to count anew. (core/metadata/silence.ts counts so.)
 *
 * Margins, each of which permits more and never less:
 *   - An owner renews its lease RENEWALS times within it (server/metadata/lease-holder.ts). The last renewal that was
 *     answered may be so old when the fault begins, and what had been asked last may be lost with it: the lease can be
 *     over 1/RENEWALS of it, and SLACK_NS, sooner than counted.
 *   - After a stop both ends go on at once, and have a backlog to work through: RESUMED_NS.
 *   - After a cut TCP sends again when its doubled time is over, which takes as long again as the cut did; or the link
 *     is given up by a ping, and made anew (server/metadata/peer-link.ts): HEALED_NS at most.
 *   - This process hears of an epoch after it was given: TOLD_NS, and for as long as its own event loop stood still
 *     before (Epoch.sinceNs).
 *   - A server whose process was just started counts as one of a majority at once.
 */
import type { Epoch } from './epochs.js';
import type { FaultLog, Span } from './fault-log.js';
import { atLeast, complement, intersection, union } from './spans.js';

const RENEWALS = 4;
const SLACK_NS = 100e6;
const RESUMED_NS = 500e6;
const HEALED_NS = 5e9;
const TOLD_NS = 1e9;

export class PermittedLosses {
  readonly #log: FaultLog;
  readonly #leaseNs: number;
  readonly #leastNs: number;
  readonly #leaseOver = new Map<string, readonly Span[]>();

  constructor(log: FaultLog, ownerLeaseMs: number) {
    this.#log = log;
    this.#leaseNs = ownerLeaseMs * 1e6;
    this.#leastNs = this.#leaseNs * (1 - 1 / RENEWALS) - SLACK_NS;
  }

  /**
   * Why the values that the shard had in the epoch `before` may be gone with the epoch `next`; undefined: they must be
   * there.
   */
  cause(before: Epoch, next: Epoch): string | undefined {
    const { owner } = before;
    // Nobody had it: there were no values.
    if (owner === undefined) return 'nobody owned it';
    const from = before.sinceNs - TOLD_NS;
    const dead = this.#log.serverFaults.find(
      (f) => f.kind === 'dead' && f.server === owner && f.fromNs <= next.toldNs && f.toNs >= from,
    );
    if (dead !== undefined) return `${owner} was ended`;
    const unheard = this.leaseOver(owner).find(
      (s) => s.fromNs <= next.toldNs && s.toNs + TOLD_NS >= next.sinceNs && s.toNs >= from,
    );
    return unheard === undefined ? undefined : `${owner} could not be heard for its lease`;
  }

  /** When the server had not been heard for its lease by some one leader that could hear. */
  leaseOver(server: string): readonly Span[] {
    const known = this.#leaseOver.get(server);
    if (known !== undefined) return known;
    const { servers } = this.#log;
    const spans = servers
      .filter((other) => other !== server)
      .flatMap((leader) => {
        const hears = this.#leads(leader);
        return this.#apart(server, leader, true).flatMap((apart) => this.#silences(intersection([apart], hears)));
      });
    this.#leaseOver.set(server, spans);
    return spans;
  }

  /** `heard`: when a leader could have heard an owner of which nothing came. */
  #silences(heard: readonly Span[]): Span[] {
    const over: Span[] = [];
    let silentNs = 0;
    let since: number | undefined;
    for (const [i, { fromNs, toNs }] of heard.entries()) {
      const gapNs = fromNs - (heard[i - 1]?.toNs ?? -Infinity);
      if (gapNs >= this.#leaseNs) {
        silentNs = 0;
        since = undefined;
      } else {
        silentNs += Math.min(gapNs, this.#leaseNs / RENEWALS);
      }
      if (silentNs + toNs - fromNs >= this.#leastNs) since ??= Math.max(fromNs, fromNs + this.#leastNs - silentNs);
      silentNs += toNs - fromNs;
      if (since !== undefined) over.push({ fromNs: since, toNs });
    }
    return union(over);
  }

  /** When the two did not hear each other. `after`: also for as long as it can take them to do so again. */
  #apart(a: string, b: string, after: boolean): Span[] {
    const { serverFaults, linkFaults } = this.#log;
    const later = (s: Span, ns: number): Span => ({ fromNs: s.fromNs, toNs: s.toNs + (after ? ns : 0) });
    const away = serverFaults.filter((f) => f.server === a || f.server === b).map((f) => later(f, RESUMED_NS));
    const cut = linkFaults
      .filter((f) => (f.from === a && f.to === b) || (f.from === b && f.to === a))
      .map((f) => later(f, Math.min(HEALED_NS, f.toNs - f.fromNs + RESUMED_NS)));
    return union([...away, ...cut]);
  }

  /** When this server can have led: it runs, and hears a majority with itself. */
  #leads(leader: string): Span[] {
    const { servers, serverFaults } = this.#log;
    const runs = complement(serverFaults.filter((f) => f.server === leader));
    const others = servers.filter((s) => s !== leader).map((s) => complement(this.#apart(leader, s, false)));
    return intersection(runs, atLeast(Math.floor(servers.length / 2), others));
  }
}
