/**
 * What lies in the shards of a history with owners (owners.ts): for each the number of its latest change. An owner that had the shard copied to
 * it must have the latest change that any owner has acknowledged; one that came by it otherwise begins with nothing.
 */
import { Violation } from './checker.js';

/** Of a shard, at the member that it moves to. */
export interface Copy {
  /** Of the owner that it is copied from. */
  readonly epoch: number;
  /** Of the move that it is for. */
  planned: number;
  name: string;
  /** `last` was applied for it. */
  last: boolean;
  /** The latest change; undefined before the last part is copied. */
  value: number | undefined;
}

export class Contents {
  /** By life, shard and epoch. */
  readonly #memory = new Map<string, number>();
  /** By name of a copy that was finished: whose it is. */
  readonly #finished = new Map<string, string>();
  /** Those that came with a copy and were not served yet. */
  readonly #arrived = new Set<string>();
  /** The latest change that its owner had acknowledged, or had come with, by shard and epoch. */
  readonly #acknowledged = new Map<string, number>();
  #changes = 0;

  at(life: string, shard: number, epoch: number): number {
    return this.#memory.get(keyOf(life, shard, epoch)) ?? 0;
  }

  /** All of the shard has been copied. */
  finished(life: string, { name }: Copy): void {
    this.#finished.set(name, life);
  }

  /** An owner is about to open a shard that it was given with the copy of this name: nobody else has what was in it. */
  opened(life: string, shard: number, epoch: number, name: string): void {
    if (this.#finished.get(name) === life && !this.#memory.has(keyOf(life, shard, epoch))) {
      throw new Violation('moved shards', `shard ${shard} is opened empty in epoch ${epoch}, by the owner that has copied it (${name})`);
    }
  }

  /** The shard is this member's to open with the copy. */
  moved(life: string, shard: number, epoch: number, copy: Copy): void {
    const key = keyOf(life, shard, epoch);
    // Once it is served it is no copy any more.
    if (this.#memory.has(key) && !this.#arrived.has(key)) return;
    this.#memory.set(key, copy.value ?? 0);
    this.#arrived.add(key);
  }

  /** It has been opened with the copy. */
  kept(life: string, shard: number, epoch: number): void {
    const key = keyOf(life, shard, epoch);
    if (this.#arrived.has(key)) this.#acknowledged.set(`${shard}/${epoch}`, this.#memory.get(key) ?? 0);
  }

  /** A copy is lost, or of no more use. */
  dropped(life: string, shard: number, epoch: number): void {
    const key = keyOf(life, shard, epoch);
    if (this.#arrived.delete(key)) this.#memory.delete(key);
  }

  /** Clients may rely on this owner; where it takes changes, it acknowledges one. True: for the first time, with a copy. */
  serve(life: string, shard: number, epoch: number, changes: boolean): boolean {
    const key = keyOf(life, shard, epoch);
    const arrived = this.#arrived.delete(key);
    // Its last owner may have begun with nothing, and taken no change.
    const latest = this.#acknowledged.get(`${shard}/${epoch - 1}`) ?? 0;
    const held = this.#memory.get(key) ?? 0;
    if (arrived && held !== latest) throw new Violation('moved shards', `shard ${shard} came in epoch ${epoch} with change ${held}, and its last owner had acknowledged change ${latest}`);
    if (changes) {
      this.#memory.set(key, ++this.#changes);
      this.#acknowledged.set(`${shard}/${epoch}`, this.#changes);
    }
    return arrived;
  }
}

function keyOf(life: string, shard: number, epoch: number): string {
  return `${life} ${shard}/${epoch}`;
}
