/**
 * Owner leases under the simulator: the members are owners of shards too. They ask the leader for leases, serve what
 * the metadata gives them, die, are paused and cut off; leaders take shards from owners
 * whose leases are over. All decisions are the real ones of core/metadata and core/shards; the data plane is simulated
 * (plane.ts), and the wiring of leases (server/metadata/lease-grantor.ts, lease-holder.ts) is written here once more, as
 * small as can be.
 *
 * Checked: never two owners that clients may rely on for one shard (claims.ts). Where shards have copies (owner-copies.ts)
 * they are handed over too, with all that clients have seen.
 */
import { encodeProposal, type Command } from '../../core/metadata/commands.js';
import { lostMove, nextLookMs, nextOwners, takeFromDead } from '../../core/metadata/leader-policy.js';
import { GrantedLeases, HeldLease } from '../../core/metadata/owner-leases.js';
import { countedDead } from '../../core/metadata/counted-dead.js';
import { nextReset } from '../../core/metadata/shard-loss.js';
import type { LeaseTerms, MetadataState } from '../../core/metadata/state.js';
import type { Ready } from '../../core/raft/index.js';
import { Violation } from './checker.js';
import { Claims } from './claims.js';
import { Clocks } from './clocks.js';
import { ByClockAlone, Fairness, StandingStill } from './fairness.js';
import type { SimMember } from './member.js';
import type { Life, Note, OwnerCounters, OwnerMessage } from './owner-life.js';
import { setUp, unrest } from './owner-plans.js';
import type { Machine } from './machine.js';
import { MetadataModel } from './metadata-application.js';
import { UNFAIR, type Mistake } from './mistakes.js';
import { CopyTables } from './copy-tables.js';
import { OwnerCopies, type Copied } from './owner-copies.js';
import { Plane } from './plane.js';
import type { World } from './world.js';

const SHARDS = 6;
const TERMS: LeaseTerms = { leaseMs: 200, driftPpm: 20_000 };
const RENEW_MS = 50;
/** Reads of this layer, told from the workload's. */
export const OWNER_READS = 2 ** 40;

const idOf = (member: number): string => `m${member}`;
const memberOf = (id: string): number => Number(id.slice(1));
const hex = (n: number): string => n.toString(16).padStart(16, '0');

export class Owners {
  readonly counters: OwnerCounters = { grants: 0, claims: 0, taken: 0, refused: 0 };
  readonly #lives = new Map<number, Life>();
  readonly #clocks = new Clocks(() => this.world, TERMS.driftPpm);
  readonly #claims = new Claims(() => this.world.now);
  /** What a data directory remembers: by its own clock, until when the leases of earlier lives may be relied on. */
  readonly #served = new Map<number, number>();
  readonly #first: readonly number[];
  readonly #fairness = new Fairness(() => this.world.now, TERMS.leaseMs);
  #names = 0;
  #readIndex = OWNER_READS;
  #proposals = 0;
  #starts = 0;
  /** Where shards have copies. */
  readonly copies: OwnerCopies | undefined;

  constructor(
    private readonly world: World,
    private readonly mistake: Mistake | undefined,
    first: readonly number[],
    /** With copies: what applies each entry once, when it is committed. */
    reference?: Machine,
  ) {
    this.#first = first;
    if (!(reference instanceof MetadataModel)) return;
    const copies = new OwnerCopies(world, SHARDS, () => this.#copied());
    reference.heard = (proposal, before, after) => copies.committed(proposal, before, after);
    this.copies = copies;
  }

  /** Without faults what is to be in sync is so, in bounded time. */
  settle(): void {
    this.copies?.settle();
  }

  *#copied(): Generator<Copied> {
    for (const [member, { incarnation, lease, plane, copies: tables }] of this.#lives)
      if (tables !== undefined)
        yield {
          id: idOf(member),
          incarnation,
          tables,
          holdsLease: () => lease.held(this.#clocks.nowMs(member)),
          rightMs: (shard) => tables.rightMs(shard, lease.untilMs),
          grantedMs: (shard) => plane.grantedMs(shard),
          nowMs: () => this.#clocks.nowMs(member),
        };
  }

  #tables(member: SimMember, plane: () => Plane): CopyTables | undefined {
    const { copies, world } = this;
    if (copies === undefined) return undefined;
    return new CopyTables({
      random: world.random,
      nowMs: () => this.#clocks.nowMs(member.id),
      record: () => copies.record(),
      reach: (id, start) => {
        const other = world.members.get(memberOf(id));
        const cut = world.links.cut(member.id, memberOf(id)) || world.links.cut(memberOf(id), member.id);
        const life = this.#lives.get(memberOf(id));
        return cut || other === undefined || other.paused || life?.incarnation !== start ? undefined : life.copies;
      },
      notice: (shard, copy, what) => plane().input((shards) => shards.copyNoticed(shard, copy, what)),
      ownerSuspected: (shard, copy, suspicion) =>
        plane().input((shards) => shards.ownerSuspected(shard, copy, suspicion)),
      counted: (what) => copies.count(what),
      linked: (owner) => copies.linked(idOf(member.id), owner),
    });
  }

  started(member: SimMember): void {
    this.#fairness.resumed(member.id);
    const incarnation = hex(++this.#starts);
    const asked: Life['asked'] = new Map();
    const lease = new HeldLease();
    const copies = this.#tables(member, () => plane);
    const plane: Plane = new Plane({
      ...(copies === undefined ? {} : { copies }),
      memberId: idOf(member.id),
      memberIncarnation: incarnation,
      leaseMs: TERMS.leaseMs,
      random: this.world.random,
      nowMs: () => this.#clocks.nowMs(member.id),
      random64: () => hex(2 ** 41 + ++this.#names),
      metadata: () => stateOf(member),
      planeOf: (id, start) =>
        [...this.#lives].find(([other, life]) => idOf(other) === id && life.incarnation === start)?.[1].plane,
      propose: (command, settle) => {
        const proposer = this.#proposer();
        asked.set(proposer, {
          command,
          settle,
          untilMs: this.#clocks.nowMs(member.id) + 2 * RENEW_MS + this.world.random.below(4 * RENEW_MS),
        });
        this.#offer(member, proposer, command);
      },
      claim: (shard, epoch, untilMs) => {
        this.#claims.add(shard, member.id, epoch, this.#clocks.worldUs(member.id, untilMs));
        this.counters.claims++;
        this.#served.set(member.id, Math.max(this.#served.get(member.id) ?? -Infinity, untilMs));
      },
    });
    this.#lives.set(member.id, {
      incarnation,
      lease,
      plane,
      copies,
      asked,
      askedMs: -Infinity,
      grants: [],
      inbox: [],
      grantor: undefined,
      reads: new Map(),
      proposedMs: -Infinity,
      joinedMs: -Infinity,
      earlierUntil: this.#served.get(member.id) ?? -Infinity,
      seen: { metadata: undefined, over: false },
    });
  }

  stopped(member: SimMember): void {
    this.#lives.delete(member.id);
  }

  // ---------------------------------------------------------------- what members do

  tick(member: SimMember): void {
    const life = this.#lives.get(member.id);
    const { node } = member;
    if (life === undefined || node === undefined) return;
    const now = this.#clocks.nowMs(member.id);
    if (node.leader !== 0 && now - life.askedMs >= RENEW_MS) {
      life.askedMs = now;
      this.#send(member, node.leader, { t: 'ask', sentMs: now, incarnation: life.incarnation });
    }
    if (node.role === 'leader') {
      this.#lead(member, life);
      this.#listen(member, life, now);
    }
    this.#own(member, life);
    if (node.role === 'leader' && !this.world.forgetLate && this.world.random.below(150) === 0)
      this.#standStill(member);
  }

  /**
   * The leader alone, cut off too; or with others of its host; or all. Or an owner alone, which goes on just when it is
   * taken for dead.
   */
  #standStill(leader: SimMember): void {
    const { random } = this.world;
    const members = [...this.world.members.values()];
    const part = random.below(6);
    if (part < 2) this.world.setAside(leader);
    else if (part < 4) this.world.suspend([random.pick(members)], 1000 * (TERMS.leaseMs + random.below(60)));
    else
      this.world.suspend(
        members.filter((m) => m === leader || part === 5 || random.below(2) === 0),
        this.world.around(random.pick([50_000, 200_000, 1_000_000])),
      );
  }

  paused(member: SimMember): void {
    this.#fairness.paused(member.id);
  }

  /** It goes on: its timers run before it reads what came meanwhile. */
  resumed(member: SimMember): void {
    this.#fairness.resumed(member.id);
    this.tick(member);
    this.#read(member);
  }

  /** Behind the driver's work on one Ready. */
  progressed(member: SimMember, ready: Ready): void {
    const life = this.#lives.get(member.id);
    const { node } = member;
    if (life === undefined || node === undefined) return;
    for (const { ctx, index } of ready.readStates) {
      const read = life.reads.get(ctx);
      if (read !== undefined) read.index = index;
    }
    for (const ctx of ready.abortedReads) life.reads.delete(ctx);
    this.#settleTaking(member, life);
    for (const [ctx, read] of life.reads) {
      if (read.index === undefined || read.index > node.applied) continue;
      life.reads.delete(ctx);
      if (node.role === 'leader' && read.term === node.term) this.#confirmed(member, life, read.from, read.note);
    }
    // What was taken is closed before a lease counts.
    this.#see(member, life);
    this.#counted(member, life);
    this.#read(member);
  }

  receive(message: OwnerMessage): void {
    const { from, to, note } = message;
    const member = this.world.members.get(to);
    const life = this.#lives.get(to);
    const node = member?.node;
    if (member === undefined || life === undefined || node === undefined) return;
    if (note.t === 'ask' && node.role === 'leader' && isMember(member, from, note))
      this.#fairness.arrived(to, idOf(from), note.incarnation);
    life.inbox.push(message);
    this.#read(member);
    member.pump();
  }

  #read(member: SimMember): void {
    const life = this.#lives.get(member.id);
    while (life !== undefined && !member.paused && !member.writing) {
      const message = life.inbox.shift();
      if (message === undefined) return;
      this.#take(member, life, member.node!, message);
    }
  }

  #take(member: SimMember, life: Life, node: NonNullable<SimMember['node']>, { from, to, note }: OwnerMessage): void {
    switch (note.t) {
      case 'ask':
        if (node.role === 'leader') this.#ask(member, life, from, note);
        break;
      case 'grant':
        if (note.life === member.life)
          life.grants.push({ sentMs: note.sentMs, gotMs: this.#clocks.nowMs(to), index: note.index });
        this.#counted(member, life);
        break;
      case 'propose':
        this.#propose(member, note.command, note.proposer);
    }
  }

  // ---------------------------------------------------------------- the leader

  #ask(member: SimMember, life: Life, from: number, note: Extract<Note, { t: 'ask' }> | undefined): void {
    const node = member.node!;
    if (this.mistake === 'any leader is believed' && note !== undefined && life.grantor !== undefined) {
      this.#confirmed(member, life, from, note);
      return;
    }
    if (note !== undefined && life.grantor?.term === node.term && isMember(member, from, note))
      life.grantor.leases.asked(idOf(from), this.#clocks.nowMs(member.id));
    const ctx = ++this.#readIndex;
    life.reads.set(ctx, { from, note, index: undefined, term: node.term });
    if (node.readIndex(ctx) !== undefined) life.reads.delete(ctx);
  }

  /** A quorum has confirmed this leader after the question came. */
  #confirmed(member: SimMember, life: Life, from: number, note: Extract<Note, { t: 'ask' }> | undefined): void {
    const node = member.node!;
    const now = this.#clocks.nowMs(member.id);
    if (life.grantor?.term !== node.term) {
      life.grantor = { term: node.term, leases: this.#leases(now), taking: new Map(), lookMs: undefined };
      this.#fairness.leads(member.id);
    }
    life.grantor.leases.confirmed(now);
    if (note === undefined) return;
    const id = idOf(from);
    if (!isMember(member, from, note)) return;
    if (!life.grantor.leases.grant(id, now)) {
      this.counters.refused++;
      return;
    }
    this.counters.grants++;
    this.#send(member, from, {
      t: 'grant',
      sentMs: note.sentMs,
      index: node.applied,
      life: this.world.members.get(from)?.life ?? 0,
    });
    this.#lead(member, life);
  }

  #leases(nowMs: number): GrantedLeases {
    if (this.mistake === 'new leaders do not wait') return new ByClockAlone(TERMS, nowMs - 10 * TERMS.leaseMs);
    if (this.mistake === 'leaders call owners dead by the clock alone') return new ByClockAlone(TERMS, nowMs);
    return this.mistake === 'leaders count the time in which they stood still'
      ? new StandingStill(TERMS, nowMs)
      : new GrantedLeases(TERMS, nowMs);
  }

  /** Asks a quorum when owners may be dead, as LeaderDuties does. */
  #listen(member: SimMember, life: Life, now: number): void {
    const { grantor, reads } = life;
    if (grantor?.lookMs === undefined || grantor.term !== member.node!.term || now < grantor.lookMs) return;
    if (![...reads.values()].some((r) => r.note === undefined && r.term === grantor.term))
      this.#ask(member, life, member.id, undefined);
  }

  #lead(member: SimMember, life: Life): void {
    const node = member.node!;
    const state = stateOf(member);
    const now = this.#clocks.nowMs(member.id);
    if (life.grantor?.term !== node.term) {
      if (![...life.reads.values()].some((r) => r.note === undefined && r.term === node.term))
        this.#ask(member, life, member.id, undefined);
      return;
    }
    const { leases, taking } = life.grantor;
    leases.observe(state.members.values(), now);
    const take = takeFromDead(state, leases, now);
    life.grantor.lookMs = nextLookMs(state, leases, now);
    if (life.grantor.lookMs !== undefined && life.grantor.lookMs <= now)
      throw new Violation('owner leases', 'the leader would look again in the past');
    if (take !== undefined) {
      // An owner that has started again has lost what it had.
      const alive = this.#lives.get(memberOf(take.id))?.incarnation === take.incarnation;
      if (alive && (this.mistake === undefined || UNFAIR.includes(this.mistake)))
        this.#fairness.taken(member.id, take.id, take.incarnation);
      const proposer = this.#propose(member, take);
      if (proposer === undefined) return;
      if (this.mistake !== 'grants go on while shards are taken') {
        const dead = countedDead(state, take);
        dead.forEach((id) => leases.withhold(id));
        taking.set(proposer, dead);
      }
      this.counters.taken++;
      return;
    }
    if (now - life.proposedMs < RENEW_MS) return;
    life.proposedMs = now;
    const reset = nextReset(state, leases, now) ?? this.copies?.reset(state, leases, now);
    if (reset !== undefined) {
      this.#reset(member, life.grantor, reset, countedDead(state, reset));
      return;
    }
    const command =
      this.copies?.due(state, leases, now) ??
      setUp(state, this.#first.map(idOf), TERMS, SHARDS) ??
      nextOwners(state, leases, now) ??
      lostMove(state, leases, now) ??
      this.copies?.unrest() ??
      unrest(this.world, state);
    if (command !== undefined) this.#propose(member, command);
  }

  /** The servers that it counts as dead are granted nothing until it is known what became of that. */
  #reset(member: SimMember, { leases, taking }: NonNullable<Life['grantor']>, reset: Command, dead: string[]): void {
    const proposer = this.#propose(member, reset);
    if (proposer === undefined) return;
    dead.forEach((id) => leases.withhold(id));
    taking.set(proposer, dead);
  }

  /** The outcome of what was proposed in this term has been applied. */
  #settleTaking(member: SimMember, life: Life): void {
    if (life.grantor === undefined) return;
    const done = modelOf(member);
    for (const [proposer, ids] of life.grantor.taking) {
      if (!done.applied(proposer)) continue;
      life.grantor.taking.delete(proposer);
      for (const id of ids) life.grantor.leases.release(id);
    }
  }

  #proposer(): string {
    return hex(2 ** 40 + ++this.#proposals);
  }

  /** The proposer, which is used once; undefined when it was not taken. */
  #propose(member: SimMember, command: Command, proposer = this.#proposer()): string | undefined {
    const taken = this.world.workload.proposeBytes(member, encodeProposal({ proposer, sequence: 1, command }));
    return taken ? proposer : undefined;
  }

  // ---------------------------------------------------------------- the owner

  /** Grants whose part of the log is applied count. */
  #counted(member: SimMember, life: Life): void {
    const node = member.node!;
    const now = this.#clocks.nowMs(member.id);
    const ready = life.grants.filter(
      (g) => g.index <= node.applied || this.mistake === 'owners do not read the log first',
    );
    if (ready.length === 0) return;
    life.grants = life.grants.filter((g) => !ready.includes(g));
    for (const g of ready)
      life.lease.granted(this.mistake === 'leases count from the answer' ? g.gotMs : g.sentMs, TERMS.leaseMs);
    if (life.lease.held(now)) life.plane.grant(life.lease.untilMs);
  }

  /** Joins, and does what is due. */
  #own(member: SimMember, life: Life): void {
    const state = stateOf(member);
    const now = this.#clocks.nowMs(member.id);
    if (state.clusterId === '' || !this.#first.includes(member.id)) return;
    this.#see(member, life);
    this.#join(member, life, state, now);
    life.plane.tick();
    life.copies?.tick(life.lease.held(now) ? life.lease.untilMs : -Infinity);
    this.copies?.stepped();
    // An earlier life's leases are waited for.
    if (!life.seen.over && life.lease.held(now) && now >= life.earlierUntil) {
      life.seen.over = true;
      life.plane.input((shards) => shards.lastRunOver());
    }
    if (life.lease.held(now)) life.plane.grant(life.lease.untilMs);
    for (const [proposer, { command, settle, untilMs }] of life.asked) {
      if (modelOf(member).applied(proposer) || now >= untilMs) {
        life.asked.delete(proposer);
        settle();
      } else if (this.world.random.below(20) === 0) this.#offer(member, proposer, command);
    }
  }

  #join(member: SimMember, life: Life, state: MetadataState, now: number): void {
    const id = idOf(member.id);
    const present = state.members.get(id);
    if (present?.incarnation === life.incarnation || now - life.joinedMs < RENEW_MS) return;
    life.joinedMs = now;
    this.#offer(member, this.#proposer(), {
      t: 'member-join',
      id,
      incarnation: life.incarnation,
      ...(present === undefined ? {} : { replaces: present.incarnation }),
      instance: hex(member.id),
      control: ['127.0.0.1:1'],
      fabric: [],
      memoryBytes: 1 << 20,
    });
  }

  #see(member: SimMember, life: Life): void {
    const state = stateOf(member);
    if (life.seen.metadata === state) return;
    life.seen.metadata = state;
    life.plane.input((shards) => shards.see(state));
  }

  /** To the leader, wherever it is. */
  #offer(member: SimMember, proposer: string, command: Command): void {
    const leader = member.node?.leader ?? 0;
    if (leader !== 0) this.#send(member, leader, { t: 'propose', command, proposer });
  }

  #send(member: SimMember, to: number, note: Note): void {
    this.world.sendOwner({ from: member.id, to, note });
  }
}

/** Whether this start of the owner is the one that the leader's metadata knows. */
function isMember(leader: SimMember, owner: number, { incarnation }: Extract<Note, { t: 'ask' }>): boolean {
  return stateOf(leader).members.get(idOf(owner))?.incarnation === incarnation;
}

function stateOf(member: SimMember): MetadataState {
  return modelOf(member).state;
}

function modelOf({ machine }: SimMember): MetadataModel {
  if (!(machine instanceof MetadataModel)) throw new TypeError('owners need the metadata for their state machine');
  return machine;
}
