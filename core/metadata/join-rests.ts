/**
 * Which copies are not to be begun again yet, for the leader: a join between two living servers that does not succeed (no
 * memory at the one, no way between the two) is called off by a server that takes part in it, and the metadata has how
 * often (CopySet.failed). It would keep places that others need (JOINS_AT_ONCE). So the copy is made elsewhere, or there
 * again after a rest that doubles each time.
 *
 * When the rest began is soft state of each leader, of which nothing that is safe depends.
 */
import type { FailedJoin, MetadataState } from './state.js';

const REST_MS = 5_000;
const REST_MAX_MS = 600_000;
/** So long other shards of the same owner rather go to other servers. */
const TROUBLED_MS = 300_000;

interface Rest extends FailedJoin {
  readonly owner: string | undefined;
  readonly untilMs: number;
  readonly troubledMs: number;
}

/** Joins of this shard that were called off, between the owner in this epoch and starts of servers that are there. */
export function failedJoins({ copySets, shards, members }: MetadataState, shard: number): readonly FailedJoin[] {
  const failed = copySets[shard]?.failed ?? [];
  return failed.filter((f) => f.epoch === shards[shard]?.epoch && members.get(f.member)?.incarnation === f.start);
}

export class JoinRests {
  /** By shard, of which the metadata has the same list as when it was looked at last. */
  readonly #seen = new Map<number, readonly FailedJoin[]>();
  /** By shard and member. */
  readonly #rests = new Map<string, Rest>();

  /** To be called with each state of the metadata. */
  observe(state: MetadataState, nowMs: number): void {
    state.copySets.forEach(({ failed }, shard) => {
      if (failed === this.#seen.get(shard)) return;
      for (const { member } of this.#seen.get(shard) ?? [])
        if (failed?.some((f) => f.member === member) !== true) this.#rests.delete(keyOf(shard, member));
      if (failed === undefined) this.#seen.delete(shard);
      else this.#seen.set(shard, failed);
      for (const f of failed ?? []) {
        const before = this.#rests.get(keyOf(shard, f.member));
        if (before?.times === f.times && before.start === f.start && before.epoch === f.epoch) continue;
        const restMs = Math.min(REST_MAX_MS, REST_MS * 2 ** Math.min(10, f.times - 1));
        const { owner } = state.shards[shard] ?? {};
        const times = { untilMs: nowMs + restMs, troubledMs: nowMs + TROUBLED_MS };
        this.#rests.set(keyOf(shard, f.member), { ...f, owner, ...times });
      }
    });
  }

  /** No copy of the shard is to be begun there now. */
  rests(state: MetadataState, shard: number, member: string, nowMs: number): boolean {
    const untilMs = this.#rests.get(keyOf(shard, member))?.untilMs ?? -Infinity;
    return nowMs < untilMs && failedJoins(state, shard).some((f) => f.member === member);
  }

  /** A copy of another shard of that owner could not be made there lately: what was in the way of one is of all. */
  troubled({ members }: MetadataState, owner: string, member: string, nowMs: number): boolean {
    const start = members.get(member)?.incarnation;
    return [...this.#rests.values()].some(
      (rest) => rest.member === member && rest.owner === owner && rest.start === start && nowMs < rest.troubledMs,
    );
  }

  /** When something may be begun that rests now. */
  nextEndMs(nowMs: number): number | undefined {
    const ends = [...this.#rests.values()].map(({ untilMs }) => untilMs).filter((at) => at > nowMs);
    return ends.length === 0 ? undefined : Math.min(...ends);
  }
}

function keyOf(shard: number, member: string): string {
  return `${shard} ${member}`;
}
