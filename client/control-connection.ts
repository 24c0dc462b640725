/**
 * The client's side of the control plane: connects to one server at a time, and keeps the map and the ticket that it
 * pushes up to date.
 *
 *        +--> visit a server (net/outgoing.ts) --welcome, map--> FOLLOWING ---+
 *        |       | refused, failed, no map in time                           | closed, silent, malformed
 *        |       v                                                           |
 *        +-- the next server; after a round of all of them, a pause <--------+
 *
 * While no server answers, the client goes on with the map it has: data connections do not need this one. The pause
 * doubles from 50 ms to 5 s, with jitter, and is over at once after a connection that worked. Nothing received is
 * trusted: frames are scanned and checked (core/protocol), and the handler compares their cluster with the client's
 * (routes.ts) before anything else of theirs is used.
 *
 * Not for: deciding what a map means.
 */
import { MapAssembler, type ClientAccess, type ClientMap, type Frame } from '../core/protocol/index.js';
import { Deadline } from '../net/deadline.js';
import { Heartbeat, type HeartbeatPace } from '../net/heartbeat.js';
import { Outgoing } from '../net/outgoing.js';
import { asRefusal, type TrustSource } from '../net/tls.js';
import { FarkvError } from './errors.js';

const DIAL_MS = 3000;
const PAUSE_MIN_MS = 50;
const PAUSE_MAX_MS = 5000;
/** A server that sends nothing for this long is given up. */
const PACE: HeartbeatPace = { pingMs: 5000, silentMs: 15_000 };
/** One that is suspected has this long for the answer to a ping. */
const PROBE_MS = 150;
/** And is left for another one at most so often. */
const PROBES_MS = 5000;

export interface ControlOptions {
  readonly servers: readonly string[];
  readonly token: string | undefined;
  readonly tls: TrustSource | undefined;
  readonly handlers: ControlHandlers;
  /** How long a server that is suspected has for the answer to a ping, in milliseconds. Default: 150. */
  readonly probeMs?: number;
}

export interface ControlHandlers {
  /**
   * The cluster that a server's welcome or map names, before anything else of it is used; '': the server has none yet.
   * Throws when it is another one than the client's: the server is then given up like one that is dead.
   */
  readonly cluster: (clusterId: string) => void;
  /** Throws when this server's map is not to be used: it is then given up like one that is dead. */
  readonly map: (map: ClientMap) => void;
  readonly ticket: (ticket: Uint8Array) => void;
  /** What this client may do, as the server sees it, and of which tenant it is; undefined: the default one. */
  readonly access?: (access: ClientAccess | undefined, tenant: string | undefined) => void;
  readonly connected: (server: string) => void;
  /** A server was given up or could not be had. */
  readonly failed: (server: string, error: FarkvError) => void;
  /** All known servers were tried in turn and none was had. */
  readonly roundFailed: (errors: readonly FarkvError[]) => void;
}

export class ControlConnection {
  readonly #options: ControlOptions;
  #servers: readonly string[];
  #visit: Visit | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** The server that was tried last. */
  #tried: string | undefined;
  #round: FarkvError[] = [];
  #pauseMs = PAUSE_MIN_MS;
  /** The last one: a server knows by it who comes back. */
  #ticket: Uint8Array | undefined;
  #leftAt = -Infinity;
  #closed = false;
  #referenced = true;

  constructor(options: ControlOptions) {
    this.#options = options;
    this.#servers = options.servers;
  }

  start(): void {
    this.#dial();
  }

  /** Servers learned from a map are tried after the ones that the program named. */
  learn(servers: readonly string[]): void {
    this.#servers = [...new Set([...this.#options.servers, ...servers])];
  }

  /** From now on the connection does not keep the process alive. */
  unref(): void {
    this.#referenced = false;
    this.#visit?.unref();
    this.#timer?.unref();
  }

  /** Gives up the present server, if there is one, and goes on with the next. */
  reconnect(): void {
    this.#visit?.end(new FarkvError('ERR_DISCONNECTED', 'given up by the client'));
  }

  /** Somebody's data plane has fallen silent: a server that stands still is not to be the one that says who is next. */
  probe(): void {
    if (performance.now() - this.#leftAt < PROBES_MS) return;
    this.#visit?.probe(() => (this.#leftAt = performance.now()));
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#visit?.end(new FarkvError('ERR_CLOSED', 'the client is closed'));
  }

  #dial(): void {
    if (this.#closed) return;
    const server = this.#servers[(this.#servers.indexOf(this.#tried ?? '') + 1) % this.#servers.length] ?? '';
    this.#tried = server;
    const visit = new Visit(server, this.#options, this.#ticket, {
      ticket: (ticket) => {
        this.#ticket = ticket;
        this.#options.handlers.ticket(ticket);
      },
      following: () => {
        this.#round = [];
        this.#pauseMs = PAUSE_MIN_MS;
        this.#options.handlers.connected(server);
      },
      ended: (error) => this.#ended(server, error),
    });
    this.#visit = visit;
    if (!this.#referenced) visit.unref();
  }

  #ended(server: string, error: FarkvError): void {
    this.#visit = undefined;
    if (this.#closed) return;
    this.#options.handlers.failed(server, error);
    this.#round.push(error);
    if (this.#round.length < this.#servers.length) {
      // Not from inside the failed connection's event.
      this.#again(0);
      return;
    }
    const errors = this.#round;
    this.#round = [];
    this.#options.handlers.roundFailed(errors);
    this.#again(this.#pauseMs * (0.5 + Math.random() / 2));
    this.#pauseMs = Math.min(PAUSE_MAX_MS, this.#pauseMs * 2);
  }

  #again(ms: number): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => this.#dial(), ms);
    if (!this.#referenced) this.#timer.unref();
  }
}

interface VisitEvents {
  readonly ticket: (ticket: Uint8Array) => void;
  /** The first map was taken. */
  readonly following: () => void;
  /** Once, last. */
  readonly ended: (error: FarkvError) => void;
}

/** One connection to one server, from dialing to its end. */
class Visit {
  readonly #handlers: ControlHandlers;
  readonly #events: VisitEvents;
  readonly #outgoing: Outgoing;
  readonly #maps = new MapAssembler();
  readonly #deadline: Deadline;
  readonly #probeMs: number;
  #heartbeat: Heartbeat | undefined;
  #probe: Deadline | undefined;

  constructor(
    server: string,
    { token, tls, handlers, probeMs = PROBE_MS }: ControlOptions,
    ticket: Uint8Array | undefined,
    events: VisitEvents,
  ) {
    this.#handlers = handlers;
    this.#events = events;
    this.#probeMs = probeMs;
    const hello = {
      role: 'client',
      ...(token === undefined ? {} : { token }),
      ...(ticket === undefined ? {} : { ticket }),
    } as const;
    this.#outgoing = new Outgoing(
      { address: server, trust: tls, hello },
      {
        welcomed: (welcome) => {
          handlers.cluster(welcome.clusterId); // mutation: client/welcome-of-a-stranger
          handlers.access?.(welcome.access, welcome.tenant);
          if (welcome.ticket !== undefined) events.ticket(welcome.ticket);
        },
        frame: (frame) => this.#received(frame),
        closed: (error) => {
          this.#deadline.clear();
          this.#heartbeat?.stop();
          this.#probe?.clear();
          events.ended(asRefusal(error));
        },
      },
    );
    this.#deadline = new Deadline(DIAL_MS, () =>
      this.end(new FarkvError('ERR_TIMEOUT', `no map within ${DIAL_MS} ms`)),
    ).unref();
  }

  end(error: FarkvError): void {
    this.#outgoing.connection.close(error);
  }

  /** Ends when nothing comes in the time of a probe. */
  probe(leaving: () => void): void {
    if (this.#heartbeat === undefined || this.#probe !== undefined) return;
    const { connection } = this.#outgoing;
    const since = performance.now();
    this.#heartbeat.ping();
    this.#probe = new Deadline(this.#probeMs, () => {
      this.#probe = undefined;
      if (connection.heardAt > since) return;
      leaving();
      this.end(new FarkvError('ERR_TIMEOUT', `no answer to a ping within ${this.#probeMs} ms`));
    }).unref();
  }

  unref(): void {
    this.#outgoing.connection.unref();
  }

  #received(frame: Frame): void {
    if (frame.t !== 'map') throw new FarkvError('ERR_PROTOCOL', `a client does not take ${frame.t} frames`);
    this.#handlers.cluster(frame.map.clusterId); // mutation: client/map-of-a-stranger
    if (frame.ticket !== undefined) this.#events.ticket(frame.ticket);
    const map = this.#maps.push(frame);
    if (map === undefined) return;
    this.#handlers.map(map);
    // The handler may have closed the client.
    if (this.#heartbeat !== undefined || this.#outgoing.connection.closed) return;
    this.#deadline.clear();
    this.#heartbeat = new Heartbeat(this.#outgoing.connection, PACE);
    this.#events.following();
  }
}
