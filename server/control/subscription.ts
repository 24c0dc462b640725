/**
 * One client: it gets the map, then what changes, and a new ticket before the old one expires. A client that reads
 * slowly gets fewer, larger pushes (each is what changed since the last one it was sent), and is dropped when it takes
 * nothing for long.
 *
 * Tickets expire by wall clocks, so their age is looked at by the wall clock too, and often: it may be set, and timers
 * stand still while the machine is suspended. A ticket that was made in the future is renewed as well, since owners
 * whose clocks were right all the time would see the next one late.
 */
import { FarkvError } from '../../core/errors.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { mapFrames } from '../../core/protocol/index.js';
import type { Connection } from '../../net/connection.js';
import { ticketRules } from '../../core/metadata/tickets.js';
import { RENEW_MS, SETTLE_MS } from './tickets.js';

/** Above this many waiting bytes a client is sent nothing new. */
const BACKLOG_PAUSE = 1 << 20;

export interface SessionPace {
  /** A ticket is renewed when it is so old. */
  readonly renewMs: number;
  /** The age of tickets is looked at so often. */
  readonly lookMs: number;
  /** A client that takes nothing for this long is dropped. */
  readonly stalledMs: number;
  /** After another secret has settled, all clients get tickets of it within this time. */
  readonly spreadMs: number;
  readonly settleMs: number;
}
export const PACE: SessionPace = {
  renewMs: RENEW_MS,
  lookMs: 1000,
  stalledMs: 30_000,
  spreadMs: 20_000,
  settleMs: SETTLE_MS + 1000,
};
/** Steps back by which clocks are kept right are smaller. */
const BACK_MS = 1000;

/** Who it is that gets the map. */
export interface Subscriber {
  readonly tenant: number;
  /** By a state by which it is not revoked: one made by a later state might be good again. */
  readonly ticket: (state: MetadataState) => Uint8Array;
  /** The secret of its last ticket is gone. */
  readonly isStale: (state: MetadataState) => boolean;
  readonly isRevoked: (state: MetadataState) => boolean;
  readonly wallMs: () => number;
}

/** Clients of a tenant mostly know the same map: the frames between two states are made once for all of them. */
export class MapFrames {
  readonly #last = new Map<
    number,
    { readonly from: MetadataState | undefined; readonly to: MetadataState; readonly frames: readonly Uint8Array[] }
  >();

  between(known: MetadataState | undefined, state: MetadataState, tenant: number): readonly Uint8Array[] {
    const last = this.#last.get(tenant); // mutation: tenants/frames-of-another
    if (last?.to === state && last.from === known) return last.frames;
    const frames = mapFrames(state, known, tenant);
    this.#last.set(tenant, { from: known, to: state, frames });
    return frames;
  }
}

export class Subscription {
  readonly #connection: Connection;
  readonly #frames: MapFrames;
  /** The tenant. */
  readonly tenant: number;
  readonly #ticket: (state: MetadataState) => Uint8Array;
  readonly #isStale: (state: MetadataState) => boolean;
  readonly #isRevoked: (state: MetadataState) => boolean;
  readonly #pace: SessionPace;
  readonly #wallMs: () => number;
  /** When its last ticket was made. */
  #ticketMs: number;
  #rotated: NodeJS.Timeout | undefined;
  #known: MetadataState | undefined;
  #stalled: NodeJS.Timeout | undefined;

  constructor(
    connection: Connection,
    frames: MapFrames,
    { tenant, ticket, isStale, isRevoked, wallMs }: Subscriber,
    pace: SessionPace = PACE,
  ) {
    this.#connection = connection;
    this.#frames = frames;
    this.tenant = tenant;
    this.#ticket = ticket;
    this.#isStale = isStale;
    this.#isRevoked = isRevoked;
    this.#pace = pace;
    this.#wallMs = wallMs;
    this.#ticketMs = wallMs();
  }

  /** To be called every `lookMs`. */
  renewInTime(): void {
    const age = this.#wallMs() - this.#ticketMs;
    if (age >= this.#pace.renewMs || age < -BACK_MS) this.#renew();
  }

  /** Sends what the client does not know yet, unless it is still taking what came before. */
  push(state: MetadataState): void {
    if (this.#connection.closed || this.#known === state) return;
    if (this.#endIfRevoked(state)) return;
    if (this.#known !== undefined && ticketRules(this.#known).number !== ticketRules(state).number) {
      // The secret may be exchanged again before all have tickets of the one before.
      if (this.#isStale(state)) this.#renew(state);
      else this.#renewSoon();
    }
    if (this.#connection.backlog > BACKLOG_PAUSE) {
      this.#stalled ??= setTimeout(
        () =>
          this.#connection.close(
            new FarkvError('ERR_BUSY', `the client has read nothing for ${this.#pace.stalledMs} ms`),
          ),
        this.#pace.stalledMs,
      ).unref();
      return;
    }
    for (const frame of this.#frames.between(this.#known, state, this.tenant)) this.#connection.sendBytes(frame);
    this.#known = state;
  }

  #endIfRevoked(state: MetadataState): boolean {
    const revoked = this.#isRevoked(state); // mutation: access/revoked-renews
    if (revoked) {
      const why = 'its tickets were revoked, or its credential is good no more';
      this.#connection.close(new FarkvError('ERR_UNAUTHORIZED', why));
    }
    return revoked;
  }

  drained(state: MetadataState): void {
    clearTimeout(this.#stalled);
    this.#stalled = undefined;
    this.push(state);
  }

  /** Long before the secret of its ticket is exchanged once more. */
  #renewSoon(): void {
    const { settleMs, spreadMs } = this.#pace;
    clearTimeout(this.#rotated);
    this.#rotated = setTimeout(() => this.#renew(), settleMs + Math.random() * spreadMs).unref();
  }

  close(): void {
    clearTimeout(this.#rotated);
    clearTimeout(this.#stalled);
  }

  /** `by` a state that was looked at for revocations, or the one that the client knows. */
  #renew(by?: MetadataState): void {
    const known = this.#known;
    if (known === undefined || (by === undefined && this.#endIfRevoked(known))) return;
    if (this.#connection.closed || this.#connection.backlog > BACKLOG_PAUSE) return;
    this.#ticketMs = this.#wallMs();
    for (const frame of mapFrames(known, known, this.tenant, this.#ticket(by ?? known)))
      this.#connection.sendBytes(frame);
  }
}
