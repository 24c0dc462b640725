/**
 * Commands that change who has a copy of a shard, but not its owner (docs/copy-sets.md). Only the owner may say that a
 * copy is in sync: it alone knows that it waits for that copy. Whoever takes copies away makes the set smaller, and a
 * smaller set is safe whatever its owner believes.
 */
import type {
  ByOwner,
  CopiesAdd,
  CopiesInSync,
  CopiesKeep,
  CopiesRemoved,
  CopyNamed,
  PolicySet,
  RemovedCopy,
  ShardName,
} from './copy-commands.js';
import {
  barrierAt,
  heirNamed,
  inSync,
  isFull,
  isMarked,
  isRenounced,
  isWhole,
  mayGo,
  policyOf,
  revised,
  waitsOnLoss,
  withSets,
} from './copy-sets.js';
import { whyNoKeeper } from './placement.js';
import { changed, refused, type Reduced } from './reduced.js';
import { failedJoins } from './join-rests.js';
import type { Copy, CopySet, FailedJoin, MetadataState, Policy, Shard } from './state.js';
import { tenantRange } from './tenants.js';

/** A shard and its copies. */
export interface Named {
  readonly shard: Shard;
  readonly set: CopySet;
}

/** The shard that a command names; undefined: the command was made for another epoch or config of it. */
export function named(state: MetadataState, c: ShardName): Named | undefined {
  const [shard, set] = [state.shards[c.shard], state.copySets[c.shard]];
  // mutation: copies/earlier-config
  return shard?.epoch === c.epoch && set?.config === c.config ? { shard, set } : undefined;
}

export function isOwner(state: MetadataState, s: Shard, by: ByOwner): boolean {
  return s.owner === by.owner && state.members.get(by.owner)?.incarnation === by.memberIncarnation;
}

export function late(shard: number): Reduced {
  return refused('ERR_BUSY', `shard ${shard} has another owner, epoch or config by now`);
}

/** Copy sets alone: clients see nothing of it, so the map's epoch stays. */
function revise(state: MetadataState, sets: ReadonlyMap<number, CopySet>): Reduced {
  return { ok: true, state: { ...state, ...withSets(state, sets) } };
}

export function setPolicy(state: MetadataState, c: PolicySet): Reduced {
  const { level, replicas, minInSync, onLoss, tenant } = c;
  const policy: Policy = { level, replicas, minInSync, onLoss };
  const { first, count } = tenantRange(state, tenant);
  if (count === 0) return refused('ERR_CONFIG', `there is no tenant ${tenant}`);
  if (minInSync < 1 || minInSync > replicas)
    return refused('ERR_CONFIG', `${minInSync} copies in sync of ${replicas}: from 1 to all of them`);
  if (level === 'cache' && (replicas !== 1 || waitsOnLoss({ ...policy, level: 'replicated' })))
    return refused('ERR_CONFIG', 'a cache has one copy, and is served empty when that is lost');
  // Servers that are silent come back with their disks: silence is no loss.
  // mutation: copies/durable-served-empty
  if (level === 'durable' && onLoss === 'empty')
    return refused(
      'ERR_CONFIG',
      'durable values wait for the servers that have them on disks, which come back: farkv shard reset gives up what is lost for good',
    );
  // Tables that are open are on disks from their first record on, or not at all.
  const isOpen = state.shards.slice(first, first + count).some((s) => s.epoch > 0);
  if (isOpen && (level === 'durable') !== (policyOf(state, first).level === 'durable'))
    return refused(
      'ERR_UNSUPPORTED',
      `what is ${level === 'durable' ? 'not durable' : 'durable'} stays so: make another cluster with --level ${level}, and bring the values there with farkv backup and farkv restore`,
    );
  const policies = Array.from({ length: Math.max(tenant + 1, state.policies.length) }, (_, i) =>
    i === tenant ? policy : (state.policies[i] ?? policyOf(state, tenantRange(state, i).first)),
  );
  const sets = state.copySets
    .slice(first, first + count)
    .map((set, i): [number, CopySet] => [first + i, revised(set, set.copies, policy)]);
  return { ok: true, state: { ...state, policies, ...withSets(state, new Map(sets)) } };
}

export function addCopies(state: MetadataState, c: CopiesAdd): Reduced {
  const sets = new Map<number, CopySet>();
  for (const added of c.copies) {
    const at = named(state, added);
    if (at === undefined || sets.has(added.shard)) continue;
    const { copies } = at.set;
    const { member, start, rank } = added;
    const policy = policyOf(state, added.shard);
    if (state.members.get(member)?.incarnation !== start || copies.some((copy) => copy.member === member)) continue;
    if (whyNoKeeper(state, member) !== undefined) continue;
    if (isFull(copies)) continue;
    sets.set(added.shard, revised(at.set, [...copies, { member, start, worker: 0, state: 'joining', rank }], policy));
  }
  return sets.size === 0 ? refused('ERR_BUSY', 'none of these copies is wanted any more') : revise(state, sets);
}

export function nameCopy(state: MetadataState, c: CopyNamed): Reduced {
  const at = named(state, c);
  if (at === undefined) return late(c.shard);
  const { copies } = at.set;
  const present = copies.find((copy) => copy.member === c.member && copy.start === c.start);
  if (present?.state !== 'joining') return refused('ERR_BUSY', `no copy of shard ${c.shard} joins at ${c.member}`);
  if (copies.some((copy) => copy.id === c.copy))
    return refused('ERR_CONFIG', `there is a copy ${c.copy} of shard ${c.shard} already`);
  const { renounced: _, ...kept } = present;
  const mark = c.renounced === undefined ? undefined : ({ renounced: true } as const);
  const copy: Copy = { ...kept, id: c.copy, worker: c.worker, ...mark };
  const renamed = copies.map((one) => (one === present ? copy : one));
  return revise(state, new Map([[c.shard, revised(at.set, renamed, policyOf(state, c.shard))]]));
}

export function copyInSync(state: MetadataState, c: CopiesInSync): Reduced {
  const at = named(state, c);
  if (at?.shard.incarnation === undefined || !isOwner(state, at.shard, c)) return late(c.shard);
  const { copies } = at.set;
  const present = copies.find((copy) => copy.member === c.member && copy.start === c.start);
  if (present === undefined) return refused('ERR_BUSY', `${c.member} is to have no copy of shard ${c.shard}`);
  if (present.state === 'in-sync') return refused('ERR_BUSY', `the copy of ${c.member} is in sync already`);
  // mutation: marked/marked-in-sync
  if (isMarked(present)) return refused('ERR_BUSY', `the copy of ${c.member} may lack what it has acknowledged`);
  const isTaken = copies.some((copy) => copy !== present && copy.id === c.copy);
  if (isTaken || (present.id !== undefined && present.id !== c.copy))
    return refused('ERR_CONFIG', `copy ${c.copy} of shard ${c.shard} is another one`);
  // mutation: lost/given-up-in-sync
  if (isRenounced(present)) return refused('ERR_BUSY', `${c.member} has given up its copy, and makes it anew`);
  const copy: Copy = { ...present, id: c.copy, worker: c.worker, state: 'in-sync' };
  const set = revised(
    at.set,
    copies.map((one) => (one === present ? copy : one)),
    policyOf(state, c.shard),
    barrierAt(at.set, c.epoch, c.lsn),
  );
  return revise(state, new Map([[c.shard, withFailed(set, otherFailed(state, c.shard, c.member))]]));
}

export function keepCopies(state: MetadataState, c: CopiesKeep): Reduced {
  const at = named(state, c);
  if (at === undefined || !isOwner(state, at.shard, c)) return late(c.shard);
  return revise(state, new Map([[c.shard, revised(at.set, at.set.copies, policyOf(state, c.shard))]]));
}

function otherFailed(state: MetadataState, shard: number, member: string): FailedJoin[] {
  return failedJoins(state, shard).filter((f) => f.member !== member);
}

function withFailed({ failed: _, ...set }: CopySet, failed: readonly FailedJoin[]): CopySet {
  return failed.length === 0 ? set : { ...set, failed };
}

/** The copy joined, and is gone: it is called off once more. */
function calledOff(state: MetadataState, set: CopySet, { shard, epoch, member, start }: RemovedCopy): CopySet {
  const times = failedJoins(state, shard).find((f) => f.member === member)?.times ?? 0;
  return withFailed(set, [...otherFailed(state, shard, member), { member, start, epoch, times: times + 1 }]);
}

export function removeCopies(state: MetadataState, c: CopiesRemoved): Reduced {
  const sets = new Map<number, CopySet>();
  const called = new Set<number>();
  for (const removed of c.copies) {
    const at = named(state, removed);
    if (at === undefined || sets.has(removed.shard)) continue;
    const set = c.by === undefined ? freed(state, at, removed) : without(state, at, removed, c.by);
    if (set === undefined) continue;
    const isOff = removed.failed === true && backup(at, removed)?.state === 'joining';
    sets.set(removed.shard, isOff ? calledOff(state, set, removed) : set);
    // The owner alone goes on with another attempt, of a copy that was late.
    if ((isOff || c.by === undefined) && heirNamed(state, removed.shard) === removed.member) called.add(removed.shard);
  }
  if (sets.size === 0) return refused('ERR_BUSY', 'none of these copies can be removed (any more)');
  if (called.size === 0) return revise(state, sets);
  // The move for which a copy was made ends with it: whoever planned it is told why, and plans again.
  const moves = state.moves.filter((m) => !called.has(m.shard));
  return changed(state, { moves, ...withSets(state, sets) });
}

function backup({ shard, set }: Named, { member, start }: RemovedCopy): Copy | undefined {
  return set.copies.find((copy) => copy.member === member && copy.start === start && member !== shard.owner);
}

/** By the leader, or the copy's own member. */
function freed(state: MetadataState, at: Named, removed: RemovedCopy): CopySet | undefined {
  const present = backup(at, removed);
  const policy = policyOf(state, removed.shard);
  const { copies } = at.set;
  if (present === undefined || !mayGo(at.shard, copies, present, policy, removed.damaged === true)) return undefined;
  return revised(
    at.set,
    copies.filter((copy) => copy !== present),
    policy,
  );
}

/**
 * A copy that was in sync may come back with its table: its owner keeps what it will lack. Where too few are left for new
 * changes, it has what is acknowledged while that lasts. A marked one begins anew: its owner's account of it is of a time
 * before its server ended.
 */
function stateAfter(copy: Copy, isWhole: boolean, tooFew: boolean): 'joining' | 'eligible' | 'gone' {
  if (copy.state !== 'in-sync' || isMarked(copy)) return 'gone'; // mutation: copies/joining-becomes-eligible
  return isWhole && tooFew ? 'eligible' : 'joining'; // mutation: copies/half-a-copy-eligible
}

function without(state: MetadataState, at: Named, removed: RemovedCopy, by: ByOwner): CopySet | undefined {
  const present = backup(at, removed);
  if (present === undefined || !isOwner(state, at.shard, by)) return undefined;
  const policy = policyOf(state, removed.shard);
  const others = at.set.copies.filter((copy) => copy !== present);
  const becomes =
    removed.surplus === true ? 'gone' : stateAfter(present, removed.whole, inSync(others) < policy.minInSync);
  // The owner's own copy of a new shard may not count yet.
  if (becomes !== 'eligible' && isWhole(present) && !others.some(isWhole)) return undefined;
  return revised(
    at.set,
    becomes === 'gone' ? others : at.set.copies.map((copy) => (copy === present ? { ...copy, state: becomes } : copy)),
    policy,
    barrierAt(at.set, removed.epoch, removed.lsn),
  );
}
