/**
 * Copy sets: what they say, and what becomes of them when something else changes. docs/copy-sets.md has the rules.
 *
 * Invariant: a copy in sync, and an eligible one, of a living start has every change that was acknowledged or READ,
 * unless it is marked: then a change is lost only if every whole copy is, and none has it on its disk.
 * Whoever is made an owner with a copy is given one of those (reduce-promotions.ts).
 */
import { COPIES_MAX } from './check-state.js';
import type { Barrier, Copy, CopySet, MetadataState, Policy, Shard } from './state.js';
import { tenantRanges } from './tenants.js';

/** Of tenants for which none was set. */
export const CACHE: Policy = { level: 'cache', replicas: 1, minInSync: 1, onLoss: 'empty' };

/** Of a new cluster of three servers or more, unless its operator says otherwise. */
export const REPLICATED: Policy = { level: 'replicated', replicas: 2, minInSync: 1, onLoss: 'wait' };

/** Of a new cluster whose operator wants that, with so many servers. */
export function durable(servers: number): Policy {
  return { level: 'durable', replicas: Math.min(2, servers), minInSync: 1, onLoss: 'wait' };
}

type Policies = Pick<MetadataState, 'policies' | 'copySets' | 'shards' | 'tenants'>;

export function policyOf(state: Policies, shard: number): Policy {
  const tenant = tenantRanges(state).findIndex(({ first, count }) => shard >= first && shard < first + count);
  return state.policies[tenant] ?? CACHE;
}

/** Its values wait for an operator when no copy is left. */
export function waitsOnLoss({ level, onLoss }: Policy): boolean {
  return level !== 'cache' && onLoss === 'wait';
}

/** The command after which so many servers are enough for a tenant's copies; `tenant`: undefined is the default one. */
export function fewerCopies(tenant: string | undefined, servers: number, policy?: Pick<Policy, 'minInSync'>): string {
  const least = (policy?.minInSync ?? 1) > servers ? ` --min-in-sync ${servers}` : '';
  return `farkv replication set${tenant === undefined ? '' : ` --tenant ${tenant}`} --replicas ${servers}${least}`;
}

/** It has all that was acknowledged: it may become the owner's. */
export function isWhole(copy: Copy): boolean {
  return copy.state !== 'joining';
}

/** It joins, and no table has its id: there is nothing of it that could be waited for or used. */
export function isRenounced(copy: Copy): boolean {
  return copy.renounced === true;
}

/** It is whole, and with a start of its member that may be there, or may come back with it. */
export function mayCome({ members }: Pick<MetadataState, 'members'>, copy: Copy): boolean {
  return isWhole(copy) && members.get(copy.member)?.incarnation === copy.start;
}

/** Its server ended though its disk did not have all that it had acknowledged, perhaps: what it has is not relied on. */
export function isMarked(copy: Copy): boolean {
  return copy.recovered?.early === true;
}

/**
 * Whether a whole copy may become the owner's. A marked one may not while another one has no mark, whether that can be
 * reached or not: it may have what this one lacks. Where all are marked the longest log leads, also if that takes long.
 */
export function mayLead({ copies }: Pick<CopySet, 'copies'>, heir: Copy): boolean {
  const has = heir.recovered;
  if (has === undefined || !isMarked(heir)) return true;
  // mutation: marked/shorter-leads
  return copies.every((c) => !isWhole(c) || (isMarked(c) && c.recovered !== undefined && !isLonger(c.recovered, has)));
}

/** Of two logs of marked copies the longer one has all that is in the other. */
function isLonger({ epoch, lsn }: Barrier, has: Barrier): boolean {
  return epoch > has.epoch || (epoch === has.epoch && lsn > has.lsn);
}

/** Whether a copy has all that another one may come back with. */
export function hasAsMuch(copy: Copy, other: Copy): boolean {
  if (!isMarked(copy) || copy.recovered === undefined) return true;
  // mutation: marked/longest-forgotten
  return isMarked(other) && other.recovered !== undefined && !isLonger(other.recovered, copy.recovered);
}

/**
 * What stays of a copy when another one leads: a marked one only as long as that. With less, its log would have the new
 * epoch without records of before, and count as the longer one after the next loss of power. Where a marked one leads,
 * what was not in sync may have more, and committed.
 */
function fits(copy: Copy, heir: Copy): boolean {
  const [has, leads] = [copy.recovered, heir.recovered];
  if (isMarked(copy)) return isMarked(heir) && has?.epoch === leads?.epoch && has?.lsn === leads?.lsn;
  return isWhole(copy) || !isMarked(heir);
}

/**
 * Whether a copy may go though it is not its owner who says so: who does not know what it has leaves as many in sync as
 * new changes need. Of a durable shard the owner alone knows what its own disk has, and says so (R-removal). A damaged
 * one is worth less than none where there is another.
 */
export function mayGo(
  { owner }: Pick<Shard, 'owner'>,
  copies: readonly Copy[],
  copy: Copy,
  { level, minInSync }: Policy,
  isDamaged: boolean,
): boolean {
  const others = copies.filter((one) => one !== copy);
  if (copy.state === 'joining') return true;
  // mutation: copies/last-copy-damaged
  if (isDamaged) return others.some((one) => isWhole(one) && (isMarked(copy) || !isMarked(one)));
  // mutation: marked/removed-by-another
  return level !== 'durable' && copy.state === 'in-sync' && owner !== undefined && inSync(others) >= minInSync;
}

/** No more can join. */
export function isFull(copies: readonly Copy[]): boolean {
  return copies.filter((copy) => copy.state !== 'eligible').length >= COPIES_MAX;
}

/** The member that the shard is to be handed over to. */
export function heirNamed({ moves }: Pick<MetadataState, 'moves'>, shard: number): string | undefined {
  return moves.find((m) => m.shard === shard)?.to;
}

/**
 * A copy of the shard is still to be made at this member: one is missing, where those of drained servers do not count,
 * since others are to take their place; or the shard is to be handed over to it.
 */
export function isToBeMade(state: MetadataState, shard: number, member: string): boolean {
  const draining = new Set(state.servers.filter((s) => s.draining).map(({ id }) => id));
  if (draining.has(member)) return false;
  const staying = (state.copySets[shard]?.copies ?? []).filter((c) => !draining.has(c.member));
  return heirNamed(state, shard) === member || inSync(staying) < policyOf(state, shard).replicas;
}

/** Those that count for new changes: a marked one is about to go. */
export function inSync(copies: readonly Copy[]): number {
  return copies.filter((c) => c.state === 'in-sync' && !isMarked(c)).length;
}

/**
 * The next config. Eligible copies are forgotten when enough are in sync, by the policy of that config: changes are taken
 * without them again.
 */
export function revised(set: CopySet, copies: readonly Copy[], { minInSync }: Policy, barrier = set.barrier): CopySet {
  const enough = inSync(copies) >= minInSync;
  return {
    config: set.config + 1, // mutation: copies/same-config
    ...(barrier === undefined ? {} : { barrier }),
    ...(set.handed === undefined ? {} : { handed: set.handed }),
    ...(set.failed === undefined ? {} : { failed: set.failed }),
    copies: enough ? copies.filter((c) => c.state !== 'eligible') : copies,
  };
}

/** The state's copy sets with these in the place of others. */
export function withSets(
  { copySets }: Pick<MetadataState, 'copySets'>,
  sets: ReadonlyMap<number, CopySet>,
): Partial<Pick<MetadataState, 'copySets'>> {
  if (sets.size === 0) return {};
  return { copySets: copySets.map((set, shard) => sets.get(shard) ?? set) };
}

/** What an owner reports as committed. It never falls: what is committed is dropped by nobody. */
export function barrierAt(set: CopySet, epoch: number, lsn: number): Barrier {
  return { epoch, lsn: Math.max(lsn, set.barrier?.lsn ?? 0) };
}

/** All that was in the shard is given up; what comes has no copy until it is opened. */
export function emptied(set: CopySet): CopySet {
  return { config: set.config + 1, copies: beginAnew(set.copies.filter((c) => !isWhole(c))) };
}

/** What they have is not of the contents that come: without its id a copy cannot go on. */
export function beginAnew(joining: readonly Copy[]): Copy[] {
  return joining.map(({ id: _id, renounced: _renounced, ...copy }) => copy); // mutation: copies/joining-keeps-its-id
}

/**
 * The copies when `heir` has become the owner's. Other eligible copies are forgotten: the new owner commits what came
 * with the shard with however many copies there are, and they may lack some of that. The last owner, if it does not end,
 * may go on with its table as a copy that joins.
 */
export function inherited(set: CopySet, heir: Copy, lastOwner: string | undefined, ends = false): Copy[] {
  return set.copies.flatMap((copy): Copy[] => {
    const { recovered: _, ...c } = copy;
    if (c.id === heir.id) return [{ ...c, state: 'in-sync' }];
    if (c.state === 'eligible' || !fits(copy, heir)) return [];
    if (c.member !== lastOwner) return [c];
    return ends ? [] : [{ ...c, state: 'joining' }];
  });
}

/**
 * The copies of a shard whose owner has opened it: with a copy that it was promoted for, or a new table, which is named
 * as the opening. While the values of a shard would be waited for, a new table joins until its owner is about to serve
 * it: before that nobody has to wait for it.
 */
export function opened(state: MetadataState, s: Shard, owner: string, incarnation: string): CopySet | undefined {
  const set = state.copySets[s.shard];
  if (set === undefined || (s.owner === owner && set.copies.some((c) => c.member === owner && isWhole(c))))
    return undefined;
  const others = set.copies.filter((c) => c.member !== owner && !isWhole(c));
  const policy = policyOf(state, s.shard);
  const own = ownCopy(state, owner, s.worker, incarnation);
  const isNew = waitsOnLoss(policy) && (policy.replicas > 1 || policy.level === 'durable');
  return revised(set, [...others, isNew ? { ...own, state: 'joining' } : own], policy);
}

function ownCopy(state: MetadataState, member: string, worker: number, id: string): Copy {
  const start = state.members.get(member)?.incarnation ?? '';
  return { member, start, id, worker, state: 'in-sync', rank: 0 };
}

/** A shard without an owner that assign-shards may give to anybody: nothing was ever in it, or what was is given up. */
export function isUnassigned(state: MetadataState, s: Shard): boolean {
  if (s.owner !== undefined) return false;
  const set = state.copySets[s.shard];
  if (set === undefined || s.epoch === 0) return true;
  return !set.copies.some(isWhole) && !waitsOnLoss(policyOf(state, s.shard)); // mutation: copies/waiting-assigned-empty
}

/**
 * Nobody has what was in it any more: every start that had a copy has ended, and did not come back with it. It waits for
 * an operator.
 */
export function isGone(state: MetadataState, s: Shard): boolean {
  const set = state.copySets[s.shard];
  const waits = s.owner === undefined && s.epoch > 0 && waitsOnLoss(policyOf(state, s.shard));
  return waits && set !== undefined && !set.copies.some((copy) => mayCome(state, copy));
}
