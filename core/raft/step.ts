/**
 * One message: first what its term says, then what it says itself.
 *
 *   newer term   this member follows it, except for a pre-vote (which changes nothing) and for a request for a vote
 *                while it hears a leader (which is ignored)
 *   older term   ignored; a leader or candidate of the past is told the present term, so that one that went ahead of
 *                the others and came back is not stuck
 */
import { onAppendAccept, onAppendReject, onHeartbeatReply, onSnapshotReply } from './acknowledgement.js';
import { hearsLeader, onTimeoutNow, onVoteReply, onVoteRequest } from './election.js';
import { onAppend, onHeartbeat, onSnapshotChunk } from './follower.js';
import type { RaftMessage } from './messages.js';
import { invariant } from './invariant.js';
import type { Raft } from './raft.js';
import { onReadIndexReply, onReadIndexRequest } from './reads.js';

export function step(raft: Raft, m: RaftMessage): void {
  invariant(m.to === raft.id, 'a message goes to its receiver');
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
    default:
  }
}

/** A message that only the leader of this term sends. */
function followLeader(raft: Raft, from: number): void {
  invariant(raft.role !== 'leader', 'a term has one leader');
  if (raft.role !== 'follower') raft.becomeFollower(raft.term, from);
  raft.leader = from;
  raft.electionElapsed = 0;
  raft.forgetGone();
}
