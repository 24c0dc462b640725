/**
 * ReadIndex: linearizable reads of the state machine without an entry in the log (Ongaro's dissertation, section 6.4).
 *
 * The leader notes its commit index, learns from a quorum that it still leads (a heartbeat round), and answers with the
 * index; the reader waits until it has applied that much. No clock is trusted: there are no leader-lease reads.
 *
 *  - A leader that has not committed an entry of its own term yet does not know what is committed: such reads wait for
 *    it.
 *  - Rounds are numbered within a term. Only an answer to a heartbeat that was sent after the read came in confirms it,
 *    so a read joins a round that has not been sent yet; all reads of one Ready share one round.
 *  - A read at a follower is asked of the leader under (incarnation, request), which never repeats, so a delayed answer
 *    to an earlier request, or to an earlier life of this member, is not taken for another's.
 *
 * Every read that was accepted ends in exactly one of readStates and abortedReads.
 */
import { present } from './invariant.js';
import { quorumValue } from './quorum.js';
import type { Raft } from './raft.js';
import type { ReadIndexReply, ReadIndexRequest } from './messages.js';

export interface ReadState {
  /** The number that the driver gave. */
  readonly ctx: number;
  /** The read may be answered once this index is applied. */
  readonly index: number;
}

/** A read at the leader: its own (from is itself, request is the ctx) or a follower's. */
interface LeaderRead {
  readonly from: number;
  readonly incarnation: number;
  readonly request: number;
  readonly index: number;
  readonly round: number;
}

export class ReadQueue {
  /** For the next Ready. */
  states: ReadState[] = [];
  aborted: number[] = [];

  /** Leaders: reads that wait for the first commit of the term. */
  early: Omit<LeaderRead, 'index' | 'round'>[] = [];
  /** Leaders: reads that wait for a quorum, in the order of their rounds. */
  waiting: LeaderRead[] = [];
  /** Leaders: the newest round that was sent. Reads in `waiting` with a higher one are not sent yet. */
  round = 0;

  /** Followers: reads asked of the leader, with the tick after which they are given up. */
  asked = new Map<number, { readonly ctx: number; ticksLeft: number }>();
  /** Never reset, so that a number is used once in the life of this object. */
  nextRequest = 1;

  constructor(private readonly limit: number) {}

  get full(): boolean {
    return this.early.length + this.waiting.length + this.asked.size >= this.limit;
  }

  /** Leaders: what others ask for leaves room for the leader's own reads. */
  get crowded(): boolean {
    return this.early.length + this.waiting.length >= this.limit / 2;
  }

  /** The term or the role changed: nobody is going to answer. */
  reset(): void {
    for (const read of [...this.early, ...this.waiting]) if (read.incarnation === 0) this.aborted.push(read.request);
    for (const { ctx } of this.asked.values()) this.aborted.push(ctx);
    this.early = [];
    this.waiting = [];
    this.asked.clear();
    this.round = 0;
  }
}

/** Marks a leader's own reads; the incarnations of followers are never 0. */
const OWN = 0;

export type ReadRefusal = 'no-leader' | 'busy';

/** A read at this member. `undefined`: accepted. */
export function requestRead(raft: Raft, ctx: number): ReadRefusal | undefined {
  if (raft.reads.full) return 'busy';
  if (raft.role === 'leader') {
    enqueue(raft, { from: raft.id, incarnation: OWN, request: ctx });
    return undefined;
  }
  if (raft.leader === 0) return 'no-leader';
  const request = raft.reads.nextRequest++;
  raft.reads.asked.set(request, { ctx, ticksLeft: 2 * raft.options.electionTicks });
  raft.send({
    type: 'read-index',
    from: raft.id,
    to: raft.leader,
    term: raft.term,
    incarnation: raft.options.incarnation,
    request,
  });
  return undefined;
}

export function onReadIndexRequest(raft: Raft, m: ReadIndexRequest): void {
  if (raft.role !== 'leader' || raft.reads.crowded || m.incarnation === OWN) return;
  enqueue(raft, { from: m.from, incarnation: m.incarnation, request: m.request });
}

export function onReadIndexReply(raft: Raft, m: ReadIndexReply): void {
  // mutation: raft/read-of-an-earlier-life
  if (m.from !== raft.leader || m.incarnation !== raft.options.incarnation) return;
  const asked = raft.reads.asked.get(m.request);
  if (asked === undefined) return;
  raft.reads.asked.delete(m.request);
  raft.reads.states.push({ ctx: asked.ctx, index: m.index });
}

/** Whether the leader has committed an entry of its own term, and so knows all that is committed. */
export function committedInTerm(raft: Raft): boolean {
  return raft.log.termAt(raft.log.commit) === raft.term;
}

function enqueue(raft: Raft, read: Omit<LeaderRead, 'index' | 'round'>): void {
  // mutation: raft/read-before-own-term
  if (committedInTerm(raft)) raft.reads.waiting.push({ ...read, index: raft.log.commit, round: raft.reads.round + 1 });
  else raft.reads.early.push(read);
}

/** The leader's commit index rose: early reads can be given an index. */
export function admitEarlyReads(raft: Raft): void {
  if (raft.reads.early.length === 0 || !committedInTerm(raft)) return;
  const { early } = raft.reads;
  raft.reads.early = [];
  for (const read of early) enqueue(raft, read);
}

/** Whether reads wait for a round that has not been sent. */
export function roundIsDue(raft: Raft): boolean {
  return (raft.reads.waiting.at(-1)?.round ?? 0) > raft.reads.round;
}

/** Answers the reads whose round a quorum has acknowledged. The leader acknowledges its own rounds by being leader. */
export function answerReads(raft: Raft): void {
  const { reads } = raft;
  if (reads.waiting.length === 0) return;
  const confirmed = quorumValue(raft.config, (id) =>
    id === raft.id ? reads.round : (raft.progress.get(id)?.round ?? 0),
  );
  let done = 0;
  for (; done < reads.waiting.length; done++) {
    const read = present(reads.waiting[done]);
    if (read.round > confirmed || read.round > reads.round) break; // mutation: raft/read-unconfirmed
    if (read.incarnation === OWN) reads.states.push({ ctx: read.request, index: read.index });
    else
      raft.send({
        type: 'read-index-reply',
        from: raft.id,
        to: read.from,
        term: raft.term,
        incarnation: read.incarnation,
        request: read.request,
        index: read.index,
      });
  }
  if (done > 0) reads.waiting = reads.waiting.slice(done);
}

/** Followers: gives up on reads that the leader does not answer. */
export function tickReads(raft: Raft): void {
  for (const [request, asked] of raft.reads.asked) {
    if (--asked.ticksLeft > 0) continue;
    raft.reads.asked.delete(request);
    raft.reads.aborted.push(asked.ctx);
  }
}
