/**
 * What a leader makes of acknowledgements: progress of members, and the commit index.
 *
 * The commit rule (Raft paper, section 5.4.2): an index is committed when a quorum's disks hold it and the entry there
 * is of the leader's own term; older entries are committed by what follows them, never by counting. The leader counts
 * itself only as far as its own disk goes, so a lone voter reports nothing as committed that it has not persisted.
 */
import { afterCommit } from './membership.js';
import type { AppendAccept, AppendReject, HeartbeatReply, SnapshotReply } from './messages.js';
import { quorumValue } from './quorum.js';
import type { Raft } from './raft.js';
import { admitEarlyReads, answerReads } from './reads.js';
import { sendAll, sendAppend, sendChunks, sendTimeoutNow } from './sending.js';

export function onAppendAccept(raft: Raft, m: AppendAccept): void {
  const progress = raft.progress.get(m.from);
  if (progress === undefined) return;
  progress.active = true;
  const news = progress.accepted(m.index);
  if (progress.state === 'probe' && (news || progress.match === m.index)) {
    progress.becomeReplicate();
  } else if (progress.state === 'snapshot' && progress.match >= raft.log.baseIndex) {
    progress.becomeReplicate();
  } else if (progress.state === 'snapshot' && progress.match >= (progress.sender?.snapshot.meta.index ?? 0)) {
    // It took the snapshot, but the log was compacted further meanwhile: it needs the newer one.
    progress.becomeProbe();
  } else if (progress.state === 'replicate') {
    progress.inflights.freeTo(m.index);
  }
  if (news && advanceCommit(raft)) {
    if (raft.role !== 'leader') return;
  }
  sendAll(raft, m.from);
  if (m.from === raft.transferee && progress.match === raft.log.lastIndex) sendTimeoutNow(raft, m.from);
}

export function onAppendReject(raft: Raft, m: AppendReject): void {
  const progress = raft.progress.get(m.from);
  if (progress === undefined) return;
  progress.active = true;
  // Where the logs can agree at most, seen from both sides: a whole term of conflict is skipped in one exchange.
  const hint = raft.log.lastIndexNotAfter(m.hintIndex, m.hintTerm).index;
  if (!progress.refused(m.index, hint)) return;
  if (progress.state === 'replicate') progress.becomeProbe();
  sendAppend(raft, m.from, true);
}

export function onHeartbeatReply(raft: Raft, m: HeartbeatReply): void {
  const progress = raft.progress.get(m.from);
  if (progress === undefined) return;
  progress.active = true;
  progress.probeSent = false;
  if (progress.state === 'replicate' && progress.inflights.full) progress.inflights.freeFirst();
  if (progress.state === 'snapshot') {
    progress.sender?.heartbeat();
    sendChunks(raft, m.from, progress);
  } else if (progress.match < raft.log.lastIndex || progress.state === 'probe') {
    // In replicate this may be an append without entries, whose refusal tells that earlier ones were lost.
    sendAppend(raft, m.from, true);
  }
  if (m.round > progress.round) {
    progress.round = m.round;
    answerReads(raft);
  }
}

export function onSnapshotReply(raft: Raft, m: SnapshotReply): void {
  const progress = raft.progress.get(m.from);
  if (progress === undefined) return;
  progress.active = true;
  if (progress.sender?.snapshot.meta.index !== m.index) return;
  progress.sender.received(m.received);
  sendChunks(raft, m.from, progress);
}

/** The leader's own disk holds more of the log than before. */
export function ownLogIsDurable(raft: Raft): void {
  const own = raft.progress.get(raft.id);
  if (own?.accepted(raft.durableIndex) === true) advanceCommit(raft); // mutation: raft/leader-counts-unsynced
}

/** Raises the commit index as far as the rule above allows. Whether it rose; the leader may have stepped down by it. */
export function advanceCommit(raft: Raft): boolean {
  const { log } = raft;
  const held = quorumValue(raft.config, (id) => raft.progress.get(id)?.match ?? 0);
  if (log.termAt(held) !== raft.term) return false; // mutation: raft/old-term-committed
  const before = log.commit;
  if (!log.commitTo(held)) return false;
  for (let index = before + 1; index <= held; index++) raft.uncommittedBytes -= log.entryAt(index)?.data.length ?? 0;
  admitEarlyReads(raft);
  afterCommit(raft);
  return true;
}
