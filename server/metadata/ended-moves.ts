/** Moves that are over though their shards are where they were, and why as far as the metadata says it. For the leader's log. */
import type { MetadataState } from '../../core/metadata/state.js';

export interface EndedMove {
  readonly shard: number;
  readonly from: string;
  readonly to: string;
  readonly why: string;
}

export function endedMoves(before: MetadataState, { shards, moves, members, servers }: MetadataState): EndedMove[] {
  return before.moves.flatMap(({ shard, to, planned }): EndedMove[] => {
    const from = before.shards[shard]?.owner;
    const stands = moves.some((m) => m.shard === shard && m.planned === planned);
    if (from === undefined || shards[shard]?.owner !== from || stands) return [];
    const isNew = (id: string): boolean => members.get(id)?.incarnation !== before.members.get(id)?.incarnation;
    const started = [from, to].filter(isNew);
    const why = servers.some((s) => s.id === to && s.draining)
      ? `${to} is being drained`
      : started.length > 0
        ? `${started.join(' and ')} has started again, or left`
        : `an operator called it off, ${to} does not answer, or it could make no copy, of which its log says more`;
    return [{ shard, from, to, why }];
  });
}
