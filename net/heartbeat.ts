/**
 * Heartbeat: pings the other end of a connection, and closes the connection when nothing has come for too long.
 * Anything that comes counts, not only the answer to a ping: a long frame may be on its way before that answer.
 *
 * Invariant: a connection is closed `silentMs` after the last bytes that came, within a turn of the event loop, and not
 * earlier.
 */
import { FarkvError } from '../core/errors.js';
import type { Connection } from './connection.js';
import { Deadline } from './deadline.js';

export interface HeartbeatPace {
  readonly pingMs: number;
  /** More than `pingMs`, so that the other end has something to answer in time. */
  readonly silentMs: number;
}

export class Heartbeat {
  readonly #connection: Connection;
  readonly #silentMs: number;
  readonly #pings: NodeJS.Timeout;
  #silence: Deadline;
  #id = 0;
  #sentMs = 0;
  #rttMs: number | undefined;

  constructor(connection: Connection, { pingMs, silentMs }: HeartbeatPace) {
    this.#connection = connection;
    this.#silentMs = silentMs;
    this.#pings = setInterval(() => this.ping(), pingMs).unref();
    this.#silence = this.#after(silentMs);
  }

  /** Beside those at their time. */
  ping(): void {
    this.#sentMs = performance.now();
    this.#connection.send({ t: 'ping', id: ++this.#id });
  }

  /** Where the round trip is of interest: the other end has answered the ping of this number. */
  ponged(id: number): void {
    if (id === this.#id) this.#rttMs = performance.now() - this.#sentMs;
  }

  /** How long the last answered ping took; undefined: none was. */
  get rttMs(): number | undefined {
    return this.#rttMs;
  }

  stop(): void {
    clearInterval(this.#pings);
    this.#silence.clear();
  }

  #after(ms: number): Deadline {
    return new Deadline(ms, () => this.#look()).unref();
  }

  #look(): void {
    const left = this.#connection.heardAt + this.#silentMs - performance.now();
    if (left > 0) {
      this.#silence = this.#after(Math.ceil(left));
      return;
    }
    this.#connection.close(new FarkvError('ERR_TIMEOUT', `nothing received from the server for ${this.#silentMs} ms`));
  }
}
