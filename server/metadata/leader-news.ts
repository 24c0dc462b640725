/** What the metadata's leader says in its log of what it does of itself, and of what it sees in the metadata. */
import { isGone } from '../../core/metadata/copy-sets.js';
import type { ShardsTaken } from '../../core/metadata/commands.js';
import type { ShardReset } from '../../core/metadata/copy-commands.js';
import type { MetadataState } from '../../core/metadata/state.js';
import type { Log } from '../log.js';
import { endedMoves } from './ended-moves.js';

export class LeaderNews {
  readonly #log: Log;
  #before: MetadataState | undefined;
  /** Shards of which it was said that they are lost. */
  #gone: ReadonlySet<number> = new Set();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Each state of the metadata, also while another server leads: this one may be the next. */
  observe(state: MetadataState, leads: boolean): void {
    const before = this.#before;
    this.#before = state;
    if (!leads) return;
    this.#lost(state);
    if (before !== undefined && before.moves !== state.moves) this.#endedMoves(before, state);
  }

  #endedMoves(before: MetadataState, after: MetadataState): void {
    for (const { shard, from, to, why } of endedMoves(before, after))
      this.#log.warn(`the move of shard ${shard} (${from} -> ${to}) is over, and ${from} goes on to serve it: ${why}`, {
        ...{ event: 'move-cancelled', shard, from, to },
      });
  }

  #lost(state: MetadataState): void {
    const gone = state.shards.filter((s) => isGone(state, s)).map(({ shard }) => shard);
    const fresh = gone.filter((shard) => !this.#gone.has(shard));
    this.#gone = new Set(gone);
    if (fresh.length > 0)
      this.#log.warn(
        `shards ${fresh.join(', ')} are lost: every server that had a copy has started again since, and came back without it. They wait for an operator: farkv shard reset all --accept-loss serves them empty; of durable ones a later start may still read the disk`,
        { event: 'shards-lost', shards: fresh.join() },
      );
  }

  taken(command: ShardsTaken): void {
    this.#log.warn(
      `${command.id} has been silent for longer than its lease: its ${command.shards.length} shards go to others, ${takenHow(command)}`,
      { event: 'failover', server: command.id, shards: command.shards.length },
    );
  }

  /** No operator asked for it. */
  vacantReset({ shard, to }: ShardReset): void {
    this.#log.warn(`no server that has values of shard ${shard} is there: it goes to ${to}, empty`, {
      ...{ event: 'shard-is-reset', shard, to, empty: true },
    });
  }

  voters(before: readonly string[], after: readonly string[], silentMsOf: (id: string) => number): void {
    const to = after.filter((id) => !before.includes(id)).join(', ');
    for (const id of before.filter((voter) => !after.includes(voter))) {
      const silentMs = Math.round(silentMsOf(id));
      this.#log.warn(
        `${id} has been silent for ${Math.round(silentMs / 1000)} s: ${to} votes in its place, and ${id} is a learner when it comes back`,
        { event: 'voter-replaced', server: id, to, silentMs },
      );
    }
  }
}

/** With what the shards go to others. */
function takenHow({ shards }: ShardsTaken): string {
  const kept = shards.filter((s) => s.copy !== undefined).length;
  return kept === 0
    ? 'empty'
    : `${kept} of them with their copies there${kept < shards.length ? ', the others empty' : ''}`;
}
