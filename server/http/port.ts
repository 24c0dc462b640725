/**
 * The port of browsers and Prometheus (--http-listen), in the thread of clients and operators: GET and HEAD only, and
 * nothing changes by them. A connection goes through the same gate as one of the control port (control/listener.ts):
 * places, TLS, turns. Then each request:
 *
 *   method --> Host --> /healthz, /readyz, /role --> token or certificate of a monitor --> the rest
 *
 * Invariants: of every connection that follows no events, a timer ends each phase: a request, its answer, the pause. At
 * most one answer is due on a connection: who sends a request before it has the last answer is cut off.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { asFarkvError } from '../native-errors.js';
import { credentialEnded, limitedAudit, loginFailed, type AuditLines } from '../audit.js';
import type { Log } from '../log.js';
import type { HostPort } from '../config/units.js';
import type { RecentAddresses } from '../control/addresses.js';
import type { Credentials, Identity } from '../control/auth.js';
import { withinDescriptors } from '../control/descriptors.js';
import { Handshakes } from '../control/handshakes.js';
import { Listener, type Guest, type ListenerOptions } from '../control/listener.js';
import { identify, type Logins } from '../control/logins.js';
import type { MetadataState } from '../../core/metadata/state.js';
import type { OwnReadiness } from '../own-readiness.js';
import type { ClusterStatus } from '../status.js';
import { isOwnHost, tokenIn } from './access.js';
import {
  ANSWER_MS,
  FRESH_MS,
  HEADER_BYTES,
  HTTP_HANDSHAKES,
  HTTP_PLACES,
  LISTENERS,
  LOOK_MS,
  PAUSE_MS,
  REQUEST_MS,
} from './bounds.js';
import { readAssets } from './assets.js';
import { Events } from './events.js';
import { Fresh } from './fresh.js';
import { Metrics, wantsOpenMetrics } from './metrics.js';
import { Readiness } from './readiness.js';
import type { ScrapeStatus } from './scrape-status.js';

export interface HttpPortOptions {
  readonly addresses: readonly HostPort[];
  readonly serverId: string;
  /** Of this start, as the metadata names it. */
  readonly incarnation: string;
  readonly handshakeMs: number;
  readonly tls: ListenerOptions['tls'];
  readonly credentials: Credentials;
  /** Addresses with a login before, at the control port or here. */
  readonly known: RecentAddresses;
  /** Wrong tokens of addresses, at the control port or here. */
  readonly logins: Logins;
  /** The status as this server alone knows it: it costs the thread of Raft the more, the more shards there are. */
  readonly own: () => Promise<ScrapeStatus>;
  /** All that is asked for those without a token. */
  readonly readiness: () => Promise<OwnReadiness>;
  /** That of the cluster, as all servers know it. */
  readonly all: () => Promise<ClusterStatus>;
  readonly log: Log;
  /** Default: REQUEST_MS. */
  readonly requestMs?: number;
  /** Default: LOOK_MS. */
  readonly lookMs?: number;
}

const HEADERS = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
} as const;
const TEXT = 'text/plain; charset=utf-8';

interface Peer {
  readonly guest: Guest;
  deadline: NodeJS.Timeout;
  /** A request is not answered yet. */
  isDue: boolean;
}

export class HttpPort {
  readonly #options: HttpPortOptions;
  readonly #http: Server;
  readonly #peers = new WeakMap<Socket, Peer>();
  readonly #refusals: AuditLines;
  readonly #readiness = new Readiness();
  readonly #own: Fresh<ScrapeStatus>;
  readonly #ready: Fresh<OwnReadiness>;
  readonly #metrics = new Metrics();
  readonly #events: Events;
  readonly #assets = readAssets();
  #listener: Listener | undefined;
  #starting: NodeJS.Timeout | undefined;

  private constructor(options: HttpPortOptions) {
    this.#options = options;
    this.#refusals = limitedAudit(options.log);
    this.#own = new Fresh({ ask: options.own, freshMs: FRESH_MS, answerMs: ANSWER_MS });
    this.#ready = new Fresh({ ask: options.readiness, freshMs: FRESH_MS, answerMs: ANSWER_MS });
    this.#events = new Events({
      look: options.all,
      hasJoined: ({ members }) => members.get(options.serverId)?.incarnation === options.incarnation,
    });
    // Without a Host Node would answer by itself, as often as asked in one turn.
    const bounds = { maxHeaderSize: HEADER_BYTES, keepAliveTimeout: PAUSE_MS, requireHostHeader: false };
    this.#http = createServer(bounds, (request, response) => {
      if (!this.#begin(request, response)) return;
      void this.#answer(request, response).catch((error: unknown) => {
        const { code, message } = asFarkvError(error);
        if (response.headersSent) response.destroy();
        else this.#text(request, response, 503, `${code}: ${message}`);
      });
    });
    this.#http.on('clientError', (_, socket) => socket.destroy());
    // Not spoken here. An offer to upgrade is passed over: without a listener Node.js answers it as any request.
    this.#http.on('connect', (_, socket) => socket.destroy());
    for (const expecting of ['checkContinue', 'checkExpectation'] as const) {
      this.#http.on(expecting, (request: IncomingMessage, response: ServerResponse) => {
        if (this.#begin(request, response)) this.#text(request, response, 400, 'no body is taken');
      });
    }
  }

  /** Throws as Listener.open. */
  static async open(options: HttpPortOptions): Promise<HttpPort> {
    const port = new HttpPort(options);
    const { addresses, tls, handshakeMs, known } = options;
    port.#listener = await Listener.open({
      addresses,
      option: '--http-listen',
      tls,
      places: { ...withinDescriptors(HTTP_PLACES), isKnown: (source) => known.has(source) },
      ...(tls === undefined ? {} : { handshakes: new Handshakes(HTTP_HANDSHAKES) }),
      handshakeMs,
      connection: (socket, guest) => port.#accept(socket, guest),
    });
    port.#starting = setInterval(() => void port.#lookAtStart(), options.lookMs ?? LOOK_MS);
    return port;
  }

  get bound(): readonly HostPort[] {
    return this.#listener?.bound ?? [];
  }

  stateChanged(state: MetadataState): void {
    this.#events.stateChanged(state);
  }

  /** Beside what states of the metadata and statuses say, a line. */
  happened(text: string, atMs: number): void {
    this.#events.happened(text, atMs);
  }

  async close(): Promise<void> {
    clearInterval(this.#starting);
    this.#events.close();
    await this.#listener?.close();
  }

  /** A start ends whether anybody asks or not: the first probe may come an hour later. */
  async #lookAtStart(): Promise<void> {
    try {
      this.#readiness.why(await this.#ready.get());
    } catch {
      // The thread of Raft is busy.
    }
    if (this.#readiness.began) clearInterval(this.#starting);
  }

  #accept(socket: Socket, guest: Guest): void {
    const { requestMs = REQUEST_MS } = this.#options;
    const deadline = setTimeout(() => socket.destroy(), requestMs);
    this.#peers.set(socket, { guest, deadline, isDue: false });
    socket.on('error', () => socket.destroy());
    socket.once('close', () => clearTimeout(this.#peers.get(socket)?.deadline));
    this.#http.emit('connection', socket);
  }

  /** False: the connection is cut off, and nothing is answered. */
  #begin({ socket }: IncomingMessage, response: ServerResponse): boolean {
    const peer = this.#peers.get(socket);
    // What was parsed in the same turn still comes.
    if (socket.destroyed) return false;
    if (peer === undefined || peer.isDue) {
      socket.destroy();
      return false;
    }
    peer.isDue = true;
    peer.deadline.refresh();
    response.once('finish', () => {
      peer.isDue = false;
      peer.deadline.refresh();
    });
    return true;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket, headers, method } = request;
    if (method !== 'GET' && method !== 'HEAD') {
      response.setHeader('Allow', 'GET, HEAD');
      this.#text(request, response, 405, 'this port is for reading: GET and HEAD only');
      return;
    }
    if (Number(headers['content-length'] ?? 0) !== 0 || headers['transfer-encoding'] !== undefined) {
      this.#text(request, response, 400, 'no body is taken');
      return;
    }
    if (headers.host === undefined && request.httpVersion === '1.1') {
      this.#text(request, response, 400, 'Host is missing');
      return;
    }
    // mutation: http/any-host-name
    if (!isOwnHost(headers.host, socket.localAddress, this.#options.addresses)) {
      this.#text(request, response, 421, 'the name in Host is not one of this server: use 127.0.0.1 or localhost');
      return;
    }
    const { authority, path } = targetOf(request.url ?? '');
    if (authority !== undefined && !isOwnHost(authority, socket.localAddress, this.#options.addresses)) {
      this.#text(request, response, 421, 'the name in the URL is not one of this server: use 127.0.0.1 or localhost');
      return;
    }
    if (path === '/healthz') {
      this.#text(request, response, 200, 'ok');
      return;
    }
    // Strangers must not keep the thread busy that renews the leases: these two never ask for the status.
    if (path === '/readyz') {
      const why = this.#readiness.why(await this.#ready.get());
      this.#text(request, response, why === undefined ? 200 : 503, why ?? 'ready');
      return;
    }
    if (path === '/role') {
      this.#text(request, response, 200, (await this.#ready.get()).role);
      return;
    }
    const identity = this.#identify(request, response, this.#peers.get(socket)?.guest); // mutation: http/no-token
    if (identity !== undefined) await this.#show(path, request, response, identity);
  }

  /** Undefined: nobody who may see this, and the request is answered. */
  #identify(request: IncomingMessage, response: ServerResponse, guest: Guest | undefined): Identity | undefined {
    const { credentials, known, logins } = this.#options;
    const token = tokenIn(request.headers.authorization);
    if (guest === undefined) return undefined;
    try {
      // mutation: http/token-of-a-writer
      const hello = { t: 'hello', magic: 'farkv', versions: [1, 1], role: 'admin' } as const;
      const identity = identify(logins, credentials, guest, { ...hello, ...(token === undefined ? {} : { token }) });
      known.add(guest.source);
      const lapsed = identity.lapsed?.(Date.now());
      if (lapsed === undefined) return identity;
      this.#text(request, response, 403, lapsed);
    } catch (error) {
      const { code, message } = asFarkvError(error);
      const remote = addressOf(request.socket);
      // A browser asks without a token first: that is no attempt.
      if (token !== undefined)
        this.#refusals.say(`${remote} was refused: ${message}`, loginFailed(code, remote, 'admin', message));
      if (code === 'ERR_UNAUTHORIZED') response.setHeader('WWW-Authenticate', 'Basic realm="farkv", charset="UTF-8"');
      this.#text(request, response, code === 'ERR_BUSY' ? 429 : 401, message);
    }
    return undefined;
  }

  async #show(path: string, request: IncomingMessage, response: ServerResponse, who: Identity): Promise<void> {
    if (path === '/metrics') {
      const isOpen = wantsOpenMetrics(request.headers.accept);
      const { serverId } = this.#options;
      const text = await this.#metrics.text(await this.#own.get(), serverId, this.#events.listeners, isOpen);
      this.#send(request, response, 200, this.#metrics.contentType(isOpen), text);
      return;
    }
    if (path === '/events' && request.method === 'HEAD') {
      response.writeHead(200, { ...HEADERS, 'Content-Type': 'text/event-stream' }).end();
      return;
    }
    if (path === '/events') {
      this.#listen(request, response, who);
      return;
    }
    const asset = this.#assets.get(path);
    if (asset !== undefined) {
      this.#send(request, response, 200, asset.type, asset.body);
      return;
    }
    this.#text(request, response, 404, 'there is /, /metrics, /healthz, /readyz, /role');
  }

  #listen(request: IncomingMessage, response: ServerResponse, who: Identity): void {
    if (this.#events.listeners >= LISTENERS) {
      const why = `${LISTENERS} pages are open at this server already: close one of them, or open that of another server`;
      this.#text(request, response, 503, why);
      return;
    }
    // It ends when its reader does not read, or its credential is over (events.ts).
    clearTimeout(this.#peers.get(request.socket)?.deadline);
    response.writeHead(200, { ...HEADERS, 'Content-Type': 'text/event-stream' });
    response.flushHeaders();
    const whoever = { role: who.access, name: who.name, address: addressOf(request.socket) };
    const ended = (why: string): void => this.#refusals.say('', credentialEnded(whoever, why));
    this.#events.add(response, { ...who, ended }, request.socket);
  }

  #text(request: IncomingMessage, response: ServerResponse, status: number, text: string): void {
    this.#send(request, response, status, TEXT, `${text}\n`);
  }

  #send(request: IncomingMessage, response: ServerResponse, status: number, type: string, body: string | Buffer): void {
    const isRefused = status >= 400 && status !== 401 && status !== 404 && status !== 503;
    response.writeHead(status, {
      ...HEADERS,
      'Content-Type': type,
      'Content-Length': Buffer.byteLength(body),
      ...(isRefused ? { Connection: 'close' } : {}),
    });
    response.end(request.method === 'HEAD' ? undefined : body);
  }
}

const addressOf = ({ remoteAddress = '', remotePort = 0 }: Socket): string => `${remoteAddress}:${remotePort}`;

/** Proxies ask with the whole URL, of which a server has to take the name as well. */
function targetOf(url: string): { readonly authority: string | undefined; readonly path: string } {
  const [, authority, rest = url] = /^https?:\/\/([^/?]*)(.*)$/i.exec(url) ?? [];
  const path = rest.split('?')[0] ?? '';
  return { authority, path: authority !== undefined && path === '' ? '/' : path };
}
