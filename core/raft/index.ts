/**
 * core/raft: one member of a Raft group as a pure state machine, in the shape of etcd-io/raft. It has no I/O, no clock
 * and no randomness but what is injected; the same inputs give the same outputs. A driver owns time, disk, network and
 * the state machine.
 *
 * Making one
 *   const node = new RaftNode({ id, incarnation, random, ...limits }, restored);
 *   restored    what the storage holds: { hardState, snapshot?, entries }. First start of a group: persist
 *               bootstrapState(voters) at each of its first voters, then start from it. A member that joins later:
 *               emptyState().
 *   incarnation a positive safe integer that no earlier start of this member used (48 random bits will do).
 *   Times are ticks. With tick() every 50 ms and the default electionTicks of 10, a dead leader is replaced in 0.5 to 1
 *   s.
 *
 * Input
 *   step(message)            a message of a peer, after checkRaftMessage(unknown) said ok and message.to === id
 *   tick()                   the clock of the driver went on by one tick
 *   propose(bytes)           { ok: true, index, term } | { ok: false, reason }; leaders only. There is no forwarding: a
 *                            caller that hears 'not-leader' goes to node.leader itself. Retried requests are told apart
 *                            by the state machine, by (client, sequence) inside the bytes.
 *   proposeChange({ changes: [{ kind: 'voter' | 'learner' | 'remove', id }] })
 *                            the same for the configuration. One at a time; 'change-in-progress' and
 *                            'term-not-committed' pass by themselves. Add a member as learner, wait until
 *                            status().progress shows match near lastIndex, then
 *                            make it a voter.
 *   readIndex(ctx)           a linearizable read, at any member that knows a leader. ctx: a safe integer of the
 *                            driver's, unique while it is pending. It comes back in exactly one of readStates and
 *                            abortedReads.
 *   transferLeadership(id)   before a leader stops on purpose
 *   leaderGone(id)           a hint that the member `id` has ended, which may be false; again as long as it seems so. If it
 *                            led, this member asks for pre-votes without waiting for the election time-out.
 *
 * Output: the loop of the driver, after every input or batch of inputs
 *   while (node.hasReady()) {
 *     const ready = node.ready();
 *     0. transport: send ready.early; followers write while this member does
 *     1. storage: persist ready.hardState, ready.snapshot, ready.entries, as one batch; when ready.mustSync, fdatasync
 *     2. transport: send ready.messages; they may be lost, never changed
 *     3. state machine: restore ready.snapshot if present; apply ready.committed; serve ready.readStates when applied
 *        >= index
 *     4. node.advance();
 *   }
 *   - Nothing of step 2 may be seen by anybody before step 1 is on disk. That alone makes votes and acknowledgements
 *     true after a crash. What is early are a leader's entries (Ongaro's dissertation, section 10.2.1): its own disk
 *     counts for the quorum only after advance(), and after a crash it leads in a later term only, so no other entry
 *     ever has the same index and term.
 *   - If step 1 cannot know whether it succeeded (fsync failed), the process ends. If it had no room (ENOSPC on writing
 *     entries or a snapshot, with the log on disk as before and hardState persisted), skip step 2, do step 3 except the
 *     snapshot, and call node.storageRefused() instead of advance(); call node.retryStorage() once in a while, say
 *     every second.
 *   - An entry is in `committed` only when this member's own disk holds it, so a group of one reports nothing that it
 *     could forget. committed begins, after a restart, behind the snapshot: the state machine is rebuilt from the
 *     snapshot and the log.
 *   - committed contains entries of type Config and empty ones (a leader's first): they have an index and change no
 *     state.
 *   - Between ready() and advance() the node may be stepped, ticked and proposed to.
 *   - A proposal's outcome: when (index, term) comes in committed it took effect. When another term is at its index in
 *     committed, or a snapshot passes its index, it is unknown to this member and the caller asks again under the same
 *     (client, sequence).
 *
 * Compaction: once in a while (by logBytes of status()), between two rounds of the loop:
 *   const meta = node.snapshotMeta();               of node.applied, which is where the state machine is; undefined:
 *                                                   not now
 *   const snapshot = { meta, data: the state machine's bytes };
 *   if (storage.saveSnapshot(snapshot) === 'done') node.compact(snapshot, keepEntries);
 *   Followers that need what is gone are sent the snapshot in chunks, by this core.
 *
 * ImplausibleMessage, out of step(), means that the message's sender breaks the rules; this member goes on. Any other
 * RaftInvariantError, out of any method, means that this member must stop.
 *
 * Files: node (the driver's view), raft (the state), step (a message's term, then its kind), election, sending and
 * acknowledgement (the leader's side), follower, membership, reads, log, progress, inflights, snapshot, quorum,
 * configuration, config-change, messages, check-message, plausible.
 */
export { bootstrapState, emptyState } from './bootstrap.js';
export { checkRaftMessage, type CheckedMessage } from './check-message.js';
export type { ConfigChange, ConfigChangeRefusal, MemberChange } from './config-change.js';
export {
  decodeConfiguration,
  encodeConfiguration,
  formatConfiguration,
  isJoint,
  isVoter,
  membersOf,
  type Configuration,
} from './configuration.js';
export { EntryType, entryBytes, type Entry, type HardState } from './entry.js';
export { LostEntriesError, RaftInvariantError } from './invariant.js';
export type { ChangeRefusal, Proposed, ProposalRefusal, TransferRefusal } from './membership.js';
export type { RaftMessage } from './messages.js';
export { RaftNode } from './node.js';
export { DEFAULT_LIMITS, type RaftOptions, type RaftSettings } from './options.js';
export { ImplausibleMessage, LostEntriesClaim } from './plausible.js';
export type { RestoredState, Role } from './raft.js';
export type { MemberProgress, RaftStatus, Ready } from './ready.js';
export type { ReadRefusal, ReadState } from './reads.js';
export type { Snapshot, SnapshotMeta } from './snapshot.js';
export { TERMS_AT_ONCE } from './step.js';
