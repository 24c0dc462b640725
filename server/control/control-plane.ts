/**
 * The control port: who may come in, as what, and what each may then do. Clients get maps and tickets, operators make
 * calls, other servers bring Raft messages and proposals. What a connection costs until its hello is accepted is
 * bounded by net/incoming.ts.
 */
import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { FarkvError, type ErrorCode } from '../../core/errors.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { tenantNumber } from '../../core/metadata/tenants.js';
import {
  MESSAGE_MAX,
  PEER_FRAME_LIMITS,
  printable,
  type Call,
  type Frame,
  type Hello,
  type Role,
} from '../../core/protocol/index.js';
import type { Connection } from '../../net/connection.js';
import type { WelcomeFields } from '../../net/hello.js';
import { Incoming } from '../../net/incoming.js';
import type { Log } from '../log.js';
import { describeError, RateLimitedLog } from '../log.js';
import type { Access, Credentials, Identity } from './auth.js';
import { Subscription, MapFrames, type SessionPace } from './subscription.js';
import { issueTicket, type MakeTicket } from './tickets.js';

export interface ControlPlaneOptions {
  readonly serverId: string;
  readonly instance: string;
  readonly handshakeMs: number;
  readonly credentials: Credentials;
  readonly state: () => MetadataState;
  readonly makeTicket: MakeTicket;
  /** Throws a FarkvError when this peer must not come in. */
  readonly peerArrives: (hello: Hello) => void;
  /** A Raft message of an accepted peer. Throws ERR_PROTOCOL when it is none. */
  readonly peerMessage: (from: string, message: unknown) => void;
  /** Answers a call, or throws a FarkvError. */
  readonly call: (access: Access, method: string, args: unknown, from: string | undefined) => Promise<unknown>;
  readonly log: Log;
  readonly pace?: SessionPace;
}

const WANTED: Readonly<Record<Role, string>> = { client: 'a client', admin: 'an operator', peer: 'a server' };
const PEERS: ReadonlySet<Access> = new Set(['peer', 'joiner']);
/** Calls of one connection that are being answered. */
const CALLS_MAX = 32;
/** Changes within this time are sent together. */
const COALESCE_MS = 5;

export class ControlPlane {
  readonly #options: ControlPlaneOptions;
  readonly #subscriptions = new Set<Subscription>();
  readonly #frames = new MapFrames();
  readonly #refusals: RateLimitedLog;
  #push: NodeJS.Timeout | undefined;
  /** Connections that got nowhere. */
  rejected = 0;

  constructor(options: ControlPlaneOptions) {
    this.#options = options;
    this.#refusals = new RateLimitedLog((text) => options.log.info(text));
  }

  get clients(): number {
    return this.#subscriptions.size;
  }

  /** The metadata changed: clients hear of it soon. */
  stateChanged(): void {
    this.#push ??= setTimeout(() => {
      this.#push = undefined;
      const state = this.#options.state();
      for (const session of this.#subscriptions) session.push(state);
    }, COALESCE_MS);
  }

  close(): void {
    clearTimeout(this.#push);
    for (const session of this.#subscriptions) session.close();
  }

  accept(socket: Socket): void {
    new Visit(socket, this.#options, {
      has: (tenant) => [...this.#subscriptions].filter((session) => session.tenant === tenant).length,
      welcome: (connection, tenant, ticket) => {
        const session = new Subscription(connection, this.#frames, tenant, ticket, this.#options.pace);
        this.#subscriptions.add(session);
        return session;
      },
      left: (session) => {
        session.close();
        this.#subscriptions.delete(session);
      },
      rejected: () => (this.rejected += 1),
      refused: (text) => this.#refusals.say(text),
    });
  }
}

interface Host {
  /** So many clients of a tenant. */
  readonly has: (tenant: number) => number;
  readonly welcome: (connection: Connection, tenant: number, ticket: () => Uint8Array) => Subscription;
  readonly left: (session: Subscription) => void;
  /** The connection ended without having been let in. */
  readonly rejected: () => void;
  /** Why it was not, where it sent a hello. */
  readonly refused: (text: string) => void;
}

/** One connection from its first byte to its end. */
class Visit {
  readonly #options: ControlPlaneOptions;
  readonly #host: Host;
  readonly #incoming: Incoming;
  readonly #remote: string;
  #hello: Hello | undefined;
  #access: Access = 'reader';
  #subscription: Subscription | undefined;
  #calls = 0;

  constructor(socket: Socket, options: ControlPlaneOptions, host: Host) {
    this.#options = options;
    this.#host = host;
    this.#incoming = new Incoming(socket, options.handshakeMs, {
      hello: (hello) => this.#arrives(hello),
      refused: (message) => host.refused(`${this.#remote} was refused: ${message}`),
      frame: (frame) => this.#frame(frame),
      closed: (error) => this.#closed(error),
      drained: () => this.#subscription?.drained(options.state()),
    });
    this.#remote = this.#incoming.connection.remote;
  }

  #closed(error: FarkvError | undefined): void {
    if (this.#subscription !== undefined) this.#host.left(this.#subscription);
    if (this.#hello === undefined) this.#host.rejected();
    if (error === undefined) return;
    // What the other end did, or the network, is its own affair; a fault of this program is not.
    const { cause } = error;
    const fault = error.code === 'ERR_INTERNAL' && cause instanceof Error;
    this.#options.log[fault ? 'error' : 'debug'](
      `a connection from ${this.#remote} is closed: ${fault ? (cause.stack ?? cause.message) : describeError(error)}`,
    );
  }

  #frame(frame: Frame): void {
    const hello = this.#hello;
    if (hello === undefined) return;
    switch (frame.t) {
      case 'call':
        void this.#answer(frame, hello);
        break;
      case 'raft':
        if (this.#access !== 'peer')
          throw new FarkvError('ERR_PROTOCOL', 'a Raft message from a peer that is not a server');
        this.#options.peerMessage(hello.from ?? '', frame.message);
        break;
      default:
        throw new FarkvError('ERR_PROTOCOL', `a ${frame.t} frame, which is not for a server`);
    }
  }

  /** Lets the caller in, or throws why not. */
  #arrives(hello: Hello): void {
    const { serverId, credentials, state, instance } = this.#options;
    const identity = credentials.identify(hello.role, hello.token);
    if (identity === undefined) {
      throw new FarkvError(
        'ERR_UNAUTHORIZED',
        credentials.missing(hello.role) ??
          (hello.token === undefined
            ? `this server wants a token of ${WANTED[hello.role]}`
            : `the token is not one of ${WANTED[hello.role]}`),
      );
    }
    // A server that asks for its place may do nothing else.
    this.#access = identity.access === 'peer' && hello.join === true ? 'joiner' : identity.access;
    const { clusterId } = state();
    const welcome: WelcomeFields = { serverId, clusterId };
    if (hello.role === 'peer') {
      this.#options.peerArrives(hello);
      this.#hello = hello;
      this.#incoming.welcome({ ...welcome, instance }, PEER_FRAME_LIMITS);
    } else if (hello.role === 'admin') {
      this.#hello = hello;
      this.#incoming.welcome(welcome);
    } else if (clusterId === '') {
      throw new FarkvError('ERR_NO_LEADER', 'the cluster is not ready yet: its servers have not found each other');
    } else {
      this.#welcomeClient(hello, welcome, identity);
    }
  }

  #welcomeClient(hello: Hello, welcome: WelcomeFields, identity: Identity): void {
    const { state, makeTicket } = this.#options;
    const { maxClients = Infinity, access } = identity;
    const tenant = tenantNumber(state(), identity.tenant);
    if (tenant === undefined)
      throw new FarkvError('ERR_UNAUTHORIZED', 'the cluster does not have the tenant of this token');
    if (this.#host.has(tenant) >= maxClients) {
      throw new FarkvError('ERR_BUSY', `this server accepts at most ${maxClients} clients of this tenant`);
    }
    this.#hello = hello;
    // 0 names no client.
    const clientId = hello.clientId !== undefined && /[1-9a-f]/.test(hello.clientId) ? hello.clientId : newClientId();
    const ticket = (): Uint8Array =>
      issueTicket(makeTicket, state(), { clientId, tenant, writes: access === 'writer' }, Date.now());
    this.#subscription = this.#host.welcome(this.#incoming.connection, tenant, ticket);
    this.#incoming.welcome({ ...welcome, clientId, ticket: ticket() });
    this.#subscription.push(state());
  }

  async #answer(call: Call, { from }: Hello): Promise<void> {
    const access = this.#access;
    const failed = (code: ErrorCode, message: string): void =>
      this.#incoming.connection.send({
        t: 'answer',
        id: call.id,
        ok: false,
        code,
        message: printable(message, MESSAGE_MAX),
      });
    if (this.#calls >= CALLS_MAX) {
      failed('ERR_BUSY', `more than ${CALLS_MAX} calls at once`);
      return;
    }
    // What a cluster says of itself is of all its tenants.
    if (access === 'writer' || access === 'reader') {
      failed('ERR_UNAUTHORIZED', 'calls are for operators, and clients make none');
      return;
    }
    this.#calls += 1;
    try {
      const result = await this.#options.call(access, call.method, call.args, PEERS.has(access) ? from : undefined);
      this.#incoming.connection.send({ t: 'answer', id: call.id, ok: true, result });
    } catch (error) {
      if (!(error instanceof FarkvError)) this.#options.log.error(`${call.method} failed: ${describeError(error)}`);
      failed(
        error instanceof FarkvError ? error.code : 'ERR_INTERNAL',
        error instanceof FarkvError ? error.message : 'the server failed',
      );
    } finally {
      this.#calls -= 1;
    }
  }
}

function newClientId(): string {
  const bytes = randomBytes(8);
  return bytes.every((b) => b === 0) ? newClientId() : bytes.toString('hex');
}
