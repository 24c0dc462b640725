/**
 * Copies of this start of the server that the metadata has and that are not here: the metadata is told so, until it has it.
 * A shard that comes with such a copy is not opened (S-led, index.ts). Not for: copies that are here (backup.ts).
 */
import type { CopyMissing, CopyNamed } from '../metadata/copy-commands.js';
import { isRenounced, isWhole } from '../metadata/copy-sets.js';
import type { Shard } from '../metadata/state.js';
import type { ShardContext } from './context.js';
import { ownEntry } from './copy-entry.js';
import type { LocalShard } from './local-shard.js';

export class MissingCopies {
  readonly #context: ShardContext;
  readonly #propose: (command: CopyMissing | CopyNamed) => void;
  /** Shards of which the metadata is being told that a copy is not here. */
  readonly #missing = new Set<number>();

  constructor(context: ShardContext, propose: (command: CopyMissing | CopyNamed) => void) {
    this.#context = context;
    this.#propose = propose;
  }

  /** What was proposed of this shard has its result. */
  done(shard: number): void {
    this.#missing.delete(shard);
  }

  /**
   * The shard comes with a copy that is not here: opened empty it would be taken for that copy. Every copy of this start
   * was made or found by it, and what it let go of is on its disk no more. So nothing is lost by saying so, and more would
   * be if the process ended.
   */
  isLost(shard: number): boolean {
    const copy = ownEntry(this.#context, shard);
    if (copy === undefined || !isWhole(copy)) return false;
    const { metadata } = this.#context;
    const { id = '' } = copy;
    const { epoch, incarnation } = metadata.shards[shard] ?? {};
    const config = metadata.copySets[shard]?.config;
    // It would be open already: by this server's own word, which had the copy.
    if (incarnation !== undefined || epoch === undefined || config === undefined) {
      this.#context.act({ do: 'fail', shard, what: 'opened', error: `its copy ${id} is not here` });
    } else if (!this.#missing.has(shard)) {
      this.#context.act({ do: 'note', note: { of: 'copy missing', shard, copy: id } });
      const { member, start } = copy;
      this.#tell({ t: 'copy-missing', shard, epoch, config, member, start, copy: id });
    }
    return true;
  }

  /**
   * The metadata may have a copy here that joins, and of which the table is gone: it was to become the owner's, and
   * another server was given the shard meanwhile. Nobody is to be given the shard with it.
   */
  renounce({ shard, epoch }: Shard, locals: ReadonlyMap<number, LocalShard>): void {
    const copy = ownEntry(this.#context, shard);
    const config = this.#context.metadata.copySets[shard]?.config;
    if (copy?.state !== 'joining' || copy.id === undefined || isRenounced(copy) || config === undefined) return;
    const local = locals.get(shard);
    const isHere = local?.kind === 'owned' ? local.state.is !== 'closing' : local?.incarnation === copy.id;
    if (isHere || this.#missing.has(shard)) return;
    const { member, start, worker } = copy;
    const name = { shard, epoch, config, member, start, copy: this.#context.random64() };
    this.#tell({ t: 'copy-named', ...name, worker, renounced: true });
  }

  /** Until it is so: of a copy that is not here. */
  #tell(command: CopyMissing | CopyNamed): void {
    this.#missing.add(command.shard);
    this.#propose(command);
  }
}
