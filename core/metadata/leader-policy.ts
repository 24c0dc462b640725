/**
 * What the metadata's leader does of itself: pure decisions from the metadata, the leases it has
 * granted and the time. Who asks, and how the result is proposed, is the caller's (server/metadata/leader-duties.ts,
 * test/sim).
 */
import type { AssignShards, Command, RaiseFormat, ShardMove, ShardsTaken, TakenShard } from './commands.js';
import { Absences, copyLooksMs, nextCopies, taker } from './copy-policy.js';
import { alreadyWithheld } from './counted-dead.js';
import { isUnassigned } from './copy-sets.js';
import type { GrantedLeases } from './owner-leases.js';
import { keepersOf } from './placement.js';
import { placeOn } from './plan.js';
import type { Member, MetadataState } from './state.js';
import { nextVoters, replaced, replacement, replacementLookMs } from './voter-policy.js';

/** Members that may be given shards now. */
export function usable(state: MetadataState, leases: GrantedLeases, nowMs: number): Member[] {
  const draining = new Set(state.servers.filter((s) => s.draining).map((s) => s.id));
  return keepersOf(state)
    .filter((m) => leases.alive(m.id, nowMs) && !draining.has(m.id))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The shards of a dead owner that somebody else gets now. Undefined also while nobody is there to take them: their owner may come back. */
export function takeFromDead(
  state: MetadataState,
  leases: GrantedLeases,
  nowMs: number,
  absences = new Absences(),
): ShardsTaken | undefined {
  for (const member of state.members.values()) {
    const own = state.shards.filter((s) => s.owner === member.id);
    if (own.length === 0 || !leases.dead(member.id, nowMs)) continue;
    const takers = new Map(own.map((s) => [s.shard, taker(state, s.shard, leases, nowMs, absences)]));
    const alive = usable(state, leases, nowMs);
    // Rather a member that is to go than none.
    const others = alive.length > 0 ? alive : keepersOf(state).filter((m) => leases.alive(m.id, nowMs));
    const placed = placeOn(
      state,
      own.map((s) => s.shard).filter((shard) => takers.get(shard) === 'empty'),
      others,
    );
    const shards = own.flatMap((s): TakenShard[] => {
      const heir = takers.get(s.shard);
      const name = { shard: s.shard, epoch: s.epoch, config: state.copySets[s.shard]?.config ?? 0 };
      const to = placed.get(s.shard);
      if (to !== undefined) return [{ ...name, to }];
      return heir === undefined || heir === 'empty' ? [] : [{ ...name, to: heir.member, copy: heir.id }];
    });
    if (shards.length === 0) continue;
    const command: ShardsTaken = { t: 'shards-taken', id: member.id, incarnation: member.incarnation, shards };
    if (alreadyWithheld(state, command, leases) === undefined) return command;
  }
  return undefined;
}

/**
 * Owners for the shards that have none: those that had one only when nobody can rely on it any more. What becomes vacant
 * before this takes effect changes the map, and the command is refused.
 */
export function nextOwners(
  state: MetadataState,
  leases: GrantedLeases | undefined,
  nowMs: number,
): AssignShards | undefined {
  const { shards, mapEpoch } = state;
  if (keepersOf(state).length === 0 || !shards.some((s) => isUnassigned(state, s))) return undefined;
  const isVacant = shards.some((s) => s.owner === undefined && s.epoch > 0);
  // mutation: copies/given-while-relied-on
  if (isVacant && (leases === undefined || nowMs < leases.earlierStartsOverAt())) return undefined;
  return { t: 'assign-shards', mapEpoch };
}

/**
 * When takeFromDead or lostMove may have a new answer though nothing else has happened, once a quorum has confirmed the
 * leader then; undefined: not by time alone. Always later than now.
 */
export function nextLookMs(
  state: MetadataState,
  leases: GrantedLeases,
  nowMs: number,
  absences = new Absences(),
  replaceMs = Infinity,
): number | undefined {
  const owners = new Set<string>();
  for (const s of state.shards) if (s.owner !== undefined) owners.add(s.owner);
  for (const m of state.moves) owners.add(m.to);
  if (replaceMs < Infinity) for (const voter of state.voters) owners.add(voter);
  for (const { copies } of state.copySets) for (const c of copies) owners.add(c.member);
  const ends = [...owners].flatMap((id) => leases.lookAt(id, nowMs) ?? []);
  ends.push(...copyLooksMs(state, leases, nowMs, absences));
  const replaceAt = replacementLookMs(state, absences, nowMs, replaceMs);
  if (replaceAt !== undefined) ends.push(replaceAt);
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/**
 * The next move to be called off: the server that the shard was to go to is gone, or is to have no shards any more. (Shards
 * of a server that is drained need no move: copies are made elsewhere, copy-policy.ts, and their owner hands over.)
 */
export function lostMove(state: MetadataState, leases: GrantedLeases, nowMs: number): ShardMove | undefined {
  const draining = new Set(state.servers.flatMap((s) => (s.draining ? [s.id] : [])));
  for (const { shard, to, planned } of state.moves) {
    const s = state.shards[shard];
    if (s?.owner === undefined || s.owner === to || (!leases.dead(to, nowMs) && !draining.has(to))) continue;
    return { t: 'shard-move', shard, epoch: s.epoch, to: s.owner, planned };
  }
  return undefined;
}

export interface RaiseOptions {
  readonly known: number;
  /** The latest format that a server reported to know, in this term. */
  readonly knownBy: (id: string) => number;
}

/** When every server has reported that it knows the next format. */
export function nextFormat(state: MetadataState, { known, knownBy }: RaiseOptions): RaiseFormat | undefined {
  const next = state.formatVersion + 1;
  const servers = state.servers.filter((s) => s.raftId !== 0);
  if (
    state.clusterId === '' ||
    next > known ||
    !servers.every(({ id }) => state.members.has(id) && knownBy(id) >= next)
  )
    return undefined;
  return { t: 'raise-format', format: next };
}

/** In the order of their urgency. */
export function dueCommand(
  state: MetadataState,
  leases: GrantedLeases,
  nowMs: number,
  caughtUp: ReadonlySet<string>,
  raise: RaiseOptions,
  absences = new Absences(),
  replaceMs = Infinity,
): Command | undefined {
  absences.observe(state, leases, nowMs);
  const replaces = replacement({ state, leases, absences, caughtUp, nowMs, replaceMs });
  return (
    takeFromDead(state, leases, nowMs, absences) ??
    nextCopies(state, leases, nowMs, absences) ??
    nextFormat(state, raise) ??
    lostMove(state, leases, nowMs) ??
    nextVoters(state, caughtUp) ??
    (replaces === undefined ? undefined : replaced(state, replaces))
  );
}
