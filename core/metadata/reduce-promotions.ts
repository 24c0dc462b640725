/**
 * Who gets a shard with what: a copy becomes the shard's table and its member the owner, or the shard comes empty
 * (docs/copy-sets.md). Whichever change comes first raises the config, so no other one for the same config fits.
 */
import { EPOCH_MAX } from './check-state.js';
import type { MemberJoin, RecoveredCopy, TakenShard } from './commands.js';
import type {
  CopyMissing,
  PromotedShard,
  ShardHandover,
  ShardReset,
  ShardsGiven,
  ShardsPromoted,
} from './copy-commands.js';
import {
  barrierAt,
  beginAnew,
  emptied,
  hasAsMuch,
  inherited,
  isMarked,
  isRenounced,
  isWhole,
  mayCome,
  mayLead,
  policyOf,
  revised,
  waitsOnLoss,
  withSets,
} from './copy-sets.js';
import { whyNoKeeper } from './placement.js';
import { isOwner, late, named, type Named } from './reduce-copies.js';
import { changed, closed, reassigned, refused, type Reduced } from './reduced.js';
import type { Copy, CopySet, MetadataState, Shard } from './state.js';

/** What a start of a member has found on its disk, by shard. */
export type Recovered = ReadonlyMap<number, RecoveredCopy>;

/**
 * What is left of a member's copy when it has started again: what its disk had of it. One that did not come back whole
 * is gone where another may be there that has as much; else it is kept under its old start, so that nobody takes the shard for empty, and
 * a later start may have it. A mark stays, however often its member starts. What joins, and may lack what it has
 * acknowledged, begins anew: its owner may believe that it has that.
 */
function leftOf(
  state: MetadataState,
  { copies }: CopySet,
  shard: number,
  { id, incarnation }: Start,
  recovered: RecoveredCopy | undefined,
): Copy | undefined {
  const present = copies.find((c) => c.member === id);
  if (present?.id === undefined) return undefined;
  if (present.id === recovered?.copy) {
    const { worker, epoch, lsn } = recovered;
    // mutation: marked/mark-forgotten
    const early = recovered.early === true || isMarked(present) ? ({ early: true } as const) : undefined;
    if (early !== undefined && !isWhole(present)) return undefined; // mutation: marked/joining-goes-on
    return { ...present, start: incarnation, worker, recovered: { epoch, lsn, ...early } };
  }
  const policy = policyOf(state, shard);
  // mutation: marked/unmarked-forgotten
  const others = copies.some((c) => c !== present && mayCome(state, c) && hasAsMuch(c, present));
  // mutation: recovered/unread-forgotten
  return policy.level === 'durable' && waitsOnLoss(policy) && isWhole(present) && !others ? present : undefined;
}

type Start = Pick<MemberJoin, 'id' | 'incarnation'>;

/**
 * What a new start of a member leaves of a shard: what it had in memory is gone. A shard that it owned and of which there
 * are copies goes to nobody until one of those is promoted, and never back to it empty.
 */
export function restarted(
  state: MetadataState,
  s: Shard,
  start: Start,
  recovered: Recovered,
): { readonly shard: Shard; readonly set?: CopySet } {
  const { id } = start;
  const set = state.copySets[s.shard];
  const own = set === undefined ? undefined : leftOf(state, set, s.shard, start, recovered.get(s.shard));
  const left = (set?.copies ?? []).flatMap((c) => (c.member !== id ? [c] : own === undefined ? [] : [own]));
  if (s.owner === id) {
    if (set === undefined) return { shard: closed(s, id) };
    const policy = policyOf(state, s.shard);
    const isLost = set.copies.some(isWhole);
    // Nobody else has what it has, and nobody but its last start was relied on: it goes on where that has ended.
    if (own?.recovered !== undefined && isWhole(own) && left.filter(isWhole).length === 1)
      return {
        shard: { ...closed(s, id), worker: own.worker },
        set: revised(set, inherited({ ...set, copies: left }, own, undefined), policy),
      };
    const isKept = left.some(isWhole);
    const owner = isKept || (isLost && waitsOnLoss(policy)) ? undefined : id; // mutation: copies/restarted-owner-empty
    // What was opened empty and never served is opened anew.
    const others = left.filter((c) => c.member !== id);
    // Where the shard waits, a copy that joins may be all that is left of it: it keeps its id (shard-loss.ts).
    const kept = isKept ? left : owner === undefined ? others : undefined;
    const next = kept === undefined ? emptied({ ...set, copies: others }) : revised(set, kept, policy);
    return { shard: closed(s, owner), set: next };
  }
  if (set?.copies.every((c) => c.member !== id) !== false) return { shard: s };
  return { shard: s, set: revised(set, left, policyOf(state, s.shard)) };
}

/** The copy that may become the owner's: of a living start, and with all that was acknowledged and is anywhere. */
function heirOf(state: MetadataState, { set }: Named, member: string, id: string): Copy | undefined {
  const heir = set.copies.find((c) => c.id === id && c.member === member && isWhole(c));
  if (heir === undefined || !mayLead(set, heir)) return undefined;
  return heir.start === state.members.get(member)?.incarnation ? heir : undefined;
}

/**
 * To whom a shard of a dead owner goes: to the copy, undefined for empty, 'nobody' where the command does not fit. One of a
 * cache goes empty; so does one that has no copy with its values left, if its policy says so.
 */
export function takerOf(state: MetadataState, s: Shard, taken: TakenShard): Copy | undefined | 'nobody' {
  const at = named(state, { shard: taken.shard, epoch: taken.epoch, config: taken.config });
  if (at === undefined) return 'nobody';
  if (taken.copy !== undefined) return heirOf(state, at, taken.to, taken.copy) ?? 'nobody';
  const isLost = at.set.copies.some(isWhole);
  return isLost && waitsOnLoss(policyOf(state, s.shard)) ? 'nobody' : undefined; // mutation: copies/dead-owner-empty
}

export function giveShards(state: MetadataState, c: ShardsGiven): Reduced {
  const heirs = new Map<number, Copy>();
  for (const { to, copy, ...name } of c.shards) {
    const at = named(state, name);
    if (at === undefined || at.shard.owner !== undefined || at.shard.epoch >= EPOCH_MAX) continue;
    const heir = heirOf(state, at, to, copy);
    if (heir !== undefined) heirs.set(name.shard, heir);
  }
  if (heirs.size === 0) return refused('ERR_BUSY', 'none of these shards waits for such a copy any more');
  return reassigned(state, new Map([...heirs].map(([shard, { member }]) => [shard, member])), heirs);
}

/**
 * Open at once, in the worker that has the copy; the owner tells its segments as they are registered. Until then the
 * last number of buckets stands: a copy that begins meanwhile is to have as many.
 */
function openedBy(s: Shard, heir: Copy, incarnation: string): Shard {
  return { ...closed(s, heir.member), worker: heir.worker, buckets: s.buckets, incarnation };
}

function replaced(state: MetadataState, shards: readonly Shard[], sets: ReadonlyMap<number, CopySet>): Reduced {
  const byNumber = new Map(shards.map((s) => [s.shard, s]));
  return changed(state, {
    shards: state.shards.map((s) => byNumber.get(s.shard) ?? s),
    // Whoever planned a handover plans again.
    moves: state.moves.filter((m) => !byNumber.has(m.shard)),
    ...withSets(state, sets),
  });
}

export function promoteShards(state: MetadataState, c: ShardsPromoted): Reduced {
  if (state.members.get(c.id)?.incarnation !== c.memberIncarnation)
    return refused('ERR_NOT_OWNER', `${c.id} has started again since`);
  const shards: Shard[] = [];
  const sets = new Map<number, CopySet>();
  for (const promoted of c.shards) {
    const at = named(state, promoted);
    if (at === undefined || at.shard.owner === c.id || at.shard.epoch >= EPOCH_MAX || sets.has(promoted.shard))
      continue;
    const heir = heirOf(state, at, c.id, promoted.copy);
    if (heir?.state !== 'in-sync') continue; // mutation: copies/eligible-promoted
    shards.push(openedBy(at.shard, heir, promoted.incarnation));
    sets.set(promoted.shard, promotedSet(state, at, heir, promoted));
  }
  return sets.size === 0
    ? refused('ERR_BUSY', `no copy of ${c.id} is to be promoted (any more)`)
    : replaced(state, shards, sets);
}

function promotedSet(state: MetadataState, { shard, set }: Named, heir: Copy, promoted: PromotedShard): CopySet {
  // The new owner commits what came with the shard. The last one may have sent that, and lost it with its power.
  const copies = inherited(set, heir, shard.owner);
  return revised(set, copies, policyOf(state, shard.shard), barrierAt(set, shard.epoch, promoted.lsn));
}

export function handOver(state: MetadataState, c: ShardHandover): Reduced {
  const at = named(state, c);
  if (at === undefined || !isOwner(state, at.shard, c)) return late(c.shard);
  const heir = heirOf(state, at, c.to, c.copy);
  if (heir?.state !== 'in-sync' || c.to === c.owner)
    return refused('ERR_BUSY', `copy ${c.copy} of shard ${c.shard} is not in sync at ${c.to}`);
  if (at.shard.epoch >= EPOCH_MAX) return refused('ERR_INTERNAL', `shard ${c.shard} has used up its epochs`);
  const copies = inherited(at.set, heir, c.ends ? c.owner : undefined, c.ends);
  const opened = openedBy(at.shard, heir, c.incarnation);
  const set = { ...revised(at.set, copies, policyOf(state, c.shard)), handed: opened.epoch };
  return replaced(state, [opened], new Map([[c.shard, set]]));
}

export function resetShard(state: MetadataState, c: ShardReset): Reduced {
  const at = named(state, c);
  if (at === undefined) return late(c.shard);
  const { shard, set } = at;
  const why = whyNoKeeper(state, c.to);
  if (why !== undefined) return refused('ERR_CONFIG', why);
  const start = state.members.get(c.to)?.incarnation ?? '';
  if (c.from !== undefined && c.from.start !== start)
    return refused('ERR_BUSY', `${c.to} has started again since: it has no copy of shard ${c.shard}`);
  // mutation: lost/none-reset-to
  const isThere = set.copies.some((one) => one.member === c.to && one.id === c.from?.copy && !isRenounced(one));
  if (c.from !== undefined && !isThere)
    return refused('ERR_BUSY', `${c.to} has no such copy of shard ${c.shard} (any more)`);
  // mutation: copies/reset-while-it-may-return
  const other = set.copies.find((copy) => isWhole(copy) && !c.lost.includes(copy.id ?? ''));
  if (other !== undefined)
    return refused(
      'ERR_BUSY',
      `${other.member} has a copy of shard ${c.shard} that is ${other.state}: it may come back`,
    );
  if (shard.epoch >= EPOCH_MAX) return refused('ERR_INTERNAL', `shard ${c.shard} has used up its epochs`);
  const owners = new Map([[c.shard, c.to]]);
  if (c.from === undefined) return reassigned(state, owners);
  const copy: Copy = { member: c.to, start, id: c.from.copy, worker: c.from.worker, state: 'in-sync', rank: 0 };
  const others = beginAnew(set.copies.filter((one) => !isWhole(one) && one.member !== c.to));
  const sets = withSets(state, new Map([[c.shard, { config: set.config, copies: [...others, copy] }]]));
  return reassigned({ ...state, ...sets }, owners, new Map([[c.shard, copy]]));
}

/**
 * The copy that the shard came with is not there. Nobody relies on the shard by then: its owner before was waited for,
 * and this one has opened nothing. So it is vacant, as when that member had started again.
 */
export function missCopy(state: MetadataState, c: CopyMissing): Reduced {
  const at = named(state, c);
  if (at?.shard.owner !== c.member || at.shard.incarnation !== undefined) return late(c.shard);
  const { shard, set } = at;
  const copies = set.copies.filter((one) => one.member !== c.member || one.start !== c.start || one.id !== c.copy);
  if (copies.length === set.copies.length) return late(c.shard);
  if (shard.epoch >= EPOCH_MAX) return refused('ERR_INTERNAL', `shard ${c.shard} has used up its epochs`);
  const left = revised(set, copies, policyOf(state, c.shard));
  return replaced(state, [closed(shard, undefined)], new Map([[c.shard, left]]));
}
