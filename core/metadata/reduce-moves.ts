/**
 * Commands of moves, and those that take shards from dead owners: these rest on the old owner's lease being over before
 * the command is in the log, by the leader's waiting (owner-leases.ts).
 */
import { COPIES_MAX, EPOCH_MAX } from './check-state.js';
import type { ShardMove, ShardsTaken } from './commands.js';
import { isFull } from './copy-sets.js';
import { whyNoKeeper } from './placement.js';
import { changed, reassigned, refused, type Reduced } from './reduced.js';
import { takerOf } from './reduce-promotions.js';
import type { Copy, MetadataState, Move } from './state.js';

/** Of a shard's first owner. */
const FIRST_EPOCH = 1;

export function takeShards(state: MetadataState, c: ShardsTaken): Reduced {
  if (state.members.get(c.id)?.incarnation !== c.incarnation)
    return refused('ERR_BUSY', `${c.id} has started again since`);
  const owners = new Map<number, string>();
  const heirs = new Map<number, Copy>();
  for (const taken of c.shards) {
    const { shard, epoch, to } = taken;
    const s = state.shards[shard];
    if (
      s?.owner !== c.id ||
      s.epoch !== epoch ||
      epoch >= EPOCH_MAX ||
      whyNoKeeper(state, to) !== undefined ||
      to === c.id
    )
      continue;
    const taker = takerOf(state, s, taken);
    if (taker === 'nobody') continue;
    owners.set(shard, to);
    if (taker !== undefined) heirs.set(shard, taker);
  }
  return owners.size === 0
    ? refused('ERR_BUSY', `${c.id} owns none of these shards any more`)
    : reassigned(state, owners, heirs);
}

export function moveShard(state: MetadataState, c: ShardMove): Reduced {
  const s = state.shards[c.shard];
  if (s?.owner === undefined)
    return refused('ERR_CONFIG', s === undefined ? `there is no shard ${c.shard}` : `shard ${c.shard} has no owner`);
  if (s.epoch !== c.epoch) return refused('ERR_BUSY', `shard ${c.shard} is in epoch ${s.epoch}, not ${c.epoch}`);
  const why = whyNoKeeper(state, c.to);
  if (why !== undefined) return refused('ERR_CONFIG', why);
  if (s.epoch >= EPOCH_MAX) return refused('ERR_INTERNAL', `shard ${c.shard} has used up its epochs`);
  const present = state.moves.find((m) => m.shard === c.shard);
  const moves = state.moves.filter((m) => m !== present);
  if (c.planned !== undefined && c.planned !== present?.planned)
    return refused('ERR_BUSY', `the move of shard ${c.shard} that was to be called off is over, or is another now`);
  if (c.to === s.owner)
    return present === undefined
      ? refused('ERR_BUSY', `shard ${c.shard} is ${c.to}'s already`)
      : changed(state, { moves });
  if (present?.to === c.to) return refused('ERR_BUSY', `shard ${c.shard} is on its way to ${c.to} already`);
  // Nothing can have been granted on a shard that was never open. One that is closed because its owner has started
  // again may still be read under leases of the run before: its owner knows when they are over.
  if (s.incarnation === undefined && s.epoch === FIRST_EPOCH) return reassigned(state, new Map([[c.shard, c.to]]));
  const move: Move = { shard: c.shard, to: c.to, planned: state.mapEpoch };
  return notHandedTo(state, c) ?? changed(state, { moves: [...moves, move].sort((a, b) => a.shard - b.shard) });
}

/** Why that member can have no copy to which the shard could be handed over. */
function notHandedTo(state: MetadataState, { shard, to }: ShardMove): Reduced | undefined {
  const copies = state.copySets[shard]?.copies ?? [];
  if (state.servers.some((s) => s.id === to && s.draining)) return refused('ERR_BUSY', `${to} is being drained`);
  if (!copies.some((copy) => copy.member === to) && isFull(copies))
    return refused(
      'ERR_BUSY',
      `shard ${shard} has ${COPIES_MAX} copies, as many as there may be: name one of their servers`,
    );
  return undefined;
}
