/**
 * What the metadata's leader does of itself: makes the cluster when there is none, gives shards to members, takes them
 * from dead ones, and keeps the Raft group what the metadata says. Every server has one of these; only the leader's
 * acts. What it proposes twice, or too late, the machine refuses. What is due when is decided in
 * core/metadata/leader-policy.ts.
 */
import { FarkvError } from '../../core/errors.js';
import type { Bootstrap, Command, ShardsTaken } from '../../core/metadata/commands.js';
import { Absences } from '../../core/metadata/copy-policy.js';
import { nextReset, planReset, type ResetAsked } from '../../core/metadata/shard-loss.js';
import { isGone } from '../../core/metadata/copy-sets.js';
import { dueCommand, nextLookMs, nextOwners } from '../../core/metadata/leader-policy.js';
import { keepersOf } from '../../core/metadata/placement.js';
import { Failovers } from '../../core/metadata/failovers.js';
import { MovedVotes } from '../../core/metadata/voter-policy.js';
import type { CopyState, MetadataState } from '../../core/metadata/state.js';
import type { MemberChange, RaftStatus } from '../../core/raft/index.js';
import { describeError, type Log } from '../log.js';
import type { MetadataDriver } from './driver.js';
import type { GrantState } from './lease-grantor.js';
import { noLeader } from './no-leader.js';
import { endedMoves } from './ended-moves.js';
import type { Outcome } from './proposer.js';

/** What a cluster that this server makes has. */
export type ClusterMade = Omit<Bootstrap, 't' | 'clusterId' | 'hashSeed' | 'ticketSecret' | 'madeMs'>;

export interface LeaderDutiesOptions {
  readonly made: ClusterMade;
  /** Whether the metadata names this start of the server; what comes before that in the log is past. */
  readonly hasJoined: (state: MetadataState) => boolean;
  /** How long all servers are waited for before the shards are given to those that came. */
  readonly assignAfterMs: number;
  /** A voter that has been dead for so long loses its vote to a learner; Infinity: never. */
  readonly replaceVoterMs?: number;
  readonly driver: Pick<MetadataDriver, 'leads' | 'term' | 'state' | 'status' | 'proposeChange' | 'knownFormat'>;
  /** Undefined while this server does not lead. */
  readonly grantor: () => GrantState | undefined;
  /** Resolves with true when a quorum has confirmed this server as the leader (LeaseGrantor.listen). */
  readonly listen: () => Promise<boolean>;
  readonly nowMs: () => number;
  /** By default this machine's. */
  readonly wallMs?: () => number;
  readonly propose: (command: Command, timeoutMs: number) => Promise<Outcome>;
  /** Proposes in this term or not at all. */
  readonly proposeInTerm: (command: Command, term: number) => Promise<Outcome>;
  /** Random bytes as hex. */
  readonly randomHex: (bytes: number) => string;
  readonly log: Log;
}

/** What a reset takes, or would take: where the shard goes, and the copies that are given up. */
export interface ResetDone {
  readonly to: string;
  readonly lost: readonly {
    readonly member: string;
    readonly state: CopyState;
    /** For how long the leader has found it dead. */
    readonly silentMs: number;
  }[];
}

/** What rests on what the leader of this term knows, and so is proposed in it or not at all. */
const IN_TERM: ReadonlySet<Command['t']> = new Set(['shards-taken', 'shards-given', 'raise-format', 'shard-reset']);
const PROPOSE_MS = 10_000;
const RETRY_MS = 1000;
/** A learner that lacks no more entries than this may vote. */
const CAUGHT_UP = 64;
const RECONCILE_MS = 100;
/** The ticket secret is exchanged so often. */
export const ROTATE_MS = 24 * 3_600_000;
const ROTATE_LOOK_MS = 600_000;

export class LeaderDuties {
  readonly #options: LeaderDutiesOptions;
  #absences = new Absences();
  #before: MetadataState | undefined;
  /** In which this server leads, or led last. */
  #term = 0;
  readonly #movedVotes = new MovedVotes();
  readonly #failovers = new Failovers();
  #joined = false;
  #busy = false;
  #listening = false;
  #again = false;
  #patience: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #next: NodeJS.Timeout | undefined;
  readonly #daily: NodeJS.Timeout;
  #impatient = false;
  #closed = false;
  /** Shards of which it was said that they are lost. */
  #gone: ReadonlySet<number> = new Set();

  constructor(options: LeaderDutiesOptions) {
    this.#options = options;
    this.#daily = setInterval(() => this.look(), ROTATE_LOOK_MS).unref();
  }

  /** To be called when the leader, the metadata, the Raft group or a lease changed. */
  look(): void {
    if (this.#closed) return;
    this.#observe();
    this.#reconcile();
    if (this.#busy) this.#again = true;
    else void this.#act();
  }

  /** Whose votes have gone to others, and whose shards, since this server started. */
  get shown(): { readonly movedVotes: MovedVotes['all']; readonly failovers: ReturnType<Failovers['all']> } {
    return { movedVotes: this.#movedVotes.all, failovers: this.#failovers.all(this.#options.nowMs()) };
  }

  /** Shards whose owner was replaced unplanned, since this server started. */
  get failedOver(): number {
    return this.#failovers.shards;
  }

  #sayMoves(): void {
    const { driver, log } = this.#options;
    const before = this.#before;
    this.#before = driver.state;
    if (before === undefined || before.moves === driver.state.moves || !driver.leads) return;
    for (const { shard, from, to, why } of endedMoves(before, driver.state))
      log.warn(`the move of shard ${shard} (${from} -> ${to}) is over, and ${from} goes on to serve it: ${why}`, {
        ...{ event: 'move-cancelled', shard, from, to },
      });
  }

  #sayGone(): void {
    const { driver, log } = this.#options;
    if (!driver.leads) return;
    const gone = driver.state.shards.filter((s) => isGone(driver.state, s)).map(({ shard }) => shard);
    const fresh = gone.filter((shard) => !this.#gone.has(shard));
    this.#gone = new Set(gone);
    if (fresh.length > 0)
      log.warn(
        `shards ${fresh.join(', ')} are lost: every server that had a copy has started again since, and came back without it. They wait for an operator: farkv shard reset all --accept-loss serves them empty; of durable ones a later start may still read the disk`,
        { event: 'shards-lost', shards: fresh.join() },
      );
  }

  /** Also while another server leads: this one may be the next. */
  #observe(): void {
    const { driver, nowMs, hasJoined } = this.#options;
    const { term } = driver;
    // What this server saw when it led before may have changed since.
    if (driver.leads && term !== this.#term) {
      this.#term = term;
      this.#absences = new Absences();
    }
    this.#movedVotes.observe(driver.state);
    // Also the first state that names this start: all that it missed may have been applied with its joining.
    this.#failovers.observe(driver.state, nowMs(), !this.#joined);
    this.#joined ||= hasJoined(driver.state);
    this.#sayGone();
    this.#sayMoves();
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#daily);
    for (const timer of [this.#patience, this.#retry, this.#next]) clearTimeout(timer);
  }

  async #act(): Promise<void> {
    this.#busy = true;
    try {
      do {
        this.#again = false;
        const command = this.#closed ? undefined : this.#due();
        if (command === undefined) continue;
        const outcome = await this.#do(command);
        // Whatever the outcome, the state says what is due now.
        if (outcome === 'unknown' || outcome.ok) this.#again = true;
        else this.#options.log.debug(`${command.t} was refused: ${outcome.message}`);
        if (command.t === 'tickets-rotate' && outcome !== 'unknown' && outcome.ok)
          this.#options.log.audit({ event: command.t, role: 'leader', result: 'ok' });
      } while (this.#again);
      this.#lookInTime();
    } catch (error) {
      if (this.#closed) return;
      this.#options.log.debug(`a task of the leader failed and will be retried: ${describeError(error)}`);
      clearTimeout(this.#retry);
      this.#retry = setTimeout(() => this.look(), RETRY_MS);
    } finally {
      this.#busy = false;
    }
  }

  /** Owners die without saying so. While a quorum does not answer there is nothing to look for, and no timer runs. */
  #lookInTime(): void {
    const { driver, grantor, nowMs } = this.#options;
    const leases = grantor()?.leases;
    const now = nowMs();
    const at =
      leases === undefined ? undefined : nextLookMs(driver.state, leases, now, this.#absences, this.#replaceMs);
    clearTimeout(this.#next);
    if (at !== undefined && !this.#closed && !this.#listening)
      this.#next = setTimeout(() => void this.#listen(), Math.ceil(at - now));
  }

  async #listen(): Promise<void> {
    this.#listening = true;
    const heard = await this.#options.listen();
    this.#listening = false;
    if (heard || this.#closed) this.look();
    // Too much is asked of the Raft member now, or it leads no longer.
    else this.#next = setTimeout(() => this.look(), RECONCILE_MS);
  }

  async #do(command: Command): Promise<Outcome> {
    const { propose, proposeInTerm, grantor, log, driver } = this.#options;
    if (command.t === 'voters-set') this.#sayVoters(driver.state.voters, command.voters);
    if (!IN_TERM.has(command.t)) return await propose(command, PROPOSE_MS);
    const current = grantor();
    if (current === undefined) return 'unknown';
    // In the term in which the servers reported what they know, or in which the leases were granted (lease-grantor.ts).
    if (command.t === 'shard-reset')
      log.warn(`no server that has values of shard ${command.shard} is there: it goes to ${command.to}, empty`, {
        ...{ event: 'shard-is-reset', shard: command.shard, to: command.to, empty: true },
      });
    if (command.t !== 'shards-taken') return await proposeInTerm(command, current.term);
    log.warn(
      `${command.id} has been silent for longer than its lease: its ${command.shards.length} shards go to others, ${takenHow(command)}`,
      { event: 'failover', server: command.id, shards: command.shards.length },
    );
    return await this.#take(command, command.id, current);
  }

  #sayVoters(before: readonly string[], after: readonly string[]): void {
    const to = after.filter((id) => !before.includes(id)).join(', ');
    for (const id of before.filter((voter) => !after.includes(voter))) {
      const silentMs = this.#absences.silentMs(id, this.#options.nowMs());
      this.#options.log.warn(
        `${id} has been silent for ${Math.round(silentMs / 1000)} s: ${to} votes in its place, and ${id} is a learner when it comes back`,
        { event: 'voter-replaced', server: id, to, silentMs: Math.round(silentMs) },
      );
    }
  }

  /** Takes shards from a dead owner. */
  async #take(command: Command, owner: string, { leases, term }: GrantState): Promise<Outcome> {
    // From here on it is granted nothing, until it is certain what became of the entry. If this term ends before, the
    // next leader knows.
    leases.withhold(owner);
    try {
      const outcome = await this.#options.proposeInTerm(command, term);
      leases.release(owner);
      return outcome;
    } catch (error) {
      if (error instanceof FarkvError && error.code === 'ERR_BUSY') leases.release(owner);
      throw error;
    }
  }

  /**
   * For an operator, who is told what a shard that waits for copies would lose; `accepted`: and who accepts that. Throws
   * as planReset, and ERR_NO_LEADER when this server does not lead.
   */
  async reset(asked: ResetAsked, accepted: boolean): Promise<ResetDone> {
    const { driver, grantor, listen, nowMs, log } = this.#options;
    const heard = await listen();
    const current = grantor();
    if (!heard || current === undefined) throw noLeader();
    const { leases } = current;
    const now = nowMs();
    leases.observe(driver.state.members.values(), now);
    const { command, lost } = planReset(driver.state, asked, leases, now);
    const done = {
      to: command.to,
      lost: lost.map(({ member, state }) => ({ member, state, silentMs: this.#absences.silentMs(member, now) })),
    };
    if (!accepted) return done;
    const owner = driver.state.shards[command.shard]?.owner;
    if (owner !== undefined && leases.withheld(owner))
      throw new FarkvError('ERR_BUSY', `shards of ${owner} are being given to others: try again`);
    log.warn(
      `shard ${command.shard} is reset by an operator: it goes to ${command.to}, ${command.from === undefined ? 'empty' : 'with a copy that may lack changes'}`,
      { event: 'shard-is-reset', shard: command.shard, to: command.to, empty: command.from === undefined },
    );
    const outcome =
      owner === undefined
        ? await this.#options.proposeInTerm(command, current.term)
        : await this.#take(command, owner, current);
    if (outcome === 'unknown') throw new FarkvError('ERR_BUSY', 'the leader has changed meanwhile: check farkv status');
    if (!outcome.ok) throw new FarkvError(outcome.code, outcome.message);
    return done;
  }

  #due(): Command | undefined {
    const { driver, grantor, made, randomHex, assignAfterMs, log, nowMs, wallMs = Date.now } = this.#options;
    if (!driver.leads) return undefined;
    const s = driver.state;
    if (s.clusterId === '') {
      return {
        t: 'bootstrap',
        clusterId: randomHex(16),
        hashSeed: randomHex(16),
        ticketSecret: randomHex(16),
        madeMs: wallMs(),
        ...made,
      };
    }
    if (s.members.size === 0) return undefined;
    const current = grantor();
    current?.leases.observe(s.members.values(), nowMs());
    const due =
      current === undefined
        ? undefined
        : dueCommand(
            s,
            current.leases,
            nowMs(),
            this.#caughtUp(s),
            { known: driver.knownFormat, knownBy: (id) => current.knows.get(id) ?? 0 },
            this.#absences,
            this.#replaceMs,
          );
    if (due !== undefined) return due;
    const reset = current === undefined ? undefined : nextReset(s, current.leases, nowMs());
    if (reset !== undefined) return reset;
    // Either way: the clock that dated the last exchange may have been ahead for a while.
    if (s.tickets !== undefined && Math.abs(wallMs() - s.tickets.rotatedMs) >= ROTATE_MS)
      return { t: 'tickets-rotate', number: s.tickets.number + 1, secret: randomHex(16), atMs: wallMs() };
    const owners = nextOwners(s, current?.leases, nowMs());
    if (owners === undefined) return undefined;
    const missing = s.voters.filter((id) => !s.members.has(id));
    if (missing.length === 0 || this.#impatient) {
      if (missing.length > 0)
        log.warn(
          `${missing.join(', ')} did not come within ${assignAfterMs} ms: the shards go to ${keepersOf(s)
            .map((m) => m.id)
            .join(', ')}`,
          { event: 'servers-missing', servers: missing.join(), waitedMs: assignAfterMs },
        );
      return owners;
    }
    this.#patience ??= setTimeout(() => {
      this.#impatient = true;
      this.look();
    }, assignAfterMs);
    return undefined;
  }

  get #replaceMs(): number {
    return this.#options.replaceVoterMs ?? Infinity;
  }

  #caughtUp(state: MetadataState): Set<string> {
    const near = nearTo(this.#options.driver.status());
    return new Set(state.servers.filter((s) => near.has(s.raftId)).map((s) => s.id));
  }

  /** Brings the Raft group a step nearer to what the metadata says. */
  #reconcile(): void {
    const { driver, log } = this.#options;
    if (!driver.leads || driver.state.clusterId === '') return;
    const status = driver.status();
    if (!status.configCommitted) return;
    const all = new Set(driver.state.servers.map((s) => s.raftId));
    if (changesTo(driver.state, status.config, all).length === 0) return;
    const changes = changesTo(driver.state, status.config, nearTo(status));
    if (changes.length === 0) {
      this.#lookAgain(); // nobody says when who is to vote answers
      return;
    }
    const refusal = driver.proposeChange({ changes });
    if (refusal === undefined) {
      const what = changes.map(
        (c) => `${c.kind} ${driver.state.servers.find((s) => s.raftId === c.id)?.id ?? 'a server that has left'}`,
      );
      log.info(`the metadata group changes: ${what.join(', ')}`, { event: 'voters-change', changes: what.join() });
      return;
    }
    log.debug(`the metadata group cannot be changed now, and will be retried: ${refusal}`);
    this.#lookAgain();
  }

  #lookAgain(): void {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.look(), RECONCILE_MS);
  }
}

/** With what the shards go to others. */
function takenHow({ shards }: ShardsTaken): string {
  const kept = shards.filter((s) => s.copy !== undefined).length;
  return kept === 0
    ? 'empty'
    : `${kept} of them with their copies there${kept < shards.length ? ', the others empty' : ''}`;
}

/**
 * Members whose logs are about as long as the leader's, which is among them. A member in `replicate` has accepted an
 * append in this term. Until then the leader counts it as active and knows nothing of its log (core/raft): while the
 * log is short, a learner that never answered would be as near as all others.
 */
export function nearTo({ progress, lastIndex, id }: Pick<RaftStatus, 'progress' | 'lastIndex' | 'id'>): Set<number> {
  const answered = progress.filter((p) => p.active && p.state === 'replicate'); // mutation: metadata/vote-of-the-unheard
  return new Set(answered.filter((p) => p.match + CAUGHT_UP >= lastIndex).map((p) => p.id)).add(id);
}

/**
 * Changes that give `config` the voters and learners of the metadata. Votes move together, and only while most of those
 * who will vote are in `near`: they may have died since the metadata gave them the votes, and a joint configuration that
 * needs the votes of dead members is never left again. A voter that has left the cluster may go before the rest.
 */
export function changesTo(
  state: MetadataState,
  config: RaftStatus['config'],
  near: ReadonlySet<number>,
): MemberChange[] {
  if (config.outgoing.length > 0) return [];
  const wanted = new Map(
    state.servers
      .filter((s) => s.raftId !== 0)
      .map((s) => [s.raftId, state.voters.includes(s.id) ? ('voter' as const) : ('learner' as const)]),
  );
  // A server that comes is a learner first: an empty voter could stop the group.
  const known = (id: number): boolean => config.voters.includes(id) || config.learners.includes(id);
  const come = [...wanted.keys()].filter((id) => !known(id)).map((id) => ({ kind: 'learner', id }) as const);
  const move = [...wanted]
    .filter(([id, kind]) => known(id) && !(kind === 'voter' ? config.voters : config.learners).includes(id))
    .map(([id, kind]) => ({ kind, id }));
  const leave = (of: readonly number[]): MemberChange[] =>
    of.filter((id) => !wanted.has(id)).map((id) => ({ kind: 'remove', id }));
  const goes = [...leave(config.voters), ...leave(config.learners)];
  for (const changes of [[...move, ...goes], goes])
    if (mostAreNear(config.voters, changes, near)) return [...come, ...changes]; // mutation: metadata/dead-learner-votes
  return [...come, ...leave(config.learners)];
}

/** Of those who vote after the changes. */
function mostAreNear(before: readonly number[], changes: readonly MemberChange[], near: ReadonlySet<number>): boolean {
  const voters = new Set(before);
  for (const { kind, id } of changes) {
    if (kind === 'voter') voters.add(id);
    else voters.delete(id);
  }
  return 2 * [...voters].filter((id) => near.has(id)).length > voters.size;
}
