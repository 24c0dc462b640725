/**
 * What the metadata's leader does of itself: makes the cluster when there is none, gives shards to members, takes them
 * from dead ones, and keeps the Raft group what the metadata says. Every server has one of these; only the leader's
 * acts. What it proposes twice, or too late, the machine refuses. What is due when is decided in
 * core/metadata/leader-policy.ts.
 */
import { FarkvError } from '../../core/errors.js';
import type { Bootstrap, Command, ShardsTaken } from '../../core/metadata/commands.js';
import type { ShardReset } from '../../core/metadata/copy-commands.js';
import { Absences } from '../../core/metadata/copy-policy.js';
import { countedDead } from '../../core/metadata/counted-dead.js';
import { nextReset, planReset, type ResetAsked } from '../../core/metadata/shard-loss.js';
import { dueCommand, nextLookMs, nextOwners } from '../../core/metadata/leader-policy.js';
import { keepersOf } from '../../core/metadata/placement.js';
import { Failovers } from '../../core/metadata/failovers.js';
import { MovedVotes } from '../../core/metadata/voter-policy.js';
import type { CopyState, MetadataState } from '../../core/metadata/state.js';
import { describeError, type Log } from '../log.js';
import type { MetadataDriver } from './driver.js';
import { changesTo, nearTo } from './group-members.js';
import { LeaderNews } from './leader-news.js';
import type { GrantState } from './lease-grantor.js';
import { noLeader } from './no-leader.js';
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
export const IN_TERM: ReadonlySet<Command['t']> = new Set([
  'shards-taken',
  'shards-given',
  'raise-format',
  'shard-reset',
]);
const PROPOSE_MS = 10_000;
const RETRY_MS = 1000;
const RECONCILE_MS = 100;
/** The ticket secret is exchanged so often. */
export const ROTATE_MS = 24 * 3_600_000;
const ROTATE_LOOK_MS = 600_000;

export class LeaderDuties {
  readonly #options: LeaderDutiesOptions;
  #absences = new Absences();
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
  readonly #news: LeaderNews;

  constructor(options: LeaderDutiesOptions) {
    this.#options = options;
    this.#news = new LeaderNews(options.log);
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
    this.#news.observe(driver.state, driver.leads);
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
    const { propose, proposeInTerm, grantor, driver, nowMs } = this.#options;
    if (command.t === 'voters-set')
      this.#news.voters(driver.state.voters, command.voters, (id) => this.#absences.silentMs(id, nowMs()));
    if (!IN_TERM.has(command.t)) return await propose(command, PROPOSE_MS);
    const current = grantor();
    if (current === undefined) return 'unknown';
    // In the term in which the servers reported what they know, or in which the leases were granted (lease-grantor.ts).
    if (command.t === 'shard-reset') this.#news.vacantReset(command);
    else if (command.t === 'shards-taken') this.#news.taken(command);
    else return await proposeInTerm(command, current.term);
    return await this.#take(command, current);
  }

  /** Takes from dead servers: shards, or what they have of one. */
  async #take(command: ShardsTaken | ShardReset, { leases, term }: GrantState): Promise<Outcome> {
    const dead = countedDead(this.#options.driver.state, command);
    // From here on they are granted nothing, until it is certain what became of the entry. If this term ends before, the
    // next leader knows.
    const release = (): void => dead.forEach((id) => leases.release(id));
    dead.forEach((id) => leases.withhold(id));
    try {
      const outcome = await this.#options.proposeInTerm(command, term);
      release();
      return outcome;
    } catch (error) {
      if (error instanceof FarkvError && error.code === 'ERR_BUSY') release();
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
    log.warn(
      `shard ${command.shard} is reset by an operator: it goes to ${command.to}, ${command.from === undefined ? 'empty' : 'with a copy that may lack changes'}`,
      { event: 'shard-is-reset', shard: command.shard, to: command.to, empty: command.from === undefined },
    );
    const outcome = await this.#take(command, current);
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
