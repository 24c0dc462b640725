/**
 * Why shards have other owners than was planned, as this server has seen it since its start: only to be shown. Handovers
 * and moves are no failovers. Not for: decisions (leader-policy.ts, copy-policy.ts).
 */
import { mayCome } from './copy-sets.js';
import type { MetadataState } from './state.js';

export interface Failover {
  readonly from: string;
  readonly to: string;
  readonly shards: number;
  /** restarted: the owner's process ended and came back without its values. silent: the owner did not answer. */
  readonly why: 'restarted' | 'silent';
  /**
   * What the new owner serves: all values, from a copy; some, from one that an operator chose although it lacked others;
   * none.
   */
  readonly values: 'all' | 'some' | 'none';
}

/** One shard of it. */
export type FailedOver = Omit<Failover, 'shards'> & { readonly shard: number };

type Seen = Pick<MetadataState, 'shards' | 'members' | 'copySets'>;

/** Whether it is the table of a copy that was there before, of the start that lives. */
function valuesAt(before: Seen, now: Seen, shard: number, owner: string): Failover['values'] {
  const own = ({ copySets }: Seen) => copySets[shard]?.copies.find((c) => c.member === owner);
  const [copy, table] = [own(before), own(now)];
  if (copy === undefined || copy.start !== now.members.get(owner)?.incarnation || copy.id !== table?.id) return 'none';
  return mayCome(now, copy) ? 'all' : 'some';
}

export class Failovers {
  #before: Seen | undefined;
  /** Owners of shards that have none now, and the starts under which they had them. */
  readonly #owners = new Map<number, { readonly id: string; readonly start: string | undefined }>();
  #shards = 0;
  readonly #last = new Map<string, Failover & { readonly atMs: number }>();

  /** Shards whose owner was replaced, each time that it was. */
  get shards(): number {
    return this.#shards;
  }

  /** The last one from each owner to each, of each kind, newest first. */
  all(nowMs: number): (Failover & { readonly agoMs: number })[] {
    return [...this.#last.values()]
      .sort((a, b) => b.atMs - a.atMs)
      .map(({ atMs, ...one }) => ({ ...one, agoMs: Math.max(0, Math.round(nowMs - atMs)) }));
  }

  /**
   * The metadata as applied now. `isPast`: what led to it happened before this server's start, or while it was away. A
   * start applies that again, and it is no failover of now. Returns what has failed over since the state before.
   */
  observe(state: Seen, nowMs: number, isPast = false): readonly FailedOver[] {
    const before = this.#before;
    this.#before = state;
    if (before?.shards === state.shards) return [];
    const failed: FailedOver[] = [];
    for (const { shard, owner, epoch } of state.shards) {
      const last = this.#owners.get(shard);
      if (owner === undefined) continue;
      this.#owners.set(shard, { id: owner, start: state.members.get(owner)?.incarnation });
      const epochBefore = before?.shards[shard]?.epoch;
      if (isPast || last === undefined || before === undefined || last.id === owner || epochBefore === epoch) continue;
      if (state.copySets[shard]?.handed === epoch) continue;
      failed.push({
        shard,
        from: last.id,
        to: owner,
        why: state.members.get(last.id)?.incarnation === last.start ? 'silent' : 'restarted',
        values: valuesAt(before, state, shard, owner),
      });
    }
    for (const one of failed) this.#note(one, nowMs);
    return failed;
  }

  /** Shards that came together, or within a second, are one. */
  #note({ shard: _, ...one }: FailedOver, nowMs: number): void {
    this.#shards += 1;
    const key = JSON.stringify(one);
    const known = this.#last.get(key);
    const same = known !== undefined && nowMs - known.atMs < 1000;
    this.#last.set(key, { ...one, shards: 1 + (same ? known.shards : 0), atMs: nowMs });
  }
}
