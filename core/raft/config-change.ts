/**
 * Changes of the configuration: from what is asked for to the configuration to append next.
 *
 * A configuration takes effect on a member when it is appended to that member's log (Raft paper, section 6), and is
 * given up again if the entry is truncated. At most one is uncommitted at a time, and a leader appends none before it
 * has committed an entry of its own term: without that rule two single changes of different terms can have majorities
 * that do not meet (the bug of 2015; test/sim/traces/single-change-2015.txt). The leader's side of these rules is in
 * membership.ts.
 *
 * A change that adds or removes at most one voter is appended as it is, because the old and the new majorities must
 * then meet. Any other goes through a joint configuration, which the leader leaves by itself once it is committed.
 */
import { isJoint, isMemberId, type Configuration } from './configuration.js';

export interface MemberChange {
  /** 'voter' and 'learner' also move a member that is there already from one to the other. */
  readonly kind: 'voter' | 'learner' | 'remove';
  readonly id: number;
}

export interface ConfigChange {
  /** Applied in order. A member may be named once. */
  readonly changes: readonly MemberChange[];
  /** Through a joint configuration even where one step would be safe. */
  readonly joint?: boolean;
}

export type ConfigChangeRefusal =
  /** The present configuration is joint, or its entry is not committed yet. */
  | 'change-in-progress'
  /** A member number that is none, or one that is named twice, or nothing is changed. */
  | 'change-invalid'
  /** Nobody would be left to vote. */
  | 'no-voters';

export type NextConfiguration =
  { readonly ok: true; readonly config: Configuration } | { readonly ok: false; readonly reason: ConfigChangeRefusal };

const ascending = (ids: Iterable<number>): number[] => [...ids].sort((a, b) => a - b);

/** The configuration that follows `config` when `change` is asked for. */
export function nextConfiguration(config: Configuration, change: ConfigChange): NextConfiguration {
  if (isJoint(config)) return { ok: false, reason: 'change-in-progress' };
  const voters = new Set(config.voters);
  const learners = new Set(config.learners);
  const named = new Set<number>();
  for (const { kind, id } of change.changes) {
    if (!isMemberId(id) || named.has(id)) return { ok: false, reason: 'change-invalid' };
    named.add(id);
    voters.delete(id);
    learners.delete(id);
    if (kind === 'voter') voters.add(id);
    else if (kind === 'learner') learners.add(id);
  }
  if (voters.size === 0) return { ok: false, reason: 'no-voters' };

  const votersMoved =
    config.voters.filter((id) => !voters.has(id)).length +
    [...voters].filter((id) => !config.voters.includes(id)).length;
  const learnersMoved = learners.size !== config.learners.length || config.learners.some((id) => !learners.has(id));
  if (votersMoved === 0 && !learnersMoved) return { ok: false, reason: 'change-invalid' };

  const joint = votersMoved > 1 || change.joint === true;
  return {
    ok: true,
    config: { voters: ascending(voters), outgoing: joint ? config.voters : [], learners: ascending(learners) },
  };
}

/** The configuration that a joint one is left for. */
export function leaveJoint(config: Configuration): Configuration {
  return { voters: config.voters, outgoing: [], learners: config.learners };
}
