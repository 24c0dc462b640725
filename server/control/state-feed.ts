/**
 * The metadata on its way from the thread of Raft to the thread of clients: what changed since the state that was sent
 * last. Parts that did not change keep their identity at the other end too, so that maps are compared there as cheaply
 * as here.
 *
 * Invariant: at most one change is on its way. While it is, later states wait as one: the newest.
 */
import { EMPTY } from '../../core/metadata/reduce.js';
import type { MetadataState, Shard } from '../../core/metadata/state.js';

/** A plain value: it crosses by structured clone. */
export interface StateChange {
  /** Everything but the shards, which may be many, and their copies. Undefined members: as they were. */
  readonly rest: Omit<MetadataState, 'shards' | 'members' | 'copySets'> & Partial<Pick<MetadataState, 'members'>>;
  readonly count: number;
  readonly shards: readonly (readonly [index: number, shard: Shard])[];
}

/** Clients are told nothing of copies, so the thread of clients has none. */
export function changeOf(from: MetadataState, { shards, members, copySets, ...rest }: MetadataState): StateChange {
  return {
    rest: members === from.members ? rest : { ...rest, members },
    count: shards.length,
    shards: shards.flatMap((shard, i) => (shard === from.shards[i] ? [] : [[i, shard] as const])),
  };
}

export function applyChange(from: MetadataState, { rest, count, shards }: StateChange): MetadataState {
  const all = from.shards.slice(0, count);
  for (const [i, shard] of shards) all[i] = shard;
  return { ...rest, members: rest.members ?? from.members, shards: all, copySets: [] };
}

/** The sending end. */
export class StateFeed {
  readonly #post: (change: StateChange) => void;
  #sent: MetadataState = EMPTY;
  #newest: MetadataState = EMPTY;
  #underWay = false;

  constructor(post: (change: StateChange) => void) {
    this.#post = post;
  }

  offer(state: MetadataState): void {
    this.#newest = state;
    this.#send();
  }

  /** The other end has applied what was sent last. */
  taken(): void {
    this.#underWay = false;
    this.#send();
  }

  #send(): void {
    if (this.#underWay || this.#newest === this.#sent) return;
    const change = changeOf(this.#sent, this.#newest);
    this.#sent = this.#newest;
    this.#underWay = true;
    this.#post(change);
  }
}
