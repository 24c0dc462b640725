/**
 * What of the shards a page has not been sent: of thousands most are the same from one look to the next. Not for: what
 * the shards are (view.ts).
 */
import type { ShardView } from './view.js';

interface Known {
  readonly text: string;
  /** The look that found it as it is. */
  readonly look: number;
}

export class ShardNews {
  /** In the order of the last look, by number. */
  #known: ReadonlyMap<number, Known> = new Map();
  #look = 0;
  /** Texts of the last look, by the look that its reader had before. */
  readonly #texts = new Map<number, string>();

  /** The number of this look: 1, 2, ... */
  take(shards: readonly ShardView[]): number {
    const look = ++this.#look;
    this.#texts.clear();
    this.#known = new Map(
      shards.map((shard) => {
        const text = JSON.stringify(shard);
        const before = this.#known.get(shard.shard);
        return [shard.shard, before?.text === text ? before : { text, look }];
      }),
    );
    return look;
  }

  /** A JSON array of the shards that are not what they were at that look; 0: all. */
  since(look: number): string {
    const made = this.#texts.get(look);
    if (made !== undefined) return made;
    const changed = [...this.#known.values()].filter((one) => one.look > look);
    const text = `[${changed.map((one) => one.text).join(',')}]`;
    this.#texts.set(look, text);
    return text;
  }
}
