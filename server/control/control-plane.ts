/**
 * The control port: who may come in, as what, and what each may then do. Clients get maps and tickets, operators make calls,
 * other servers bring Raft messages and proposals.
 *
 * Until a connection's hello is accepted it costs one socket, one frame of 64 KiB at most, and --handshake-ms of time.
 */
import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { FarkvError, type ErrorCode } from '../../core/errors.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { DEFAULT_TRUST, trustNumber } from '../../core/metadata/trust.js';
import {
  CLIENT_FRAME_LIMITS, MESSAGE_MAX, PEER_FRAME_LIMITS, printable, PROTOCOL_MAX, PROTOCOL_MIN, type Call, type Frame, type Hello, type Role, type Welcome,
} from '../../core/protocol/index.js';
import type { Log } from '../log.js';
import { describeError, Sparing } from '../log.js';
import type { ClientTokens, OpenedDomain, TokenCheck } from './auth.js';
import { ClientSession, MapFrames, type SessionPace } from './client-session.js';
import { Connection } from './connection.js';
import { issueTicket, type MakeTicket } from './tickets.js';

export interface ControlPlaneOptions {
  readonly serverId: string;
  readonly instance: string;
  readonly handshakeMs: number;
  readonly clientTokens: ClientTokens;
  readonly adminToken: TokenCheck;
  readonly peerToken: TokenCheck;
  readonly state: () => MetadataState;
  readonly makeTicket: MakeTicket;
  /** Throws a FarkvError when this peer must not come in. */
  readonly peerArrives: (hello: Hello) => void;
  /** A Raft message of an accepted peer. Throws ERR_PROTOCOL when it is none. */
  readonly peerMessage: (from: string, message: unknown) => void;
  /** Answers a call, or throws a FarkvError. */
  readonly call: (role: Role, method: string, args: unknown, from: string | undefined) => Promise<unknown>;
  readonly log: Log;
  readonly pace?: SessionPace;
}

/** Calls of one connection that are being answered. */
const CALLS_MAX = 32;
/** Changes within this time are sent together. */
const COALESCE_MS = 5;

export class ControlPlane {
  readonly #options: ControlPlaneOptions;
  readonly #sessions = new Set<ClientSession>();
  readonly #frames = new MapFrames();
  readonly #sparing: Sparing;
  #push: NodeJS.Timeout | undefined;
  /** Connections that got nowhere. */
  rejected = 0;

  constructor(options: ControlPlaneOptions) {
    this.#options = options;
    this.#sparing = new Sparing((text) => options.log.info(text));
  }

  get clients(): number {
    return this.#sessions.size;
  }

  /** The metadata changed: clients hear of it soon. */
  stateChanged(): void {
    this.#push ??= setTimeout(() => {
      this.#push = undefined;
      const state = this.#options.state();
      for (const session of this.#sessions) session.push(state);
    }, COALESCE_MS);
  }

  close(): void {
    clearTimeout(this.#push);
    for (const session of this.#sessions) session.close();
  }

  accept(socket: Socket): void {
    new Visit(socket, this.#options, {
      has: (trust) => [...this.#sessions].filter((session) => session.trust === trust).length,
      welcome: (connection, trust, ticket) => {
        const session = new ClientSession(connection, this.#frames, trust, ticket, this.#options.pace);
        this.#sessions.add(session);
        return session;
      },
      left: (session) => {
        session.close();
        this.#sessions.delete(session);
      },
      rejected: () => (this.rejected += 1),
      refused: (text) => {
        this.rejected += 1;
        this.#sparing.say(text);
      },
    });
  }
}

interface Host {
  /** So many clients of a trust domain. */
  readonly has: (trust: number) => number;
  readonly welcome: (connection: Connection, trust: number, ticket: () => Uint8Array) => ClientSession;
  readonly left: (session: ClientSession) => void;
  /** It said no hello that could be understood. */
  readonly rejected: () => void;
  readonly refused: (text: string) => void;
}

/** One connection from its first byte to its end. */
class Visit {
  readonly #options: ControlPlaneOptions;
  readonly #host: Host;
  readonly #connection: Connection;
  readonly #deadline: NodeJS.Timeout;
  readonly #remote: string;
  #hello: Hello | undefined;
  #session: ClientSession | undefined;
  /** Of a client. */
  #trust = DEFAULT_TRUST;
  #calls = 0;

  constructor(socket: Socket, options: ControlPlaneOptions, host: Host) {
    this.#options = options;
    this.#host = host;
    this.#deadline = setTimeout(() => this.#connection.close(new FarkvError('ERR_TIMEOUT', 'no hello received in time')), options.handshakeMs);
    this.#connection = new Connection(socket, CLIENT_FRAME_LIMITS, {
      frame: (frame) => this.#frame(frame),
      closed: (error) => this.#closed(error),
      drained: () => this.#session?.drained(options.state()),
    });
    this.#remote = this.#connection.remote;
  }

  #closed(error: Error | undefined): void {
    clearTimeout(this.#deadline);
    if (this.#session !== undefined) this.#host.left(this.#session);
    if (this.#hello === undefined) this.#host.rejected();
    if (error === undefined) return;
    // What the other side did, or the network, is its own affair; anything else is a fault of this program.
    const theirs = error instanceof FarkvError || 'syscall' in error || 'code' in error;
    this.#options.log[theirs ? 'debug' : 'error'](`a connection from ${this.#remote} is closed: ${theirs ? describeError(error) : (error.stack ?? error.message)}`);
  }

  #frame(frame: Frame): void {
    if (this.#hello === undefined) {
      if (frame.t !== 'hello') throw new FarkvError('ERR_PROTOCOL', 'the first frame is not a hello');
      this.#arrives(frame);
      return;
    }
    switch (frame.t) {
      case 'ping':
        this.#connection.send({ t: 'pong', id: frame.id });
        break;
      case 'call':
        void this.#answer(frame, this.#hello);
        break;
      case 'raft':
        if (this.#hello.role !== 'peer') throw new FarkvError('ERR_PROTOCOL', 'a Raft message from a peer that is not a server');
        this.#options.peerMessage(this.#hello.from ?? '', frame.message);
        break;
      default:
        throw new FarkvError('ERR_PROTOCOL', `a ${frame.t} frame, which is not for a server`);
    }
  }

  #refuse(code: ErrorCode, message: string): void {
    this.#host.refused(`${this.#remote} was refused: ${message}`);
    this.#connection.end({ t: 'welcome', ok: false, code, message: printable(message, MESSAGE_MAX), versions: [PROTOCOL_MIN, PROTOCOL_MAX] });
  }

  #arrives(hello: Hello): void {
    const { serverId, clientTokens, adminToken, peerToken, state, instance } = this.#options;
    clearTimeout(this.#deadline);
    const version = Math.min(hello.versions[1], PROTOCOL_MAX);
    if (version < Math.max(hello.versions[0], PROTOCOL_MIN)) {
      this.#refuse('ERR_PROTOCOL_VERSION', `this server speaks protocol ${PROTOCOL_MIN} to ${PROTOCOL_MAX}, the caller ${hello.versions[0]} to ${hello.versions[1]}`);
      return;
    }
    const domain = hello.role === 'client' ? clientTokens.domainOf(hello.token) : undefined;
    if (hello.role === 'client' ? domain === undefined : !(hello.role === 'peer' ? peerToken : adminToken).accepts(hello.token)) {
      this.#refuse('ERR_UNAUTHORIZED', hello.token === undefined ? 'this server wants a token' : 'the token is not the right one');
      return;
    }
    const { clusterId } = state();
    const welcome: Extract<Welcome, { ok: true }> = { t: 'welcome', ok: true, version, serverId, clusterId };
    if (hello.role === 'peer') {
      try {
        this.#options.peerArrives(hello);
      } catch (error) {
        if (!(error instanceof FarkvError)) throw error;
        this.#refuse(error.code, error.message);
        return;
      }
      this.#hello = hello;
      this.#connection.setLimits(PEER_FRAME_LIMITS);
      this.#connection.send({ ...welcome, instance });
    } else if (hello.role === 'admin') {
      this.#hello = hello;
      this.#connection.send(welcome);
    } else if (clusterId === '') {
      this.#refuse('ERR_NO_LEADER', 'the cluster is not ready yet: its servers have not found each other');
    } else {
      this.#welcomeClient(hello, welcome, domain ?? {});
    }
  }

  #welcomeClient(hello: Hello, welcome: Extract<Welcome, { ok: true }>, { name, maxClients = Infinity }: OpenedDomain): void {
    const { state, makeTicket } = this.#options;
    const trust = trustNumber(state(), name);
    if (trust === undefined) {
      this.#refuse('ERR_UNAUTHORIZED', 'the cluster does not have the tenant of this token');
      return;
    }
    if (this.#host.has(trust) >= maxClients) {
      this.#refuse('ERR_BUSY', `this server accepts at most ${maxClients} clients of this tenant`);
      return;
    }
    this.#hello = hello;
    this.#trust = trust;
    // 0 names no client.
    const clientId = hello.clientId !== undefined && /[1-9a-f]/.test(hello.clientId) ? hello.clientId : newClientId();
    const ticket = (): Uint8Array => issueTicket(makeTicket, state(), clientId, trust, Date.now());
    this.#session = this.#host.welcome(this.#connection, trust, ticket);
    this.#connection.send({ ...welcome, clientId, ticket: ticket() });
    this.#session.push(state());
  }

  async #answer(call: Call, { role, from }: Hello): Promise<void> {
    const failed = (code: ErrorCode, message: string): void => this.#connection.send({ t: 'answer', id: call.id, ok: false, code, message: printable(message, MESSAGE_MAX) });
    if (this.#calls >= CALLS_MAX) {
      failed('ERR_BUSY', `more than ${CALLS_MAX} calls at once`);
      return;
    }
    // What a cluster says of itself is of all its trust domains.
    if (this.#trust !== DEFAULT_TRUST) {
      failed('ERR_UNAUTHORIZED', 'calls are for operators and clients of the default tenant');
      return;
    }
    this.#calls += 1;
    try {
      const result = await this.#options.call(role, call.method, call.args, role === 'peer' ? from : undefined);
      this.#connection.send({ t: 'answer', id: call.id, ok: true, result });
    } catch (error) {
      if (!(error instanceof FarkvError)) this.#options.log.error(`${call.method} failed: ${describeError(error)}`);
      failed(error instanceof FarkvError ? error.code : 'ERR_INTERNAL', error instanceof FarkvError ? error.message : 'the server failed');
    } finally {
      this.#calls -= 1;
    }
  }
}

function newClientId(): string {
  const bytes = randomBytes(8);
  return bytes.every((b) => b === 0) ? newClientId() : bytes.toString('hex');
}
