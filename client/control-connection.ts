/**
 * The client's side of the control plane: says hello to one server at a time, and keeps the map and the ticket that it pushes up to date.
 *
 *        +--> DIALING --hello--> GREETING --welcome, map--> FOLLOWING ---+
 *        |       | refused, failed, silent    |                          | closed, silent, malformed
 *        |       v                            v                          |
 *        +-- the next server; after a round of all of them, a pause <----+
 *
 * While no server answers, the client goes on with the map it has: data connections do not need this one. The pause doubles from 50 ms to
 * 5 s, with jitter, and is over at once after a connection that worked. Nothing received is believed: frames are scanned, checked
 * (core/protocol) and their map compared with the cluster's identity (routes.ts) by the handler.
 *
 * Not for: deciding what a map means.
 */
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import {
  encodeFrame, FrameReader, MapAssembler, PROTOCOL_MAX, PROTOCOL_MIN, SERVER_FRAME_LIMITS, type ClientMap, type Frame, type Hello, type Welcome,
} from '../core/protocol/index.js';
import { isUntrusted } from '../core/untrusted.js';
import { FarkvError } from './errors.js';
import { parseServer, type ClientTls } from './options.js';

const DIAL_MS = 3000;
const PAUSE_MIN_MS = 50;
const PAUSE_MAX_MS = 5000;
/** A ping is sent so often; a server that says nothing for SILENT_MS is given up. */
const PING_MS = 5000;
const SILENT_MS = 15_000;

export interface ControlOptions {
  readonly servers: readonly string[];
  readonly token: string | undefined;
  readonly tls: ClientTls | undefined;
  readonly handlers: ControlHandlers;
}

export interface ControlHandlers {
  /** Throws when this server's map is not to be used: it is then given up like one that is dead. */
  readonly map: (map: ClientMap) => void;
  readonly ticket: (ticket: Uint8Array) => void;
  readonly connected: (server: string) => void;
  /** A server was given up or could not be had. */
  readonly failed: (server: string, error: FarkvError) => void;
  /** All known servers were tried in turn and none was had. */
  readonly roundFailed: (errors: readonly FarkvError[]) => void;
}

export class ControlConnection {
  readonly #options: ControlOptions;
  #servers: readonly string[];
  #socket: Socket | undefined;
  #timer: NodeJS.Timeout | undefined;
  #next = 0;
  #round: FarkvError[] = [];
  #pauseMs = PAUSE_MIN_MS;
  #clientId: string | undefined;
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
    this.#socket?.unref();
    this.#timer?.unref();
  }

  /** Gives up the present server, if there is one, and goes on with the next. */
  reconnect(): void {
    this.#socket?.destroy(new FarkvError('ERR_DISCONNECTED', 'given up by the client'));
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#socket?.destroy();
  }

  #dial(): void {
    if (this.#closed) return;
    const server = this.#servers[this.#next % this.#servers.length] ?? '';
    this.#next = (this.#next + 1) % this.#servers.length;
    const visit = new Visit(server, this.#options, this.#clientId, {
      welcome: ({ clientId }) => (this.#clientId = clientId ?? this.#clientId),
      following: () => {
        this.#round = [];
        this.#pauseMs = PAUSE_MIN_MS;
        this.#options.handlers.connected(server);
      },
      ended: (error) => this.#ended(server, error),
    });
    this.#socket = visit.socket;
    if (!this.#referenced) visit.socket.unref();
  }

  #ended(server: string, error: FarkvError): void {
    this.#socket = undefined;
    if (this.#closed) return;
    this.#options.handlers.failed(server, error);
    this.#round.push(error);
    if (this.#round.length < this.#servers.length) {
      // Not from inside the failed socket's event.
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
  readonly welcome: (welcome: Extract<Welcome, { ok: true }>) => void;
  /** The first map was taken. */
  readonly following: () => void;
  /** Once, last. */
  readonly ended: (error: FarkvError) => void;
}

/** One connection to one server, from dialing to its end. */
class Visit {
  readonly socket: Socket;
  readonly #options: ControlOptions;
  readonly #events: VisitEvents;
  readonly #reader = new FrameReader(SERVER_FRAME_LIMITS);
  readonly #maps = new MapAssembler();
  readonly #deadline: NodeJS.Timeout;
  #pings: NodeJS.Timeout | undefined;
  #heard = performance.now();
  #state: 'dialing' | 'greeting' | 'welcomed' | 'following' | 'ended' = 'dialing';
  #why: FarkvError | undefined;

  constructor(server: string, options: ControlOptions, clientId: string | undefined, events: VisitEvents) {
    this.#options = options;
    this.#events = events;
    const { host, port } = parseServer(server);
    const { tls } = options;
    if (tls === undefined) {
      this.socket = connectPlain({ host, port });
    } else {
      const { ca, servername, ...rest } = tls;
      const name = servername ?? (isIP(host) === 0 ? host : undefined);
      const authorities = ca === undefined ? {} : { ca: typeof ca === 'string' || Buffer.isBuffer(ca) ? ca : [...ca] };
      this.socket = connectTls({ host, port, minVersion: 'TLSv1.3', ...rest, ...authorities, ...(name === undefined ? {} : { servername: name }) });
    }
    this.#deadline = setTimeout(() => this.#end(new FarkvError('ERR_TIMEOUT', `no map within ${DIAL_MS} ms`)), DIAL_MS);
    this.#deadline.unref();
    this.socket.setNoDelay(true);
    this.socket.once(tls === undefined ? 'connect' : 'secureConnect', () => this.#greet(clientId));
    this.socket.on('data', (chunk: Buffer) => this.#received(chunk));
    this.socket.on('error', (error) => (this.#why ??= error instanceof FarkvError ? error : socketError(error)));
    this.socket.once('close', () => this.#closed());
    this.socket.once('end', () => this.#end(new FarkvError('ERR_DISCONNECTED', this.#hungUp())));
  }

  /** A server with TLS and one without have no words for each other. */
  #hungUp(): string {
    if (this.#options.tls !== undefined && this.#state === 'dialing') return 'the server closed the connection in the TLS handshake: is it one without TLS?';
    if (this.#options.tls === undefined && this.#state === 'greeting') return 'the server closed the connection without an answer: does it want TLS?';
    return 'the server closed the connection';
  }

  #greet(clientId: string | undefined): void {
    const { token } = this.#options;
    const hello: Hello = {
      t: 'hello',
      magic: 'farkv',
      versions: [PROTOCOL_MIN, PROTOCOL_MAX],
      role: 'client',
      ...(token === undefined ? {} : { token }),
      ...(clientId === undefined ? {} : { clientId }),
    };
    this.#state = 'greeting';
    this.socket.write(encodeFrame(hello));
  }

  #received(chunk: Buffer): void {
    this.#heard = performance.now();
    try {
      this.#reader.push(chunk, (frame) => {
        this.#frame(frame);
        return this.#why === undefined;
      });
    } catch (error) {
      this.#end(error instanceof FarkvError ? error : new FarkvError('ERR_INTERNAL', 'a frame could not be handled', { cause: error }));
    }
  }

  #frame(frame: Frame): void {
    switch (frame.t) {
      case 'welcome': this.#welcome(frame); break;
      case 'ping': this.socket.write(encodeFrame({ t: 'pong', id: frame.id })); break;
      case 'pong': break;
      case 'map': {
        if (this.#state !== 'welcomed' && this.#state !== 'following') throw new FarkvError('ERR_PROTOCOL', 'a map before the welcome');
        if (frame.ticket !== undefined) this.#options.handlers.ticket(frame.ticket);
        const map = this.#maps.push(frame);
        if (map === undefined) return;
        this.#options.handlers.map(map);
        if (this.#state === 'welcomed') this.#follow();
        break;
      }
      default: throw new FarkvError('ERR_PROTOCOL', `a client does not take ${frame.t} frames`);
    }
  }

  #welcome(welcome: Welcome): void {
    if (this.#state !== 'greeting') throw new FarkvError('ERR_PROTOCOL', 'a welcome at the wrong time');
    if (!welcome.ok) throw new FarkvError(welcome.code, welcome.message);
    if (welcome.version < PROTOCOL_MIN || welcome.version > PROTOCOL_MAX) {
      throw new FarkvError('ERR_PROTOCOL_VERSION', `the server chose version ${welcome.version}, which was not offered`);
    }
    this.#state = 'welcomed';
    if (welcome.ticket !== undefined) this.#options.handlers.ticket(welcome.ticket);
    this.#events.welcome(welcome);
  }

  #follow(): void {
    this.#state = 'following';
    clearTimeout(this.#deadline);
    let id = 0;
    this.#pings = setInterval(() => {
      if (performance.now() - this.#heard > SILENT_MS) this.#end(new FarkvError('ERR_TIMEOUT', `nothing received from the server for ${SILENT_MS} ms`));
      else this.socket.write(encodeFrame({ t: 'ping', id: ++id }));
    }, PING_MS);
    this.#pings.unref();
    this.#events.following();
  }

  #end(error: FarkvError): void {
    this.#why ??= error;
    this.socket.destroy();
  }

  #closed(): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    clearTimeout(this.#deadline);
    clearInterval(this.#pings);
    this.#events.ended(this.#why ?? new FarkvError('ERR_DISCONNECTED', 'the connection was closed'));
  }
}

/** A socket's error as one of farkv's; a certificate that is not trusted is a refusal, not an absence. */
function socketError(error: Error): FarkvError {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return new FarkvError(isUntrusted(error) ? 'ERR_UNAUTHORIZED' : 'ERR_DISCONNECTED', error.message === '' ? code : error.message, { cause: error });
}
