/**
 * Copies of shards in simulated time: servers that apply the log when they like, proposals that arrive late, twice or
 * never, processes that end and start again with empty memory, leaders that change, operators who change their minds.
 * What the metadata says is core/metadata, on each server; what the leader does is core/metadata/copy-policy.ts and
 * leader-policy.ts, under the leases of owner-leases.ts. The log is a list: test/sim has Raft.
 */
import { encodeProposal, type Command } from '../../../core/metadata/commands.js';
import type { ShardReset } from '../../../core/metadata/copy-commands.js';
import { Absences, nextCopies } from '../../../core/metadata/copy-policy.js';
import { isWhole } from '../../../core/metadata/copy-sets.js';
import { lostMove, nextOwners, takeFromDead } from '../../../core/metadata/leader-policy.js';
import { MetadataMachine } from '../../../core/metadata/machine.js';
import { GrantedLeases, heldMs } from '../../../core/metadata/owner-leases.js';
import { countedDead } from '../../../core/metadata/counted-dead.js';
import { nextReset } from '../../../core/metadata/shard-loss.js';
import type { Copy, LeaseTerms, MetadataState } from '../../../core/metadata/state.js';
import { Random } from '../../support/random.js';
import { CopyCheck, type Relied } from './check.js';
import { Server, type CopyMistake } from './server.js';
import type { Rec, Table } from './table.js';

const SERVERS = ['s1', 's2', 's3', 's4', 's5'];
const SHARDS = 3;
const TERMS: LeaseTerms = { leaseMs: 100, driftPpm: 0 };
/** Proposals under way, and those of one start of a server. */
const WAITING_MAX = 24;
const WAITING_EACH = 3;

interface Waiting {
  readonly from: string;
  readonly bytes: Uint8Array;
}

/** What only the leader of a term proposes: it is in the log in this term, or never. */
interface InTerm {
  readonly bytes: Uint8Array;
  /** Servers that are granted nothing until it is applied. */
  readonly withheld: readonly string[];
}

class Hasty extends GrantedLeases {
  override earlierStartsOverAt(): number {
    return -Infinity;
  }
}

export class CopiesWorld {
  readonly counters: Record<string, number> = {};
  readonly #random: Random;
  readonly #stepsEachMs: number;
  /** In one history of four copies are found to be none. */
  readonly #damages: boolean;
  /** In one of four the first tenant's values are on disks, and all servers lose their power at times. */
  readonly #durable: boolean;
  /** In half of those most servers acknowledge what their disks do not have yet. */
  readonly #early: boolean;
  readonly #truth = new MetadataMachine();
  readonly #log: Uint8Array[] = [];
  readonly #servers: Server[];
  readonly #check: CopyCheck;
  readonly #sequences = new Map<string, number>();
  /** Contents that clients may still read though their server has let go of them. */
  #left: { readonly relied: Relied; readonly untilMs: number }[] = [];
  readonly #waiting: Waiting[] = [];
  /** By copy: what was on a disk that is lost. */
  readonly #lostDisks = new Map<string, readonly Rec[]>();
  /** Pairs of servers whose data planes do not reach each other. */
  readonly #cuts = new Set<string>();
  #inTerm: InTerm[] = [];
  #leader: Server;
  #leases: GrantedLeases;
  #absences = new Absences();
  #nowMs = 0;
  #names = 0;
  steps = 0;

  constructor(
    seed: number,
    private readonly mistake?: CopyMistake,
    private readonly trace: (line: string) => void = () => undefined,
  ) {
    const random = new Random(seed);
    this.#random = random;
    this.#stepsEachMs = random.pick([1, 2, 4, 8]);
    this.#damages = seed % 4 === 3;
    this.#durable = seed % 4 === 2;
    this.#early = seed % 8 === 2;
    const around = {
      random,
      mood: {
        suspects: random.pick([6, 20, 60]),
        removes: random.pick([6, 20, 60]),
        handsOver: random.pick([6, 20, 60]),
      },
      mistake,
      nowMs: () => this.#nowMs,
      name: () => this.#name(),
      propose: (from: Server, command: Command) => this.#propose(from.start, command),
      server: (id: string) => this.#servers.find((s) => s.id === id),
      linked: (a: string, b: string) => !this.#cuts.has(pairOf(a, b)),
      leave: (shard: number, table: Table) => this.#leave(shard, table),
      crashed: (copy: string) => this.#check.crashed(copy),
      log: this.#log,
    };
    this.#servers = SERVERS.map((id) => new Server(id, around));
    if (this.#early) for (const server of this.#servers) server.early = random.below(4) > 0;
    this.#leader = this.#servers[0]!;
    this.#leases = this.#newLeases();
    this.#check = new CopyCheck(SHARDS, {
      logOf: (shard, copy) => this.#tableOf(shard, copy)?.log,
      isOnDisk: (shard, copy) =>
        this.#servers.some((s) => s.id === copy.member && !s.alive && s.disks.get(shard)?.id === copy.id),
      recordsOf: (shard, copy) => {
        const server = this.#servers.find((s) => s.id === copy.member);
        const there = server?.alive === true ? server.tables.get(shard) : server?.disks.get(shard);
        return there?.id === copy.id ? (there?.log ?? []) : [];
      },
      diskOf: (shard, copy) => {
        const server = this.#servers.find((s) => s.id === copy.member);
        const disk = server?.alive === true ? server.tables.get(shard)?.disk : server?.disks.get(shard);
        return disk?.id === copy.id ? (disk?.log ?? []) : [];
      },
      lostDiskOf: (copy) => this.#lostDisks.get(copy.id ?? ''),
      holdsLease: (copy) => (this.#process(copy)?.leaseUntilMs ?? -Infinity) > this.#nowMs,
      relied: () => this.#relied(),
    });
    this.#makeCluster();
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  get entries(): number {
    return this.#log.length;
  }

  run(steps: number): void {
    while (this.steps < steps) this.#step();
    this.counters.seen = this.#check.seenRecords;
    this.counters.givenUp = this.#check.givenUp;
    this.counters.lost = this.#check.lostRecords;
  }

  #makeCluster(): void {
    for (const server of this.#servers) server.begin(0);
    const joins = this.#waiting.splice(0);
    this.#commit(
      this.#encode(this.#name(), {
        t: 'bootstrap',
        clusterId: '1f'.repeat(16),
        hashSeed: '2f'.repeat(16),
        ticketSecret: '3f'.repeat(16),
        shards: SHARDS,
        voters: SERVERS,
        votersMax: 5,
        ownerLease: TERMS,
        tenants: [
          { name: 'b', shards: 1 },
          { name: 'c', shards: 1 },
        ],
      }),
    );
    for (const { bytes } of joins) this.#commit(bytes);
    for (let tenant = 0; tenant < SHARDS; tenant++) this.#commit(this.#encode(this.#name(), this.#policy(tenant)));
  }

  // ---- names, proposals, the log

  #name(): string {
    return (++this.#names).toString(16).padStart(16, '0');
  }

  #say(what: string): void {
    this.trace(what);
  }

  #count(kind: string): void {
    this.counters[kind] = (this.counters[kind] ?? 0) + 1;
  }

  #encode(proposer: string, command: Command): Uint8Array {
    const sequence = (this.#sequences.get(proposer) ?? 0) + 1;
    this.#sequences.set(proposer, sequence);
    return encodeProposal({ proposer, sequence, command });
  }

  #propose(proposer: string, command: Command): void {
    if (this.#waiting.filter((one) => one.from === proposer).length >= WAITING_EACH) return;
    this.#waiting.push({ from: proposer, bytes: this.#encode(proposer, command) });
    if (this.#waiting.length > WAITING_MAX) this.#waiting.splice(this.#random.below(WAITING_MAX), 1);
  }

  #commit(bytes: Uint8Array): void {
    const before = this.#truth.state;
    const { outcome, proposal } = this.#truth.apply(bytes);
    this.#log.push(bytes);
    const said = outcome === 'duplicate' ? outcome : outcome.ok ? 'ok' : outcome.message;
    this.#say(`entry ${this.#log.length} ${JSON.stringify(proposal.command)}: ${said}`);
    this.#count(`${proposal.command.t}${outcome !== 'duplicate' && outcome.ok ? '' : ' refused'}`);
    this.#check.committed(proposal, before, this.#truth.state);
  }

  #arrive(): void {
    if (this.#waiting.length === 0) return;
    const at = this.#random.below(this.#waiting.length);
    const [one] = this.#random.below(8) === 0 ? this.#waiting.slice(at, at + 1) : this.#waiting.splice(at, 1);
    if (one !== undefined && this.#random.below(12) > 0) this.#commit(one.bytes);
  }

  // ---- what the check asks

  #process(copy: Copy): Server | undefined {
    const server = this.#servers.find((s) => s.id === copy.member);
    return server?.alive === true && server.start === copy.start ? server : undefined;
  }

  #tableOf(shard: number, copy: Copy): Table | undefined {
    const table = this.#process(copy)?.tables.get(shard);
    return table?.id === copy.id ? table : undefined;
  }

  #leave(shard: number, table: Table): void {
    const relied = { who: `a table that is gone`, shard, copy: table.id, committed: committedOf(table) };
    if (table.clientsUntilMs > this.#nowMs) this.#left.push({ relied, untilMs: table.clientsUntilMs });
  }

  *#relied(): Generator<Relied> {
    for (const { relied, untilMs } of this.#left) if (untilMs > this.#nowMs) yield relied;
    for (const server of this.#servers) {
      if (!server.alive) continue;
      for (const [shard, table] of server.tables) {
        const answers = table.serving && this.#nowMs < server.rightMs(table);
        if (answers || this.#nowMs < table.clientsUntilMs)
          yield { who: server.id, shard, copy: table.id, committed: committedOf(table) };
      }
    }
  }

  // ---- steps

  #step(): void {
    this.steps++;
    if (this.#random.below(this.#stepsEachMs) === 0) this.#nowMs++;
    this.#left = this.#left.filter(({ untilMs }) => untilMs > this.#nowMs);
    if (this.#leader.alive) this.#leases.confirmed(this.#nowMs);
    const server = this.#random.pick(this.#servers);
    switch (this.#random.below(16)) {
      case 0:
      case 1:
      case 2:
        server.apply(Math.min(this.#log.length, server.applied + 1 + this.#random.below(4)));
        break;
      case 3:
      case 4:
      case 5:
      case 6:
      case 7:
        if (server.alive) for (const [s, table] of server.owned()) for (let i = 0; i < 3; i++) server.own(s, table);
        break;
      case 8:
        if (server.alive) server.suspect();
        break;
      case 9:
      case 10:
        this.#arrive();
        break;
      case 11:
      case 12:
        for (const one of this.#servers) this.#asks(one);
        break;
      case 13:
        this.#lead();
        break;
      case 14:
        this.#inTermArrives();
        break;
      case 15:
        this.#trouble(server);
        break;
    }
    if (this.#early && server.alive) server.writes();
    this.#check.stepped(this.#truth.state);
  }

  /** For its lease: it counts from now, and holds when the log is applied as far as the leader has. */
  #asks(server: Server): void {
    if (!server.alive || !this.#leader.alive || this.#random.below(6) === 0) return;
    if (!server.joined) {
      if (this.#random.below(16) === 0) server.join();
      return;
    }
    this.#leases.observe(this.#leader.state.members.values(), this.#nowMs);
    this.#leases.asked(server.id, this.#nowMs);
    if (!this.#leases.grant(server.id, this.#nowMs)) return;
    server.grant = { index: this.#leader.applied, untilMs: this.#nowMs + TERMS.leaseMs };
    if (server.applied >= server.grant.index) server.apply(server.applied);
  }

  #lead(): void {
    if (!this.#leader.alive || this.#random.below(40) === 0) {
      this.#newLeader();
      return;
    }
    if (this.#random.below(4) > 0) this.#leader.apply(this.#log.length);
    const { state } = this.#leader;
    if (this.#inTerm.length > 0 || state.clusterId === '') return;
    const leases = this.#leases;
    leases.observe(state.members.values(), this.#nowMs);
    this.#absences.observe(state, leases, this.#nowMs);
    const taken = takeFromDead(state, leases, this.#nowMs, this.#absences);
    const reset = taken === undefined ? (nextReset(state, leases, this.#nowMs) ?? this.#reset(state)) : undefined;
    const command = taken ?? reset ?? nextCopies(state, leases, this.#nowMs, this.#absences);
    const inTerm = command?.t === 'shards-taken' || command?.t === 'shards-given' || command?.t === 'shard-reset';
    if (command !== undefined && inTerm) {
      const bytes = this.#encode(this.#leader.start, command);
      const deadly = taken ?? reset;
      const withheld = deadly === undefined ? [] : countedDead(state, deadly);
      withheld.forEach((id) => leases.withhold(id));
      this.#inTerm.push({ bytes, withheld });
    } else if (command !== undefined) {
      this.#propose(this.#leader.start, command);
    } else {
      const next = nextOwners(state, leases, this.#nowMs) ?? this.#calledOff(state);
      if (next !== undefined) this.#propose(this.#leader.start, next);
    }
  }

  #calledOff(state: MetadataState): Command | undefined {
    return lostMove(state, this.#leases, this.#nowMs);
  }

  #inTermArrives(): void {
    const [one] = this.#inTerm.splice(0, 1);
    if (one === undefined) return;
    this.#commit(one.bytes);
    this.#leader.apply(this.#log.length);
    for (const id of one.withheld) this.#leases.release(id);
  }

  #newLeases(): GrantedLeases {
    const isHasty = this.mistake === 'leaders do not wait for the leases of earlier starts';
    return new (isHasty ? Hasty : GrantedLeases)(TERMS, this.#nowMs);
  }

  #newLeader(): void {
    const living = this.#servers.filter((s) => s.alive);
    if (living.length === 0) return;
    this.#count('leaders');
    if (this.#random.below(2) === 0) this.#inTermArrives();
    this.#inTerm = [];
    this.#leader = this.#random.pick(living);
    this.#leader.apply(this.#log.length);
    this.#leases = this.#newLeases();
    this.#absences = new Absences();
  }

  #trouble(server: Server): void {
    if (this.#durable && this.#random.below(80) === 0) this.#losePower();
    switch (this.#random.below(this.#damages ? 13 : 12)) {
      case 0:
      case 1:
      case 2:
        if (server.alive && this.#random.below(8) === 0) {
          this.#count('ends');
          const inOrder = this.#early && this.#random.below(3) === 0;
          this.#say(`${server.id} ends${inOrder ? ' in order' : ''}`);
          server.end(inOrder);
        }
        return;
      case 3:
      case 4:
      case 5:
      case 6:
        if (server.alive) return;
        if (this.#early && this.#random.below(6) === 0) server.early = !server.early;
        server.begin(this.#nowMs + heldMs(TERMS));
        this.#say(`${server.id} starts as ${server.start}`);
        return;
      case 7:
        if (this.#random.below(3) === 0) this.#operator();
        return;
      case 8:
      case 9: {
        const pair = pairOf(server.id, this.#random.pick(SERVERS));
        this.#count('cuts');
        this.#cuts.add(pair);
        return;
      }
      case 10:
      case 11:
        if (this.#cuts.size > 0) this.#cuts.delete(this.#random.pick([...this.#cuts]));
        return;
      case 12: {
        const copies = [...server.tables.values()].filter((table) => table.role === 'backup');
        if (copies.length === 0 || this.#random.below(4) > 0) return;
        this.#count('damages');
        this.#random.pick(copies).damaged = true;
        return;
      }
      default:
    }
  }

  #losePower(): void {
    this.#count('powers');
    this.#say('the power is gone');
    for (const server of this.#servers) {
      if (server.alive) server.end();
      // A disk may be lost with it.
      const [[shard, disk] = []] = server.disks;
      if (shard === undefined || disk === undefined || this.#random.below(12) > 0) continue;
      this.#check.crashed(disk.id);
      this.#lostDisks.set(disk.id, disk.log);
      server.disks.delete(shard);
    }
  }

  #operator(): void {
    const random = this.#random;
    if (random.below(3) === 0) {
      const id = random.pick(SERVERS);
      const draining = this.#truth.state.servers.some((s) => s.id === id && s.draining);
      this.#propose(this.#name(), { t: 'server-drain', id, draining: !draining });
      return;
    }
    if (random.below(2) === 0) {
      const { shard, epoch } = random.pick(this.#truth.state.shards);
      this.#propose(this.#name(), { t: 'shard-move', shard, epoch, to: random.pick(SERVERS) });
      return;
    }
    this.#propose(this.#name(), this.#policy(random.below(SHARDS)));
  }

  /** The first tenant's shards wait when they are lost, the others' are served empty; the last is a cache at times. */
  #policy(tenant: number): Command {
    const random = this.#random;
    if (tenant === 2 && random.below(2) === 0)
      return { t: 'policy-set', tenant, level: 'cache', replicas: 1, minInSync: 1, onLoss: 'empty' };
    const replicas = 2 + random.below(3);
    const minInSync = random.below(2) === 0 ? Math.min(3, replicas) : 1 + random.below(replicas);
    return {
      t: 'policy-set',
      tenant,
      level: tenant === 0 && this.#durable ? 'durable' : 'replicated',
      replicas,
      minInSync,
      onLoss: tenant === 0 ? 'wait' : 'empty',
    };
  }

  /** Of a shard whose copies are all believed to be lost; operators may be wrong about some. */
  #reset(state: MetadataState): ShardReset | undefined {
    if (this.#random.below(8) > 0) return undefined;
    for (const { shard, epoch, owner } of state.shards) {
      const set = state.copySets[shard];
      if (set === undefined || epoch === 0) continue;
      const isOver =
        owner === undefined ? this.#nowMs >= this.#leases.earlierStartsOverAt() : this.#leases.dead(owner, this.#nowMs);
      if (!isOver) continue;
      const lost = set.copies.filter((c) => isWhole(c) && this.#process(c) === undefined);
      const to = this.#servers.find((s) => s.alive && s.joined && s.id !== owner);
      if (to === undefined) return undefined;
      const stale = to.tables.get(shard);
      const from =
        stale?.role === 'backup' && this.#random.below(2) === 0
          ? { from: { start: to.start, copy: stale.id, worker: 0 } }
          : {};
      const ids = lost.flatMap((c) => c.id ?? []);
      return { t: 'shard-reset', shard, epoch, config: set.config, to: to.id, lost: ids, ...from };
    }
    return undefined;
  }
}

function pairOf(a: string, b: string): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`;
}

function committedOf(table: Table): readonly Rec[] {
  return table.log.slice(0, table.committed);
}
