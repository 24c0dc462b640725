/**
 * Whom an entry of the leader counts as dead. They are granted no lease until it is known what became of the entry
 * (GrantedLeases.withhold): one that is back before it is applied would have its values given up while it lives.
 */
import type { ShardsTaken, TakenShard } from './commands.js';
import type { ShardReset } from './copy-commands.js';
import { isWhole } from './copy-sets.js';
import type { GrantedLeases } from './owner-leases.js';
import type { Copy, MetadataState } from './state.js';

/** The owner, and the servers of copies with all values that are given up. */
export function countedDead(state: MetadataState, command: ShardsTaken | ShardReset): string[] {
  if (command.t === 'shards-taken')
    return [...new Set([command.id, ...command.shards.flatMap((taken) => emptiedAt(state, taken))])];
  const { shard, to, lost } = command;
  const owner = state.shards[shard]?.owner;
  const holders = holdersOf(state, shard, ({ id }) => id !== undefined && lost.includes(id));
  const dead = owner === undefined ? holders : [owner, ...holders]; // mutation: lost/given-up-granted
  return [...new Set(dead)].filter((id) => id !== to);
}

/** Another entry is under way that counts one of the same as dead: which one. */
export function alreadyWithheld(
  state: MetadataState,
  command: ShardsTaken | ShardReset,
  leases: GrantedLeases,
): string | undefined {
  return countedDead(state, command).find((id) => leases.withheld(id));
}

/** The servers of a shard that comes empty to its next owner. */
function emptiedAt(state: MetadataState, { shard, copy }: TakenShard): string[] {
  return copy === undefined ? holdersOf(state, shard, isWhole) : []; // mutation: lost/taken-empty-granted
}

/** In their present start: what an earlier one had in memory is gone. */
function holdersOf({ members, copySets }: MetadataState, shard: number, wanted: (copy: Copy) => boolean): string[] {
  const copies = copySets[shard]?.copies ?? [];
  return copies.filter((c) => wanted(c) && members.get(c.member)?.incarnation === c.start).map(({ member }) => member);
}
