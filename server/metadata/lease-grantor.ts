/**
 * The leader's side of owners' leases: answers those that ask, once a quorum has confirmed that this server leads. What
 * a lease means, and why the answers are safe, stands in core/metadata/owner-leases.ts. It is soft state: it lives as
 * long as the term.
 *
 * Owners also say here which formats of metadata they know.
 */
import { FarkvError } from '../../core/errors.js';
import { GrantedLeases } from '../../core/metadata/owner-leases.js';
import { boolean, hex64, record, uint } from '../../core/protocol/check.js';
import { RateLimitedLog, type Log } from '../log.js';
import type { MetadataDriver } from './driver.js';

export interface LeaseRequest {
  /** Of this start of the owner. */
  readonly incarnation: string;
  /** The latest format of metadata that it reads. */
  readonly knows: number;
  /** It has closed its shards, nobody relies on them any more, and it will not ask again. */
  readonly end: boolean;
}
export const checkLeaseRequest = record<LeaseRequest>({ incarnation: hex64, knows: uint(65_535), end: boolean });

export interface LeaseGrant {
  readonly leaseMs: number;
  /** The owner counts on the lease only when it has applied the log so far. */
  readonly index: number;
}
export const checkLeaseGrant = record<LeaseGrant>({ leaseMs: uint(3_600_000), index: uint() });

/** The term of a leader that knows all that was committed before. */
export interface GrantState {
  readonly term: number;
  readonly leases: GrantedLeases;
  /** Member id to format. */
  readonly knows: ReadonlyMap<string, number>;
}

export interface LeaseGrantorOptions {
  readonly driver: Pick<MetadataDriver, 'confirmLeader' | 'leads' | 'term' | 'state'>;
  /** Milliseconds of CLOCK_BOOTTIME. */
  readonly nowMs: () => number;
  /** A lease was granted or ended: something may be due. */
  readonly changed: () => void;
  readonly log: Log;
}

interface Open extends GrantState {
  readonly knows: Map<string, number>;
}

/** Lines that say so in ten seconds: a leader that stalls again and again says it once. */
const DEAF_LINES = 1;

export class LeaseGrantor {
  readonly #options: LeaseGrantorOptions;
  readonly #deaf: RateLimitedLog;
  #open: Open | undefined;

  constructor(options: LeaseGrantorOptions) {
    this.#options = options;
    this.#deaf = new RateLimitedLog(
      (text, fields) => options.log.info(text, fields),
      { nowMs: options.nowMs },
      DEAF_LINES,
    );
  }

  /** Undefined while this server does not lead, or does not know yet what was committed before it came to lead. */
  get current(): GrantState | undefined {
    const { driver } = this.#options;
    return driver.leads && this.#open?.term === driver.term ? this.#open : undefined;
  }

  /**
   * To be called when this server may have come to lead. Owners need not ask first: the time that a new leader waits
   * begins.
   */
  async look(): Promise<void> {
    if (!this.#options.driver.leads || this.current !== undefined) return;
    if (await this.listen()) this.#options.changed();
  }

  /**
   * Asks a quorum again, so that the time until now counts in which owners were silent (core/metadata/silence.ts).
   * False: it could not be asked.
   */
  async listen(): Promise<boolean> {
    try {
      await this.#confirmed();
      return true;
    } catch (error) {
      if (!(error instanceof FarkvError && ['ERR_NO_LEADER', 'ERR_CLOSED'].includes(error.code))) throw error;
      return false;
    }
  }

  /**
   * Throws ERR_NO_LEADER, ERR_NOT_OWNER for a start of a server that is not the last one, ERR_BUSY for an owner that
   * loses its shards.
   */
  async ask(id: string, request: LeaseRequest): Promise<LeaseGrant> {
    const { driver, nowMs, changed } = this.#options;
    const { members } = driver.state;
    // Before a quorum is waited for: the leader has heard this owner, also while it cannot grant.
    // mutation: metadata/silence-unconfirmed
    if (members.get(id)?.incarnation === request.incarnation && !request.end) this.current?.leases.asked(id, nowMs());
    const { grantor, index } = await this.#confirmed();
    if (driver.state.members.get(id)?.incarnation !== request.incarnation)
      throw new FarkvError('ERR_NOT_OWNER', `${id} has not joined, or has started again since`);
    grantor.knows.set(id, request.knows);
    if (request.end) grantor.leases.end(id, nowMs());
    else if (!grantor.leases.grant(id, nowMs()))
      throw new FarkvError('ERR_BUSY', `the shards of ${id} are being given to others`);
    changed();
    return { leaseMs: driver.state.ownerLease.leaseMs, index };
  }

  async #confirmed(): Promise<{ readonly grantor: Open; readonly index: number }> {
    const { driver, nowMs } = this.#options;
    const { term, index } = await driver.confirmLeader();
    if (driver.state.clusterId === '') throw new FarkvError('ERR_NO_LEADER', 'the cluster is not made yet');
    if (this.#open?.term !== term)
      this.#open = { term, leases: new GrantedLeases(driver.state.ownerLease, nowMs()), knows: new Map() };
    const deafMs = this.#open.leases.confirmed(nowMs());
    if (deafMs !== undefined)
      this.#deaf.say(
        driver.state.voters.length === 1
          ? `this server, the only voter, stood still for ${Math.round(deafMs)} ms, or its disk did: owners get a grace before they are taken for dead`
          : `this leader could not hear a quorum for ${Math.round(deafMs)} ms: owners get a grace before they are taken for dead`,
        { event: 'quorum-unheard', silentMs: Math.round(deafMs) },
      );
    return { grantor: this.#open, index };
  }
}
