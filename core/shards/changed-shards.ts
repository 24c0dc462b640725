/**
 * Which shards are not as they were when the metadata was looked at last. What commands do not change keeps its
 * identity (core/metadata/reduce.ts), and most changes are of one shard's layout: looking at each of thousands for each
 * of them would take the server's time.
 *
 * Where moves or members changed it is all of them: that is seldom, and what it means for a shard need not stand with
 * the shard.
 */
import type { MetadataState, Shard } from '../metadata/state.js';

type Seen = Pick<MetadataState, 'shards' | 'moves' | 'members' | 'copySets'>;

export class ChangedShards {
  #seen: Seen | undefined;
  readonly #again = new Set<number>();

  /** To be looked at the next time though the metadata has not changed. */
  again(shard: number): void {
    this.#again.add(shard);
  }

  /** Some are to be looked at again. */
  get pending(): boolean {
    return this.#again.size > 0;
  }

  /** Since this was asked last. */
  since(state: Seen): readonly Shard[] {
    const [seen, again] = [this.#seen, new Set(this.#again)];
    this.#seen = state;
    this.#again.clear();
    if (seen?.moves !== state.moves || seen.members !== state.members) return state.shards;
    if (seen.shards === state.shards && seen.copySets === state.copySets && again.size === 0) return [];
    return state.shards.filter(
      (s, i) => s !== seen.shards[i] || state.copySets[i] !== seen.copySets[i] || again.has(i),
    );
  }
}
