/**
 * One message: first what its term says, then what it says itself.
 *
 *   newer term   this member follows it, except for a pre-vote (which changes nothing) and for a request for a vote
 *                while it hears a leader (which is ignored)
 *   far newer    this member comes nearer by TERMS_AT_ONCE and takes nothing else from the message: one member cannot
 *                use the terms up, and one that is far behind, or among others that are, still gets there
 *   older term   ignored; a leader or candidate of the past is told the present term, so that one that went ahead of
 *                the others and came back is not stuck
 *
 * What its sender cannot know is refused (plausible.ts).
 */
import { onAppendAccept, onAppendReject, onHeartbeatReply, onSnapshotReply } from './acknowledgement.js';
import { hearsLeader, onTimeoutNow, onVoteReply, onVoteRequest } from './election.js';
import { onAppend, onHeartbeat, onSnapshotChunk } from './follower.js';
import type { RaftMessage } from './messages.js';
import { invariant } from './invariant.js';
import { checkPlausible } from './plausible.js';
import type { Raft } from './raft.js';
import { onReadIndexReply, onReadIndexRequest } from './reads.js';

/**
 * By so many terms a message brings this member on; at one election a second, those of 18 hours. One such step is taken
 * between two writes to the disk.
 */
export const TERMS_AT_ONCE = 2 ** 16;

/** Throws ImplausibleMessage (plausible.ts), having taken nothing from the message. */
export function step(raft: Raft, m: RaftMessage): void {
  invariant(m.to === raft.id, 'a message goes to its receiver');
  if (m.term - raft.term > TERMS_AT_ONCE) {
    comeNearer(raft, m);
    return;
  }
  if (m.term >= raft.term) checkPlausible(raft, m);
  if (m.term > raft.term) {
    if (!followNewerTerm(raft, m)) return;
  } else if (m.term < raft.term) {
    answerOlderTerm(raft, m);
    return;
  }
  switch (m.type) {
    case 'vote':
    case 'pre-vote':
      onVoteRequest(raft, m);
      return;
    case 'vote-reply':
    case 'pre-vote-reply':
      onVoteReply(raft, m);
      return;
    case 'append':
    case 'heartbeat':
    case 'snapshot-chunk':
      followLeader(raft, m.from);
      if (m.type === 'append') onAppend(raft, m);
      else if (m.type === 'heartbeat') onHeartbeat(raft, m);
      else onSnapshotChunk(raft, m);
      return;
    case 'read-index':
      onReadIndexRequest(raft, m);
      return;
    case 'read-index-reply':
      onReadIndexReply(raft, m);
      return;
    case 'timeout-now':
      onTimeoutNow(raft, m);
      return;
    case 'stale':
      return;
    default:
      if (raft.role !== 'leader') return;
      switch (m.type) {
        case 'append-accept':
          onAppendAccept(raft, m);
          return;
        case 'append-reject':
          onAppendReject(raft, m);
          return;
        case 'heartbeat-reply':
          onHeartbeatReply(raft, m);
          return;
        case 'snapshot-reply':
          onSnapshotReply(raft, m);
      }
  }
}

function comeNearer(raft: Raft, m: RaftMessage): void {
  if (m.type === 'pre-vote' || (m.type === 'pre-vote-reply' && m.granted)) return;
  if (raft.cameNearer || (m.type === 'vote' && hearsLeader(raft, m))) return;
  raft.becomeFollower(raft.term + TERMS_AT_ONCE, 0);
  raft.cameNearer = true;
  // Answered in kind while the distance is large: so it is made up for in round trips, not in elections.
  raft.send({ type: 'stale', from: raft.id, to: m.from, term: raft.term });
}

/** False: the message is to be ignored. */
function followNewerTerm(raft: Raft, m: RaftMessage): boolean {
  switch (m.type) {
    case 'vote':
      if (hearsLeader(raft, m)) return false;
      break;
    case 'pre-vote':
      return !hearsLeader(raft, m);
    case 'pre-vote-reply':
      // A grant carries the term that was asked about; only a refusal tells of a newer one.
      if (m.granted) return true;
      break;
    default:
  }
  const fromLeader = m.type === 'append' || m.type === 'heartbeat' || m.type === 'snapshot-chunk';
  raft.becomeFollower(m.term, fromLeader ? m.from : 0);
  return true;
}

function answerOlderTerm(raft: Raft, m: RaftMessage): void {
  switch (m.type) {
    case 'append':
    case 'heartbeat':
    case 'snapshot-chunk':
    case 'vote':
      raft.send({ type: 'stale', from: raft.id, to: m.from, term: raft.term });
      return;
    case 'pre-vote':
      raft.send({ type: 'pre-vote-reply', from: raft.id, to: m.from, term: raft.term, granted: false });
      return;
    case 'stale':
      if (raft.term - m.term > TERMS_AT_ONCE) raft.send({ type: 'stale', from: raft.id, to: m.from, term: raft.term });
      return;
    default:
  }
}

/** A message that only the leader of this term sends. */
function followLeader(raft: Raft, from: number): void {
  if (raft.role !== 'follower') raft.becomeFollower(raft.term, from);
  raft.leader = from;
  raft.electionElapsed = 0;
  raft.forgetGone();
}
