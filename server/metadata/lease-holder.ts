/**
 * The owner's side of its lease: asks the leader again and again, and lets the data plane grant leases to clients for
 * as long as the answers reach (core/metadata/owner-leases.ts). When no leader answers the lease runs out by itself:
 * the data plane needs nobody to stop it.
 */
import { HeldLease } from '../../core/metadata/owner-leases.js';
import { RENEWALS } from '../../core/metadata/silence.js';
import { codeOf, describeError, type Log } from '../log.js';
import type { LeaseGrant, LeaseRequest } from './lease-grantor.js';

export interface LeaseHolderOptions {
  readonly request: Omit<LeaseRequest, 'end'>;
  /** Asks the leader, wherever it is. */
  readonly ask: (request: LeaseRequest, timeoutMs: number) => Promise<LeaseGrant>;
  /** Resolves when this server's metadata is at the index. */
  readonly applied: (index: number) => Promise<void>;
  /** Resolves when the data plane has stopped answering for every shard that the metadata has taken away. */
  readonly fence: () => Promise<void>;
  readonly setGrantUntil: (bootNs: bigint) => void;
  /** CLOCK_BOOTTIME. */
  readonly bootTimeNs: () => bigint;
  readonly leaseMs: number;
  readonly log: Log;
}

const msOf = (ns: bigint): number => Number(ns) / 1e6;
const RETRY_MS = 25;

export class LeaseHolder {
  readonly #options: LeaseHolderOptions;
  readonly #lease = new HeldLease();
  /** Resolves with the first lease. */
  readonly first: Promise<void>;
  #gotFirst: () => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;
  #asking = 0;
  #closed = false;
  #lapsed = true;

  constructor(options: LeaseHolderOptions) {
    this.#options = options;
    this.first = new Promise((resolve) => (this.#gotFirst = resolve));
  }

  start(): void {
    this.renew();
  }

  /** Asks now: at the start, and when there is a new leader. */
  renew(): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    void this.#round(++this.#asking);
  }

  get held(): boolean {
    return this.#lease.held(msOf(this.#options.bootTimeNs()));
  }

  /** Whole milliseconds; 0: it is over. */
  get leftMs(): number {
    return Math.max(0, Math.floor(this.#lease.untilMs - msOf(this.#options.bootTimeNs())));
  }

  /** Tells the leader that this owner is gone, so that nobody waits for its lease. Its shards must be closed by now. */
  async end(timeoutMs: number): Promise<void> {
    this.close();
    await this.#options
      .ask({ ...this.#options.request, end: true }, timeoutMs)
      .catch((error: unknown) => this.#options.log.debug(`the lease was not given back: ${describeError(error)}`));
  }

  /** The data plane may grant until the lease is over, and no longer. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  async #round(asking: number): Promise<void> {
    const { leaseMs } = this.#options;
    const again = (ms: number): void => {
      // A later question has its own.
      if (asking === this.#asking && !this.#closed) this.#timer = setTimeout(() => this.renew(), ms);
    };
    try {
      await this.#ask();
      again(leaseMs / RENEWALS);
    } catch (error) {
      this.#failed(error);
      again(Math.min(RETRY_MS, leaseMs / RENEWALS));
    }
  }

  async #ask(): Promise<void> {
    const { ask, request, applied, fence, leaseMs, bootTimeNs } = this.#options;
    const sentMs = msOf(bootTimeNs());
    const grant = await ask({ ...request, end: false }, Math.max(leaseMs / 2, 100));
    await applied(grant.index);
    await fence();
    // What was applied since `index` takes nothing from this owner that it has not closed itself: that is what the
    // lease says.
    if (this.#closed) return;
    this.#lease.granted(sentMs, grant.leaseMs);
    this.#grantUntil(BigInt(Math.floor(this.#lease.untilMs * 1e6)));
  }

  #failed(error: unknown): void {
    const { log } = this.#options;
    if (this.#closed) return;
    if (this.held || this.#lapsed) return;
    this.#lapsed = true;
    log.warn(`this server has no lease from the metadata group and answers nothing: ${describeError(error)}`, {
      event: 'no-lease',
      ...codeOf(error),
    });
  }

  #grantUntil(bootNs: bigint): void {
    if (this.#lapsed) this.#options.log.debug('this server has its lease from the metadata group');
    this.#lapsed = false;
    this.#options.setGrantUntil(bootNs);
    this.#gotFirst();
  }
}
