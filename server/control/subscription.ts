/**
 * One client: it gets the map, then what changes, and a new ticket before the old one expires. A client that reads
 * slowly gets fewer, larger pushes (each is what changed since the last one it was sent), and is dropped when it takes
 * nothing for long.
 */
import { FarkvError } from '../../core/errors.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { mapFrames } from '../../core/protocol/index.js';
import type { Connection } from '../../net/connection.js';
import { RENEW_MS } from './tickets.js';

/** Above this many waiting bytes a client is sent nothing new. */
const BACKLOG_PAUSE = 1 << 20;

export interface SessionPace {
  /** A new ticket is pushed so often. */
  readonly renewMs: number;
  /** A client that takes nothing for this long is dropped. */
  readonly stalledMs: number;
}
const PACE: SessionPace = { renewMs: RENEW_MS, stalledMs: 30_000 };

/** Clients of a tenant mostly know the same map: the frames between two states are made once for all of them. */
export class MapFrames {
  readonly #last = new Map<
    number,
    { readonly from: MetadataState | undefined; readonly to: MetadataState; readonly frames: readonly Uint8Array[] }
  >();

  between(known: MetadataState | undefined, state: MetadataState, tenant: number): readonly Uint8Array[] {
    const last = this.#last.get(tenant);
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
  readonly #ticket: () => Uint8Array;
  readonly #renewal: NodeJS.Timeout;
  readonly #stalledMs: number;
  #known: MetadataState | undefined;
  #stalled: NodeJS.Timeout | undefined;

  constructor(
    connection: Connection,
    frames: MapFrames,
    tenant: number,
    ticket: () => Uint8Array,
    pace: SessionPace = PACE,
  ) {
    this.#connection = connection;
    this.#frames = frames;
    this.tenant = tenant;
    this.#ticket = ticket;
    this.#renewal = setInterval(() => this.#renew(), pace.renewMs);
    this.#stalledMs = pace.stalledMs;
    this.#renewal.unref();
  }

  /** Sends what the client does not know yet, unless it is still taking what came before. */
  push(state: MetadataState): void {
    if (this.#connection.closed || this.#known === state) return;
    if (this.#connection.backlog > BACKLOG_PAUSE) {
      this.#stalled ??= setTimeout(
        () =>
          this.#connection.close(new FarkvError('ERR_BUSY', `the client has read nothing for ${this.#stalledMs} ms`)),
        this.#stalledMs,
      ).unref();
      return;
    }
    for (const frame of this.#frames.between(this.#known, state, this.tenant)) this.#connection.sendBytes(frame);
    this.#known = state;
  }

  drained(state: MetadataState): void {
    clearTimeout(this.#stalled);
    this.#stalled = undefined;
    this.push(state);
  }

  close(): void {
    clearInterval(this.#renewal);
    clearTimeout(this.#stalled);
  }

  #renew(): void {
    const known = this.#known;
    if (known === undefined || this.#connection.backlog > BACKLOG_PAUSE) return;
    for (const frame of mapFrames(known, known, this.tenant, this.#ticket())) this.#connection.sendBytes(frame);
  }
}
