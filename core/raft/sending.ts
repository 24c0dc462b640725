/**
 * What a leader sends: entries as far as a member's pace allows, snapshots where entries are compacted, heartbeats.
 * What comes back is in acknowledgement.ts.
 */
import { entriesBytes, NO_BYTES, EntryType, type Entry } from './entry.js';
import { invariant } from './invariant.js';
import type { Progress } from './progress.js';
import type { Raft } from './raft.js';

/** Appends one entry of the leader's own term. */
export function appendEntry(raft: Raft, type: EntryType, data: Uint8Array): Entry {
  invariant(raft.role === 'leader', 'only leaders make entries');
  const entry: Entry = { index: raft.log.lastIndex + 1, term: raft.term, type, data };
  raft.log.append([entry]);
  raft.appended([entry]);
  raft.uncommittedBytes += data.length;
  return entry;
}

/** What a new leader does first: an entry of its own term, without which it cannot tell what is committed. */
export function lead(raft: Raft): void {
  raft.becomeLeader();
  appendEntry(raft, EntryType.Normal, NO_BYTES);
  broadcastAppend(raft);
}

export function broadcastAppend(raft: Raft): void {
  for (const id of raft.progress.keys()) if (id !== raft.id) sendAppend(raft, id, true);
}

/**
 * Sends what the member lacks, as far as its pace allows. `evenEmpty`: an append without entries too, to tell the
 * commit index.
 */
export function sendAppend(raft: Raft, to: number, evenEmpty: boolean): boolean {
  const progress = raft.progress.get(to);
  if (progress === undefined || progress.paused) return false;
  const { log, options } = raft;
  const prevIndex = progress.next - 1;
  const prevTerm = log.termAt(prevIndex);
  if (prevTerm === undefined) return startSnapshot(raft, to, progress);
  const entries = prevIndex < log.lastIndex ? log.slice(progress.next, log.lastIndex, options.maxMessageBytes) : [];
  if (entries.length === 0 && !evenEmpty) return false;
  raft.send({ type: 'append', from: raft.id, to, term: raft.term, prevIndex, prevTerm, commit: log.commit, entries });
  progress.sentEntries(entries.length, prevIndex + entries.length, entriesBytes(entries));
  return true;
}

/** Sends until the member has all, or its window is full. */
export function sendAll(raft: Raft, to: number): void {
  while (sendAppend(raft, to, false));
}

function startSnapshot(raft: Raft, to: number, progress: Progress): boolean {
  // Not to one that is silent: a snapshot is large, and it will say when it is back.
  if (!progress.active || raft.snapshot === undefined) return false;
  progress.becomeSnapshot(raft.snapshot);
  sendChunks(raft, to, progress);
  return false;
}

export function sendChunks(raft: Raft, to: number, progress: Progress): void {
  const { sender } = progress;
  if (sender === undefined) return;
  const { meta, data } = sender.snapshot;
  for (let next = sender.nextChunk(); next !== undefined; next = sender.nextChunk()) {
    raft.send({
      type: 'snapshot-chunk',
      from: raft.id,
      to,
      term: raft.term,
      snapshot: meta,
      bytes: data.length,
      ...next,
    });
  }
}

/** Heartbeats to all. They carry the newest ReadIndex round, so that a lost one is made up for by the next. */
export function broadcastHeartbeat(raft: Raft): void {
  for (const [to, progress] of raft.progress) {
    if (to === raft.id) continue;
    const commit = Math.min(progress.match, raft.log.commit);
    raft.send({ type: 'heartbeat', from: raft.id, to, term: raft.term, commit, round: raft.reads.round });
  }
}

export function sendTimeoutNow(raft: Raft, to: number): void {
  raft.send({ type: 'timeout-now', from: raft.id, to, term: raft.term });
}
