/**
 * Commands that give shards to other owners. Both ways rest on leases of the old owner being over before the command
 * is in the log: taken shards by the leader's waiting (owner-leases.ts), released ones by the owner's own.
 */
import { COPIES_MAX, EPOCH_MAX } from './check-state.js';
import type { ShardCopy, ShardMove, ShardReleased, ShardsTaken } from './commands.js';
import { hasCopies, isFull, policyOf } from './copy-sets.js';
import { whyNoKeeper } from './placement.js';
import { changed, complete, reassigned, refused, type Reduced } from './reduced.js';
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
  if (present !== undefined && complete(present) && !isLost(state, c, present))
    return refused('ERR_BUSY', `shard ${c.shard} has been copied to ${present.to} and is about to change hands`);
  if (c.to === s.owner)
    return present === undefined
      ? refused('ERR_BUSY', `shard ${c.shard} is ${c.to}'s already`)
      : changed(state, { moves });
  if (present?.to === c.to) return refused('ERR_BUSY', `shard ${c.shard} is on its way to ${c.to} already`);
  // Nothing can have been granted on a shard that was never open. One that is closed because its owner has started
  // again may still be read under leases of the run before: its owner knows when they are over.
  if (s.incarnation === undefined && s.epoch === FIRST_EPOCH) return reassigned(state, new Map([[c.shard, c.to]]));
  const move: Move = { shard: c.shard, to: c.to, planned: state.mapEpoch };
  if (!hasCopies(state, c.shard)) return planned(state, [...moves, move]);
  return notHandedTo(state, c) ?? planned(state, [...moves, { ...move, handover: true }]);
}

function planned(state: MetadataState, moves: readonly Move[]): Reduced {
  return changed(state, { moves: [...moves].sort((a, b) => a.shard - b.shard) });
}

/** Why that member can have no copy to which the shard could be handed over. */
function notHandedTo(state: MetadataState, { shard, to }: ShardMove): Reduced | undefined {
  const copies = state.copySets?.[shard]?.copies ?? [];
  if (policyOf(state, shard).level === 'cache')
    return refused('ERR_BUSY', `shard ${shard} still has copies that are not wanted any more: try again`);
  if (state.servers.some((s) => s.id === to && s.draining)) return refused('ERR_BUSY', `${to} is being drained`);
  if (!copies.some((copy) => copy.member === to) && isFull(copies))
    return refused(
      'ERR_BUSY',
      `shard ${shard} has ${COPIES_MAX} copies, as many as there may be: name one of their servers`,
    );
  return undefined;
}

/**
 * The start of the member that has the copy is the one that is gone, or says so itself; and the shard is not its own
 * yet.
 */
function isLost({ shards, members }: MetadataState, { shard, to, lost }: ShardMove, present: Move): boolean {
  return (
    to === shards[shard]?.owner &&
    to !== present.to &&
    lost !== undefined &&
    members.get(present.to)?.incarnation === lost
  );
}

/** In order, and by this start of the member: what an earlier one had copied is gone with it. */
export function copyShard(state: MetadataState, c: ShardCopy): Reduced {
  const s = state.shards[c.shard];
  const present = state.moves.find((m) => m.shard === c.shard);
  if (s?.owner === undefined || s.epoch !== c.epoch || present?.to !== c.to || present.handover === true)
    return refused('ERR_BUSY', `shard ${c.shard} does not move to ${c.to} in epoch ${c.epoch}`);
  if (present.planned !== c.planned)
    return refused('ERR_BUSY', `the move of shard ${c.shard} to ${c.to} was called off and planned anew`);
  if (state.members.get(c.to)?.incarnation !== c.memberIncarnation)
    return refused('ERR_BUSY', `${c.to} has started again since`);
  if (present.phase !== (c.phase === 'last' ? undefined : 'last'))
    return refused(
      'ERR_BUSY',
      `the copy of shard ${c.shard} is at ${present.phase ?? 'its beginning'}, not before ${c.phase}`,
    );
  if (c.phase === 'copied' && present.copy !== c.copy) return refused('ERR_BUSY', `shard ${c.shard} is copied anew`);
  const move: Move = { ...present, phase: c.phase, worker: c.worker, copy: c.copy };
  return changed(state, { moves: state.moves.map((m) => (m === present ? move : m)) });
}

/** The new owner is to open the shard with its copy. */
export function releaseShard(state: MetadataState, c: ShardReleased): Reduced {
  const s = state.shards[c.shard];
  if (s?.owner !== c.owner || s.epoch !== c.epoch)
    return refused('ERR_NOT_OWNER', `${c.owner} does not own shard ${c.shard} in epoch ${c.epoch}`);
  if (state.members.get(c.owner)?.incarnation !== c.memberIncarnation)
    return refused('ERR_NOT_OWNER', `${c.owner} has started again since`);
  if (s.epoch >= EPOCH_MAX) return refused('ERR_INTERNAL', `shard ${c.shard} has used up its epochs`);
  const present = state.moves.find((m) => m.shard === c.shard);
  if (present?.phase !== 'copied' || present.copy !== c.copy)
    return refused('ERR_BUSY', `shard ${c.shard} is not to be given up for this copy (any more)`);
  const move: Move = { ...present, phase: 'released' };
  return changed(state, { moves: state.moves.map((m) => (m === present ? move : m)) });
}
