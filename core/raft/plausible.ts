/**
 * What another member can know: a message that no member which follows Raft's rules can have sent is refused here, before
 * it changes anything. A faulty or lying member so ends its own connection, not this process.
 *
 * Only what contradicts this member's own state is found. A member that lies within what is possible is believed: Raft
 * is no protocol for liars (docs/security.md).
 */
import { RaftInvariantError } from './invariant.js';
import type { Append, Heartbeat, RaftMessage, SnapshotChunk } from './messages.js';
import type { Raft } from './raft.js';

/** Thrown by step: the message was not taken, and its sender breaks the rules. This member may go on. */
export class ImplausibleMessage extends RaftInvariantError {}

/**
 * A leader says that this member had more of the log than it has. Either that is a lie, or this member's disk is older
 * than what it has acknowledged; nothing here can tell which.
 */
export class LostEntriesClaim extends ImplausibleMessage {}

/** A snapshot may end at most this far behind the log's end: at 100,000 changes a second, what 127 days bring. */
const INDEXES_AHEAD_MAX = 2 ** 40;

function plausible(condition: boolean, text: string): asserts condition {
  if (!condition) throw new ImplausibleMessage(text);
}

/** Throws ImplausibleMessage. The message's term is this member's, or is going to be. */
export function checkPlausible(raft: Raft, m: RaftMessage): void {
  switch (m.type) {
    case 'append':
      checkLeader(raft, m);
      checkCommitted(raft, m);
      return;
    case 'heartbeat':
      checkLeader(raft, m);
      if (m.commit > raft.log.lastIndex)
        throw new LostEntriesClaim('what is told to be committed here is not in the log');
      return;
    case 'snapshot-chunk':
      checkLeader(raft, m);
      plausible(
        m.snapshot.index - raft.log.lastIndex <= INDEXES_AHEAD_MAX,
        'a snapshot of more than can have happened',
      );
      return;
    default:
      if (raft.role === 'leader' && m.term === raft.term) checkAnswer(raft, m);
  }
}

/** A term has one leader, which may be this member. */
function checkLeader(raft: Raft, m: Append | Heartbeat | SnapshotChunk): void {
  if (m.term > raft.term) return;
  plausible(raft.leader === 0 || raft.leader === m.from, 'a second leader in one term'); // mutation: raft/second-leader
}

/** What is committed here is in every later leader's log too. */
function checkCommitted({ log }: Raft, { prevIndex, prevTerm, entries }: Append): void {
  const agrees = (index: number, term: number): boolean =>
    index < log.baseIndex || index > log.commit || log.termAt(index) === term;
  plausible(
    agrees(prevIndex, prevTerm) && entries.every(({ index, term }) => agrees(index, term)),
    'entries other than those that are committed',
  );
}

/** To what this member says as a leader. */
function checkAnswer(raft: Raft, m: RaftMessage): void {
  switch (m.type) {
    case 'append-accept':
    case 'append-reject':
      plausible(m.index <= raft.log.lastIndex, 'an answer about entries that this leader does not have');
      return;
    case 'heartbeat-reply':
      plausible(m.round <= raft.reads.round, 'an answer to a round that was not begun');
      return;
    case 'snapshot-reply': {
      const snapshot = raft.progress.get(m.from)?.sender?.snapshot;
      plausible(
        snapshot?.meta.index !== m.index || m.received <= snapshot.data.length,
        'an answer about more than the snapshot has',
      );
      return;
    }
    default:
  }
}
