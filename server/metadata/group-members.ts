/** Which members the Raft group shall have, by what the metadata says. Pure; the leader asks for it (leader-duties.ts). */
import type { MetadataState } from '../../core/metadata/state.js';
import type { MemberChange, RaftStatus } from '../../core/raft/index.js';

/** A learner that lacks no more entries than this may vote. */
const CAUGHT_UP = 64;

/**
 * Members whose logs are about as long as the leader's, which is among them. A member in `replicate` has accepted an
 * append in this term. Until then the leader counts it as active and knows nothing of its log (core/raft): while the
 * log is short, a learner that never answered would be as near as all others.
 */
export function nearTo({ progress, lastIndex, id }: Pick<RaftStatus, 'progress' | 'lastIndex' | 'id'>): Set<number> {
  const answered = progress.filter((p) => p.active && p.state === 'replicate'); // mutation: metadata/vote-of-the-unheard
  return new Set(answered.filter((p) => p.match + CAUGHT_UP >= lastIndex).map((p) => p.id)).add(id);
}

/** The voter that leads soonest: of those that can be reached the one with the longest log. */
export function heirOf({ id, config, progress }: RaftStatus, connected: readonly unknown[]): number | undefined {
  return progress
    .filter((p) => p.id !== id && config.voters.includes(p.id) && connected.includes(p.id))
    .sort((a, b) => b.match - a.match)[0]?.id;
}

/**
 * Changes that give `config` the voters and learners of the metadata. Votes move together, and only while most of those
 * who will vote are in `near`: they may have died since the metadata gave them the votes, and a joint configuration that
 * needs the votes of dead members is never left again. A voter that has left the cluster may go before the rest.
 */
export function changesTo(
  state: MetadataState,
  config: RaftStatus['config'],
  near: ReadonlySet<number>,
): MemberChange[] {
  if (config.outgoing.length > 0) return [];
  const wanted = new Map(
    state.servers
      .filter((s) => s.raftId !== 0)
      .map((s) => [s.raftId, state.voters.includes(s.id) ? ('voter' as const) : ('learner' as const)]),
  );
  // A server that comes is a learner first: an empty voter could stop the group.
  const known = (id: number): boolean => config.voters.includes(id) || config.learners.includes(id);
  const come = [...wanted.keys()].filter((id) => !known(id)).map((id) => ({ kind: 'learner', id }) as const);
  const move = [...wanted]
    .filter(([id, kind]) => known(id) && !(kind === 'voter' ? config.voters : config.learners).includes(id))
    .map(([id, kind]) => ({ kind, id }));
  const leave = (of: readonly number[]): MemberChange[] =>
    of.filter((id) => !wanted.has(id)).map((id) => ({ kind: 'remove', id }));
  const goes = [...leave(config.voters), ...leave(config.learners)];
  for (const changes of [[...move, ...goes], goes])
    if (mostAreNear(config.voters, changes, near)) return [...come, ...changes]; // mutation: metadata/dead-learner-votes
  return [...come, ...leave(config.learners)];
}

/** Of those who vote after the changes. */
function mostAreNear(before: readonly number[], changes: readonly MemberChange[], near: ReadonlySet<number>): boolean {
  const voters = new Set(before);
  for (const { kind, id } of changes) {
    if (kind === 'voter') voters.add(id);
    else voters.delete(id);
  }
  return 2 * [...voters].filter((id) => near.has(id)).length > voters.size;
}
