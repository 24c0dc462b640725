/**
 * Elections: ticking towards one, asking for votes, granting them, winning and losing.
 *
 * Pre-vote and check-quorum are always on, together with the rule that makes both work: a member that heard a leader
 * within the minimum election time-out ignores requests for votes, whatever their term. So a member that was cut off,
 * or removed and not told, cannot depose a leader that a quorum hears; and a leader that no quorum hears steps down
 * within one time-out.
 */
import { isVoter, membersOf } from './configuration.js';
import type { TimeoutNow, VoteReply, VoteRequest } from './messages.js';
import { quorumValue, voteResult } from './quorum.js';
import type { Raft } from './raft.js';
import { tickReads } from './reads.js';
import { broadcastHeartbeat, lead } from './sending.js';

/** Ticks between the campaigns of two voters that heard of the leader's end at the same time. */
const RANK_TICKS = 2;

export function tick(raft: Raft): void {
  raft.electionElapsed++;
  if (raft.role === 'leader') tickLeader(raft);
  else if (isDue(raft) && raft.promotable) campaign(raft, 'pre-vote', false);
  tickReads(raft);
}

function isDue(raft: Raft): boolean {
  const isHinted = raft.campaignIn > 0 && --raft.campaignIn === 0 && raft.role !== 'candidate';
  return isHinted || raft.electionElapsed >= raft.electionTimeout;
}

/**
 * A hint that the member `id` has ended. Whoever followed it forgets it, so that others get this member's vote, and asks
 * for pre-votes: the first of the voters at once, each other one later than the one before it, so that votes do not
 * split. A later hint of the same end asks again: others may not have known it yet. If the hint is false, the members
 * that still hear the leader refuse, and the leader's next message ends the matter.
 */
export function leaderGone(raft: Raft, id: number): void {
  if (id === 0 || id === raft.id || raft.role === 'leader') return;
  if (raft.leader === id) {
    raft.leader = 0;
    raft.goneLeader = id;
    const before = raft.config.voters.filter((voter) => voter !== id && voter < raft.id).length;
    raft.campaignIn = before * RANK_TICKS;
  }
  const isFree = raft.goneLeader === id && raft.campaignIn === 0 && raft.role !== 'candidate';
  if (isFree && raft.promotable) campaign(raft, 'pre-vote', false);
}

function tickLeader(raft: Raft): void {
  if (raft.electionElapsed >= raft.options.electionTicks) {
    raft.electionElapsed = 0;
    raft.transferee = 0;
    if (!quorumIsActive(raft)) {
      raft.becomeFollower(raft.term, 0);
      return;
    }
  }
  raft.heartbeatElapsed++;
  if (raft.heartbeatElapsed >= raft.options.heartbeatTicks) {
    raft.heartbeatElapsed = 0;
    broadcastHeartbeat(raft);
  }
}

/** Check-quorum: whether a quorum was heard since the last time, which begins the next period. */
function quorumIsActive(raft: Raft): boolean {
  const active =
    quorumValue(raft.config, (id) => (id === raft.id || raft.progress.get(id)?.active === true ? 1 : 0)) >= 1;
  for (const [id, progress] of raft.progress) {
    // A snapshot to a member that went silent would hold its bytes in memory for as long as it is away.
    if (id !== raft.id && !progress.active && progress.state === 'snapshot') progress.becomeProbe();
    progress.active = false;
  }
  return active;
}

/** Campaigns at once. `transfer`: at the wish of the leader, so without a pre-vote and past the rule above. */
export function campaign(raft: Raft, kind: 'pre-vote' | 'vote', transfer: boolean): void {
  if (kind === 'pre-vote') {
    raft.becomePreCandidate();
    count(raft, raft.id, true);
    // Alone, it has won already.
    if (raft.role !== 'pre-candidate') return;
  } else {
    raft.becomeCandidate(); // mutation: raft/own-vote-unsynced
  }
  const term = kind === 'pre-vote' ? raft.term + 1 : raft.term;
  const { lastIndex, lastTerm } = raft.log;
  for (const to of membersOf(raft.config)) {
    if (to === raft.id || !isVoter(raft.config, to)) continue;
    raft.send({ type: kind, from: raft.id, to, term, lastIndex, lastTerm, transfer });
  }
}

/** A candidate's own vote is on its disk, and only now counts: a lone voter must not lead a term that it can forget. */
export function ownVoteIsDurable(raft: Raft): void {
  if (raft.role === 'candidate') count(raft, raft.id, true);
}

function count(raft: Raft, voter: number, granted: boolean): void {
  if (!raft.votes.has(voter)) raft.votes.set(voter, granted);
  const result = voteResult(raft.config, raft.votes);
  if (result === 'lost') raft.becomeFollower(raft.term, 0);
  if (result !== 'won') return;
  if (raft.role === 'pre-candidate') campaign(raft, 'vote', false);
  else lead(raft);
}

/** Whether a request for a vote is to be ignored because this member hears a leader. */
export function hearsLeader(raft: Raft, m: VoteRequest): boolean {
  return !m.transfer && raft.leader !== 0 && raft.electionElapsed < raft.options.electionTicks;
}

/** The request's term is at least this member's; for a vote it is this member's by now. */
export function onVoteRequest(raft: Raft, m: VoteRequest): void {
  const preVote = m.type === 'pre-vote';
  const free = raft.vote === m.from || (raft.vote === 0 && raft.leader === 0) || (preVote && m.term > raft.term);
  // A learner grants votes too: the candidate may know of a configuration in which it is a voter before it does itself.
  // mutation: raft/two-votes, raft/vote-for-a-shorter-log
  const granted = free && raft.log.isUpToDate(m.lastIndex, m.lastTerm);
  raft.send({
    type: preVote ? 'pre-vote-reply' : 'vote-reply',
    from: raft.id,
    to: m.from,
    term: granted ? m.term : raft.term,
    granted,
  });
  // Whoever asked first has its time: two candidates would split the votes.
  if (granted && preVote && raft.goneLeader !== 0) raft.campaignIn = Math.max(raft.campaignIn, RANK_TICKS);
  if (granted && !preVote) {
    raft.vote = m.from;
    raft.electionElapsed = 0;
  }
}

export function onVoteReply(raft: Raft, m: VoteReply): void {
  if (raft.role === (m.type === 'pre-vote-reply' ? 'pre-candidate' : 'candidate')) count(raft, m.from, m.granted);
}

export function onTimeoutNow(raft: Raft, m: TimeoutNow): void {
  if (m.from !== raft.leader && raft.leader !== 0) return;
  if (raft.role !== 'leader' && raft.promotable) campaign(raft, 'vote', true);
}
