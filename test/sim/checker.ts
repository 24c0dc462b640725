/**
 * The properties that must hold, checked after every step. Each check looks at what the step changed, and relies on
 * what was checked before for the rest; so a step costs the same in the thousandth second as in the first.
 *
 *   election safety         a term has at most one leader
 *   leader append-only      a leader's log only grows while it leads
 *   log matching            entries of equal index and term are equal, and so is what is before them: each (index,
 *                           term) has one content and one term before it, wherever it turns up
 *   leader completeness     a leader has every entry that was committed in an earlier term
 *   configuration           a leader leads with the newest configuration in its log
 *   state machine safety    no two members apply different entries at an index; machines that applied as much are equal
 *   monotonic               term and commit of a member never fall while it runs; its term does not fall over a restart
 *   one vote                a member's disk has one vote in a term, and no vote or claim is sent that the disk does not
 *                           hold
 *   durable quorum          what a leader commits is on the disks of a majority (of both, when joint)
 *   once                    a proposal is committed at most once, at the place and in the term that the proposer was
 *                           told
 *   fresh reads             a read's index covers all that was committed anywhere when it was asked, and each read ends
 *                           once
 *   restart                 a member restarts with what it had persisted
 */
import {
  decodeConfiguration,
  EntryType,
  formatConfiguration,
  type Configuration,
  type Entry,
  type RaftMessage,
  type RaftNode,
  type Ready,
} from '../../core/raft/index.js';
import { sameEntry, type DurableModel } from './durable-model.js';
import { NUMBER_BYTES, type Machine } from './machine.js';

export class Violation extends Error {
  constructor(
    readonly invariant: string,
    readonly what: string,
  ) {
    super(`${invariant}: ${what}`);
    this.name = 'Violation';
  }
}

/** What the checker remembers of a member between two looks at it. */
export interface Watched {
  readonly id: number;
  readonly model: DurableModel;
  machine: Machine;
  term: number;
  commit: number;
  /** The term that it was last seen leading; 0: none in this life. */
  ledTerm: number;
  ledIndex: number;
  ledIndexTerm: number;
  /** The highest term that it ever spoke in. */
  spokenTerm: number;
}

interface Creation {
  readonly entry: Entry;
  readonly prevTerm: number;
}

interface PendingRead {
  readonly member: number;
  readonly committed: number;
}

export class Checker {
  /** Committed entries; ledger[i] has index i + 1. */
  readonly ledger: Entry[] = [];
  /** The term of the leader that first committed the entry. */
  readonly #committedIn: number[] = [];
  /** The digest of a machine that has applied up to and including the entry. */
  readonly #digests: number[] = [];
  readonly #leaders: number[] = [];
  readonly #created: Creation[][] = [];
  readonly #votes = new Map<number, Map<number, number>>();
  readonly #reads = new Map<number, PendingRead>();
  /** By proposal number: where it was appended. */
  readonly #proposals: { readonly index: number; readonly term: number }[] = [];
  readonly #committedProposals = new Set<number>();
  leadersSeen = 0;
  /** The newest configuration that is committed. */
  committedConfig: Configuration = { voters: [], outgoing: [], learners: [] };
  committedConfigIndex = 0;

  constructor(
    private readonly reference: Machine,
    private readonly modelOf: (id: number) => DurableModel,
  ) {}

  get committed(): number {
    return this.ledger.length;
  }

  /** The first members begin with these, committed. */
  bootstrapped(entries: readonly Entry[]): void {
    for (const entry of entries) this.#commit(entry, entry.term);
  }

  /** After anything that a member did in memory. */
  look(member: Watched, node: RaftNode): void {
    const { term, commit } = node;
    if (term < member.term)
      throw new Violation('monotonic', `the term of ${member.id} fell from ${member.term} to ${term}`);
    if (commit < member.commit)
      throw new Violation('monotonic', `the commit index of ${member.id} fell from ${member.commit} to ${commit}`);
    member.term = term;
    const leads = node.role === 'leader';
    if (leads) this.#leads(member, node);
    // One that a committed configuration leaves out steps down with the commit.
    const led = leads || member.ledTerm === term;
    if (commit > member.commit) {
      this.#commits(member, node, led);
      member.commit = commit;
    }
  }

  #leads(member: Watched, node: RaftNode): void {
    const { term, lastIndex } = node;
    if (member.ledTerm !== term) {
      const other = this.#leaders[term];
      if (other !== undefined && other !== member.id)
        throw new Violation('election safety', `${other} and ${member.id} lead term ${term}`);
      this.#leaders[term] = member.id;
      this.leadersSeen++;
      this.#complete(member, node);
      this.#configuration(member, node);
      member.ledTerm = term;
      member.ledIndex = 0;
    } else if (
      lastIndex < member.ledIndex ||
      (node.termAt(member.ledIndex) ?? member.ledIndexTerm) !== member.ledIndexTerm
    ) {
      throw new Violation(
        'leader append-only',
        `leader ${member.id} lost entry ${member.ledIndex} of its log in term ${term}`,
      );
    }
    if (lastIndex !== member.ledIndex) {
      member.ledIndex = lastIndex;
      member.ledIndexTerm = node.termAt(lastIndex) ?? 0;
    }
  }

  /** The configuration in force is the newest in the log, and none that was truncated. */
  #configuration(member: Watched, node: RaftNode): void {
    for (let index = node.lastIndex; ; index--) {
      const entry = node.entryAt(index);
      if (entry === undefined) return;
      if (entry.type !== EntryType.Config) continue;
      const newest = formatConfiguration(decodeConfiguration(entry.data)!);
      const inForce = formatConfiguration(node.config);
      if (newest !== inForce)
        throw new Violation('configuration', `${member.id} leads with ${inForce}, and its log says ${newest}`);
      return;
    }
  }

  /** By log matching the last entry that was committed before this term stands for all before it. */
  #complete(member: Watched, node: RaftNode): void {
    let index = this.ledger.length;
    while (index > 0 && this.#committedIn[index - 1]! >= node.term) index--;
    const wanted = this.ledger[index - 1];
    if (wanted === undefined) return;
    const has = node.termAt(index) ?? (node.applied >= index ? wanted.term : undefined);
    if (has !== wanted.term)
      throw new Violation(
        'leader completeness',
        `leader ${member.id} of term ${node.term} has ${has ?? 'nothing'} at ${index}, where term ${wanted.term} was committed`,
      );
  }

  #commits(member: Watched, node: RaftNode, led: boolean): void {
    const { commit } = node;
    if (commit > this.ledger.length) {
      if (!led)
        throw new Violation(
          'durable quorum',
          `${member.id} takes ${commit} for committed, and no leader has committed it`,
        );
      this.#quorumHolds(member, node, commit);
    }
    for (let index = member.commit + 1; index <= commit; index++) {
      const known = this.ledger[index - 1];
      const term = node.termAt(index);
      if (known === undefined) this.#commit(node.entryAt(index)!, node.term);
      else if (term !== undefined && term !== known.term) {
        throw new Violation(
          'state machine safety',
          `${member.id} takes ${index} of term ${term} for committed, which is of term ${known.term}`,
        );
      }
    }
  }

  #quorumHolds(member: Watched, node: RaftNode, index: number): void {
    const term = node.termAt(index)!;
    const { voters, outgoing } = node.config;
    for (const half of [voters, outgoing]) {
      let holding = 0;
      for (const id of half) if (this.modelOf(id).has(index, term)) holding++;
      if (half.length > 0 && 2 * holding <= half.length) {
        throw new Violation(
          'durable quorum',
          `${member.id} committed ${index} of term ${term}, which ${holding} of ${half.length} disks hold`,
        );
      }
    }
  }

  #commit(entry: Entry, term: number): void {
    if (entry.type === EntryType.Normal && entry.data.length > 0) {
      const proposal = proposalNumber(entry.data);
      const place = this.#proposals[proposal];
      if (this.#committedProposals.has(proposal))
        throw new Violation('once', `proposal ${proposal} was committed again at ${entry.index}`);
      if (place?.index !== entry.index || place.term !== entry.term)
        throw new Violation(
          'once',
          `proposal ${proposal} was committed at ${entry.index}/${entry.term}, which its proposer was not told`,
        );
      this.#committedProposals.add(proposal);
      this.reference.apply(entry.index, entry.data);
    }
    if (entry.type === EntryType.Config) {
      this.committedConfig = decodeConfiguration(entry.data)!;
      this.committedConfigIndex = entry.index;
    }
    this.ledger.push(entry);
    this.#committedIn.push(term);
    this.#digests.push(this.reference.digest());
  }

  /**
   * A Ready's entries: everything that enters a log goes through here, at the leader that made it and at those that
   * copied it.
   */
  ready(member: Watched, node: RaftNode, ready: Ready): void {
    for (const entry of ready.entries) {
      const prevTerm = node.termAt(entry.index - 1);
      const creations = (this.#created[entry.index] ??= []);
      const known = creations.find(({ entry: made }) => made.term === entry.term);
      if (known === undefined) creations.push({ entry, prevTerm: prevTerm ?? -1 });
      else if (!sameEntry(known.entry, entry))
        throw new Violation('log matching', `two entries ${entry.index}/${entry.term} differ; ${member.id} has one`);
      else if (prevTerm !== undefined && known.prevTerm >= 0 && known.prevTerm !== prevTerm) {
        throw new Violation(
          'log matching',
          `before ${entry.index}/${entry.term} is term ${known.prevTerm}, and at ${member.id} term ${prevTerm}`,
        );
      }
    }
  }

  /** Term and vote got to a member's disk. */
  persisted(member: Watched): void {
    const { term, vote } = member.model;
    if (vote === 0) return;
    let votes = this.#votes.get(member.id);
    if (votes === undefined) this.#votes.set(member.id, (votes = new Map<number, number>()));
    const before = votes.get(term);
    if (before !== undefined && before !== vote)
      throw new Violation('one vote', `${member.id} voted for ${before} and for ${vote} in term ${term}`);
    votes.set(term, vote);
  }

  /** A message leaves a member: its disk must hold what the message claims. */
  sends(member: Watched, m: RaftMessage): void {
    const { model } = member;
    if (m.type === 'pre-vote' || m.type === 'pre-vote-reply') return;
    if (m.term > model.term)
      throw new Violation('one vote', `${member.id} speaks in term ${m.term}, and its disk has term ${model.term}`);
    member.spokenTerm = Math.max(member.spokenTerm, m.term);
    if (m.type === 'vote-reply' && m.granted && m.term === model.term && model.vote !== m.to) {
      throw new Violation(
        'one vote',
        `${member.id} grants ${m.to} a vote in term ${m.term} that its disk does not have`,
      );
    }
    if (m.type === 'vote' && m.term === model.term && model.vote !== member.id)
      throw new Violation('one vote', `${member.id} campaigns in term ${m.term} without its own vote on disk`);
    if (m.type === 'append-accept' && m.term === model.term && m.index > model.lastIndex) {
      throw new Violation(
        'durable quorum',
        `${member.id} acknowledges ${m.index}, and its disk ends at ${model.lastIndex}`,
      );
    }
  }

  /** Entries that a member is about to apply. */
  applies(member: Watched, entry: Entry): void {
    const known = this.ledger[entry.index - 1];
    if (known === undefined || !sameEntry(known, entry))
      throw new Violation(
        'state machine safety',
        `${member.id} applies another entry ${entry.index}/${entry.term} than was committed`,
      );
    if (entry.index > member.model.lastIndex)
      throw new Violation(
        'durable quorum',
        `${member.id} applies ${entry.index}, and its own disk ends at ${member.model.lastIndex}`,
      );
  }

  /** A member's machine has applied up to `index`, by entries or by a snapshot. */
  applied(member: Watched, index: number): void {
    if (index > 0 && this.#digests[index - 1] !== member.machine.digest())
      throw new Violation(
        'state machine safety',
        `the machine of ${member.id} at ${index} differs from one that applied the same entries`,
      );
  }

  // ---------------------------------------------------------------- proposals and reads

  proposed(proposal: number, index: number, term: number): void {
    this.#proposals[proposal] = { index, term };
  }

  readAsked(member: number, ctx: number): void {
    this.#reads.set(ctx, { member, committed: this.ledger.length });
  }

  readAnswered(ctx: number, index: number): void {
    const read = this.#reads.get(ctx);
    if (read === undefined)
      throw new Violation('fresh reads', `read ${ctx} was answered twice, or after it was given up`);
    if (index < read.committed)
      throw new Violation(
        'fresh reads',
        `read ${ctx} at ${read.member} may see ${index}, and ${read.committed} was committed before it was asked`,
      );
    this.#reads.delete(ctx);
  }

  readAborted(ctx: number): void {
    if (!this.#reads.delete(ctx))
      throw new Violation('fresh reads', `read ${ctx} was given up twice, or after it was answered`);
  }

  memberStopped(id: number): void {
    for (const [ctx, read] of this.#reads) if (read.member === id) this.#reads.delete(ctx);
  }

  /** The first of the reads that wait for their end; Infinity when none does. */
  get oldestRead(): number {
    for (const ctx of this.#reads.keys()) return ctx;
    return Infinity;
  }

  /** A member restarted: nothing that it ever said may be forgotten. */
  restarted(member: Watched, node: RaftNode, why: string | undefined): void {
    if (why !== undefined) throw new Violation('restart', `${member.id}: ${why}`);
    if (node.term < member.spokenTerm)
      throw new Violation('monotonic', `${member.id} spoke in term ${member.spokenTerm} and restarts in ${node.term}`);
    member.term = node.term;
    member.commit = node.applied;
    member.ledTerm = 0;
    member.ledIndex = 0;
    member.ledIndexTerm = 0;
  }
}

/** Proposals of the simulated workload begin with their number. */
export function proposalNumber(data: Uint8Array): number {
  return ((data[0]! << 24) | (data[1]! << 16) | (data[2]! << 8) | data[3]!) >>> 0;
}

/** Data of a proposal: its number, then what it is. */
export function proposalData(proposal: number, command: Uint8Array): Uint8Array {
  const data = new Uint8Array(NUMBER_BYTES + command.length);
  data.set(command, NUMBER_BYTES);
  data[0] = proposal >>> 24;
  data[1] = proposal >>> 16;
  data[2] = proposal >>> 8;
  data[3] = proposal;
  return data;
}
