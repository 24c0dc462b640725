/**
 * The leader's side of owners' leases: answers those that ask, once a quorum has confirmed that this server leads. What a lease means,
 * and why the answers are safe, stands in core/metadata/owner-leases.ts. It is soft state: it lives as long as the term.
 *
 * Owners also say here which formats of metadata they know.
 */
import { FarkvError } from '../../core/errors.js';
import { GrantedLeases } from '../../core/metadata/owner-leases.js';
import type { LeaseTerms, MetadataState } from '../../core/metadata/state.js';
import { boolean, hex64, maybe, record, uint } from '../../core/protocol/check.js';
import type { MetadataDriver } from './driver.js';

/** The format in which leases have no terms that all agree on. */
const FORMAT_WITHOUT_TERMS = 1;

export interface LeaseRequest {
  /** Of this start of the owner. */
  readonly incarnation: string;
  /** The latest format of metadata that it reads. */
  readonly knows: number;
  /** It has closed its shards, nobody relies on them any more, and it will not ask again. */
  readonly end: boolean;
  /** In format 1: what is left of the lease that it has. */
  readonly heldMs?: number;
}
export const checkLeaseRequest = record<LeaseRequest>({ incarnation: hex64, knows: uint(65_535), end: boolean, heldMs: maybe(uint()) });

export interface LeaseGrant {
  readonly leaseMs: number;
  /** The owner counts on the lease only when it has applied the log so far. */
  readonly index: number;
}
export const checkLeaseGrant = record<LeaseGrant>({ leaseMs: uint(3_600_000), index: uint() });

/** The term of a leader that knows all that was committed before. */
export interface Office {
  readonly term: number;
  readonly leases: GrantedLeases;
  /** Member id to format. */
  readonly knows: ReadonlyMap<string, number>;
}

export interface LeaseOfficeOptions {
  readonly driver: Pick<MetadataDriver, 'confirmLeader' | 'leads' | 'term' | 'state'>;
  /** Milliseconds of CLOCK_BOOTTIME. */
  readonly nowMs: () => number;
  /** For a cluster whose metadata has none yet. */
  readonly terms: LeaseTerms;
  /** A lease was granted or ended: something may be due. */
  readonly changed: () => void;
}

interface Open extends Office {
  readonly terms: LeaseTerms;
  readonly knows: Map<string, number>;
}

export class LeaseOffice {
  readonly #options: LeaseOfficeOptions;
  #open: Open | undefined;

  constructor(options: LeaseOfficeOptions) {
    this.#options = options;
  }

  /** Undefined while this server does not lead, or does not know yet what was committed before it came to lead. */
  get current(): Office | undefined {
    const { driver } = this.#options;
    return driver.leads && this.#open?.term === driver.term && sameTerms(this.#open.terms, this.#terms(driver.state)) ? this.#open : undefined;
  }

  /** To be called when this server may have come to lead. Owners need not ask first: the time that a new leader waits begins. */
  async look(): Promise<void> {
    if (!this.#options.driver.leads || this.current !== undefined) return;
    if (await this.listen()) this.#options.changed();
  }

  /** Asks a quorum again, so that the time until now counts in which owners were silent (core/metadata/silence.ts). False: it could not be asked. */
  async listen(): Promise<boolean> {
    try {
      await this.#confirmed();
      return true;
    } catch (error) {
      if (!(error instanceof FarkvError && ['ERR_NO_LEADER', 'ERR_CLOSED'].includes(error.code))) throw error;
      return false;
    }
  }

  /** Throws ERR_NO_LEADER, ERR_NOT_OWNER for a start of a server that is not the last one, ERR_BUSY for an owner that loses its shards. */
  async ask(id: string, request: LeaseRequest): Promise<LeaseGrant> {
    const { driver, nowMs, changed } = this.#options;
    const { members } = driver.state;
    // Before a quorum is waited for: the leader has heard this owner, also while it cannot grant.
    if (members.get(id)?.incarnation === request.incarnation && !request.end) this.current?.leases.asked(id, nowMs());
    const { office, index } = await this.#confirmed();
    if (driver.state.members.get(id)?.incarnation !== request.incarnation) throw new FarkvError('ERR_NOT_OWNER', `${id} has not joined, or has started again since`);
    office.knows.set(id, counted(request, office.terms) ? request.knows : Math.min(request.knows, FORMAT_WITHOUT_TERMS));
    if (request.end) office.leases.end(id, nowMs());
    else if (!office.leases.grant(id, nowMs())) throw new FarkvError('ERR_BUSY', `the shards of ${id} are being given to others`);
    changed();
    return { leaseMs: office.terms.leaseMs, index };
  }

  async #confirmed(): Promise<{ readonly office: Open; readonly index: number }> {
    const { driver, nowMs } = this.#options;
    const { term, index } = await driver.confirmLeader();
    const terms = this.#terms(driver.state);
    if (this.#open?.term !== term || !sameTerms(this.#open.terms, terms)) this.#open = { term, terms, leases: new GrantedLeases(terms, nowMs()), knows: this.#knownSoFar(term) };
    this.#open.leases.confirmed(nowMs());
    return { office: this.#open, index };
  }

  /** What owners said in this term counts also after the lease's terms have changed. */
  #knownSoFar(term: number): Map<string, number> {
    return this.#open?.term === term ? this.#open.knows : new Map<string, number>();
  }

  /**
   * In format 1 each leader grants by its own settings, which may differ: an owner may hold a lease of an earlier one for longer than this one counts on. That
   * harms nobody while nobody takes shards; and the format is raised, in the term of a leader and with its terms (leader-duties.ts), only when all that owners
   * hold is over when it counts on that (ask).
   */
  #terms(state: MetadataState): LeaseTerms {
    return state.formatVersion < 2 ? this.#options.terms : state.ownerLease;
  }
}

/** Where the owner holds a lease of an earlier leader, that is over when one of these terms would be. */
function counted({ heldMs }: LeaseRequest, { leaseMs }: LeaseTerms): boolean {
  return heldMs === undefined || heldMs <= leaseMs;
}

function sameTerms(a: LeaseTerms, b: LeaseTerms): boolean {
  return a.leaseMs === b.leaseMs && a.driftPpm === b.driftPpm;
}
