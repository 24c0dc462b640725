/**
 * What lies in the shards of a history with owners (owners.ts): for each the number of its latest change. An owner that
 * had the shard copied to it must have the latest change that any owner has acknowledged; one that came by it otherwise
 * begins with nothing.
 */
import { Violation } from './checker.js';

/** A table in a member's data plane (plane.ts). */
export interface Table {
  readonly shard: number;
  epoch: number;
  incarnation: string;
  /** Its latest change. */
  value: number;
  /** It was copied from its last owner, and was not served yet. */
  arrived: boolean;
}

export class Contents {
  /** The latest change that its owner had acknowledged, or had come with, by shard and epoch. */
  readonly #acknowledged = new Map<string, number>();
  /** Names of complete copies of the members' present lives. */
  readonly #complete = new Set<string>();
  #changes = 0;

  /** All of the shard has been copied. */
  finished(table: Table, value: number): void {
    table.value = value;
    this.#complete.add(table.incarnation);
  }

  /** The process that had it is gone. A copy that it threw away while it was to be used counts as had. */
  gone(copy: string): void {
    this.#complete.delete(copy);
  }

  /**
   * An owner opens a shard anew. `given`: the copy with which it was given to that owner, if so: nobody else has what
   * was in the shard.
   */
  opened({ shard, epoch }: Table, given: string | undefined): void {
    if (given === undefined || !this.#complete.has(given)) return;
    throw new Violation(
      'moved shards',
      `shard ${shard} is opened empty in epoch ${epoch}, by the owner that has copied it (${given})`,
    );
  }

  /** An owner serves the shard. It may give it up again before a client has relied on it. */
  begins(table: Table): void {
    if (!table.arrived) return;
    this.#cameWhole(table);
    this.#acknowledged.set(`${table.shard}/${table.epoch}`, table.value);
  }

  #cameWhole({ shard, epoch, value }: Table): void {
    // Its last owner may have begun with nothing, and taken no change.
    const latest = this.#acknowledged.get(`${shard}/${epoch - 1}`) ?? 0;
    if (value !== latest)
      throw new Violation(
        'moved shards',
        `shard ${shard} came in epoch ${epoch} with change ${value}, and its last owner had acknowledged change ${latest}`,
      );
  }

  /**
   * Clients may rely on this owner; where it takes changes, it acknowledges one. True: for the first time, with a copy.
   */
  serve(table: Table, changes: boolean): boolean {
    const { shard, epoch, arrived } = table;
    table.arrived = false;
    if (arrived) this.#cameWhole(table);
    const own = this.#acknowledged.get(`${shard}/${epoch}`);
    if (own !== undefined && own !== table.value)
      throw new Violation(
        'moved shards',
        `shard ${shard} has change ${table.value} in epoch ${epoch}, and its owner had acknowledged change ${own}`,
      );
    if (changes) table.value = ++this.#changes;
    if (changes) this.#acknowledged.set(`${shard}/${epoch}`, table.value);
    return arrived;
  }
}
