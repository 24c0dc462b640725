/**
 * Who belongs to the group, seen from the leader: proposing changes, leaving joint configurations, stepping down when
 * removed, handing leadership over. The values and the rule for the next configuration are in config-change.ts.
 */
import { nextConfiguration, leaveJoint, type ConfigChange, type ConfigChangeRefusal } from './config-change.js';
import { encodeConfiguration, isJoint, isVoter, type Configuration } from './configuration.js';
import { EntryType, type Entry } from './entry.js';
import type { Raft } from './raft.js';
import { answerReads, committedInTerm } from './reads.js';
import { appendEntry, broadcastAppend, sendAppend, sendTimeoutNow } from './sending.js';

export type ProposalRefusal = 'not-leader' | 'transferring' | 'busy' | 'log-full' | 'storage-full';
export type Proposed<Refusal> =
  | { readonly ok: true; readonly index: number; readonly term: number }
  | { readonly ok: false; readonly reason: Refusal };

/** Why this member takes no proposal now, if so. */
export function proposalRefusal(raft: Raft): ProposalRefusal | undefined {
  if (raft.role !== 'leader') return 'not-leader';
  if (raft.transferee !== 0) return 'transferring';
  if (raft.storageFull) return 'storage-full';
  if (raft.log.bytes >= raft.options.maxLogBytes) return 'log-full';
  return undefined;
}

/**
 * 'term-not-committed': the leader has not committed an entry of its own term yet; ask again in a moment. Without this
 * rule a leader could build on a configuration that another leader is about to replace (the bug of 2015).
 */
export type ChangeRefusal = ProposalRefusal | ConfigChangeRefusal | 'term-not-committed';

export function proposeChange(raft: Raft, change: ConfigChange): Proposed<ChangeRefusal> {
  const refusal = proposalRefusal(raft);
  if (refusal !== undefined) return { ok: false, reason: refusal };
  // mutation: raft/config-before-own-term
  if (!committedInTerm(raft)) return { ok: false, reason: 'term-not-committed' };
  // mutation: raft/two-config-changes
  if (raft.configIndex > raft.log.commit) return { ok: false, reason: 'change-in-progress' };
  const next = nextConfiguration(raft.config, change);
  if (!next.ok) return next;
  const entry = appendConfiguration(raft, next.config);
  return { ok: true, index: entry.index, term: entry.term };
}

function appendConfiguration(raft: Raft, config: Configuration): Entry {
  const entry = appendEntry(raft, EntryType.Config, encodeConfiguration(config));
  raft.followConfig();
  broadcastAppend(raft);
  // Without a member that was waited for, those that answered may be enough.
  answerReads(raft);
  return entry;
}

/** The leader's commit index rose: tell the followers, and take the step that a committed configuration asks for. */
export function afterCommit(raft: Raft): void {
  broadcastAppend(raft);
  if (raft.configIndex > raft.log.commit || !committedInTerm(raft)) return;
  if (isJoint(raft.config)) {
    appendConfiguration(raft, leaveJoint(raft.config));
  } else if (!isVoter(raft.config, raft.id)) {
    stepDownRemoved(raft);
  }
}

/**
 * A leader that is no voter leads until the configuration without it is committed, and no longer. It asks the member
 * that is furthest on to campaign, so that the group does not wait for an election time-out.
 */
function stepDownRemoved(raft: Raft): void {
  let heir = 0;
  for (const id of raft.config.voters) {
    if ((raft.progress.get(id)?.match ?? 0) > (raft.progress.get(heir)?.match ?? -1)) heir = id;
  }
  if (heir !== 0) sendTimeoutNow(raft, heir);
  raft.becomeFollower(raft.term, 0);
}

export type TransferRefusal = 'not-leader' | 'not-a-voter';

/**
 * Hands leadership to a voter once its log is complete. Proposals are refused meanwhile; after an election time-out the
 * leader gives up and goes on. `undefined`: begun (or nothing to do, when it is the leader itself).
 */
export function transferLeadership(raft: Raft, to: number): TransferRefusal | undefined {
  if (raft.role !== 'leader') return 'not-leader';
  if (!raft.config.voters.includes(to)) return 'not-a-voter';
  if (to === raft.id) {
    raft.transferee = 0;
    return undefined;
  }
  raft.transferee = to;
  raft.electionElapsed = 0;
  if (raft.progress.get(to)?.match === raft.log.lastIndex) sendTimeoutNow(raft, to);
  else sendAppend(raft, to, true);
  return undefined;
}
