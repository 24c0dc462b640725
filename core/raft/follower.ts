/**
 * The follower's side of replication: taking entries, the commit index and snapshots from the leader of the present
 * term.
 *
 * An accept is sent with the Ready that persists what it claims (node.ts), so it always speaks of what is durable.
 * While the disk takes no entries, no new ones are accepted and nothing beyond the disk is claimed.
 */
import { present } from './invariant.js';
import type { Append, Heartbeat, SnapshotChunk } from './messages.js';
import { ImplausibleMessage } from './plausible.js';
import type { Raft } from './raft.js';

function accept(raft: Raft, to: number, index: number): void {
  raft.send({ type: 'append-accept', from: raft.id, to, term: raft.term, index });
}

export function onAppend(raft: Raft, m: Append): void {
  const { log } = raft;
  if (raft.storageFull) {
    onAppendWithoutRoom(raft, m);
    return;
  }
  let { prevIndex, prevTerm, entries } = m;
  if (prevIndex < log.commit) {
    // What is committed here is in the leader's log too: begin behind it.
    entries = entries.slice(log.commit - prevIndex);
    prevIndex = log.commit;
    prevTerm = present(log.termAt(prevIndex));
  }
  const done = log.appendAfter(prevIndex, prevTerm, entries);
  if (done === undefined) {
    const hint = log.lastIndexNotAfter(m.prevIndex, m.prevTerm);
    raft.send({
      type: 'append-reject',
      from: raft.id,
      to: m.from,
      term: raft.term,
      index: m.prevIndex,
      hintIndex: hint.index,
      hintTerm: hint.term,
    });
    return;
  }
  raft.appended(done.appended, done.truncatedAt);
  log.commitTo(Math.min(m.commit, done.lastNew)); // mutation: raft/commits-beyond-sent
  accept(raft, m.from, done.lastNew);
}

/**
 * Entries that are here already may be acknowledged as far as the disk holds them, and committed; new ones are not
 * taken.
 */
function onAppendWithoutRoom(raft: Raft, m: Append): void {
  const { log } = raft;
  if (m.prevIndex > log.lastIndex || (m.prevIndex >= log.commit && log.termAt(m.prevIndex) !== m.prevTerm)) return;
  let same = Math.max(m.prevIndex, log.commit);
  for (const entry of m.entries) if (log.termAt(entry.index) === entry.term) same = Math.max(same, entry.index);
  log.commitTo(Math.min(m.commit, same));
  const index = Math.min(same, raft.durableIndex);
  if (index > 0) accept(raft, m.from, index);
}

export function onHeartbeat(raft: Raft, m: Heartbeat): void {
  raft.log.commitTo(m.commit);
  raft.send({ type: 'heartbeat-reply', from: raft.id, to: m.from, term: raft.term, round: m.round });
}

export function onSnapshotChunk(raft: Raft, m: SnapshotChunk): void {
  const { log } = raft;
  const { index, term } = m.snapshot;
  if (raft.storageFull) return;
  if (index <= log.commit) {
    accept(raft, m.from, log.commit);
    return;
  }
  if (log.termAt(index) === term) {
    // All of it is in the log already: nothing to restore.
    log.commitTo(index);
    accept(raft, m.from, log.commit);
    return;
  }
  const { received, whole } = raft.receiver.take(m);
  if (whole === undefined) {
    raft.send({ type: 'snapshot-reply', from: raft.id, to: m.from, term: raft.term, index, received });
    return;
  }
  const why = raft.options.unreadable?.(whole.data);
  if (why !== undefined) throw new ImplausibleMessage(`a snapshot that cannot be read: ${why}`);
  raft.restore(whole);
  accept(raft, m.from, index);
}
