/**
 * The control port: clients get maps and tickets, operators make calls. Servers have a port of their own
 * (peer-plane.ts). What a connection costs until its hello is accepted is bounded by listener.ts and net/incoming.ts;
 * what it costs after that, by bounds.ts.
 *
 * It runs in a thread that owns nothing but these connections (front-worker.ts): whatever arrives here delays no lease.
 */
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { FarkvError, type ErrorCode } from '../../core/errors.js';
import type { MetadataState } from '../../core/metadata/state.js';
import { tenantNumber } from '../../core/metadata/tenants.js';
import { revokedBeforeMs } from '../../core/metadata/tickets.js';
import {
  CLIENT_FRAME_LIMITS,
  HELLO_FRAME_LIMITS,
  MESSAGE_MAX,
  printable,
  type Answer,
  type Call,
  type Frame,
  type Hello,
  type Role,
} from '../../core/protocol/index.js';
import type { Connection, Shared } from '../../net/connection.js';
import type { WelcomeFields } from '../../net/hello.js';
import { Incoming } from '../../net/incoming.js';
import { Outbox } from '../../net/outbox.js';
import { Turns } from '../../net/turns.js';
import type { Log } from '../log.js';
import {
  auditCall,
  credentialEnded,
  isAudited,
  limitedAudit,
  loginFailed,
  type AuditLines,
  type Who,
} from '../audit.js';
import { describeError, failedCall, type LogFields } from '../log.js';
import type { RecentAddresses } from './addresses.js';
import type { Access, Caller, Credentials, Identity } from './auth.js';
import {
  ANSWERS_UNREAD,
  AUDITED_CALLS,
  AUDITED_OPERATORS,
  AUDITED_WAIT_MS,
  CALLS_MAX,
  CONTROL_OUTBOX,
  CONTROL_TURN,
  OPERATOR_PLACES,
} from './bounds.js';
import { Buckets, type Rate } from './bucket.js';
import { clientPage, type ClientEntry, type ClientPage, type ClientQuery } from './client-list.js';
import type { Guest } from './listener.js';
import { identify, Logins } from './logins.js';
import { Standing, type Stander } from './standing.js';
import { MapFrames, PACE, Subscription, type SessionPace, type Subscriber } from './subscription.js';
import { clientOf, idOf, issueTicket, ticketSecrets, type TicketCodes } from './tickets.js';

export interface ControlPlaneOptions {
  readonly serverId: string;
  readonly handshakeMs: number;
  readonly credentials: Credentials;
  /** Of clients and monitors; operators have a few more. */
  readonly maxConnections: number;
  readonly state: () => MetadataState;
  readonly tickets: TicketCodes;
  /** Answers a call, or throws a FarkvError. */
  readonly call: (caller: Caller, method: string, args: unknown) => Promise<unknown>;
  /** Addresses from which somebody has shown a token. */
  readonly known: RecentAddresses;
  readonly log: Log;
  readonly pace?: Partial<SessionPace>;
  readonly logins?: Logins;
  readonly wallMs?: () => number;
  readonly auditedCalls?: Rate;
}

/** A change is sent at once; those that come within this time after it are sent together. */
const COALESCE_MS = 5;

export class ControlPlane {
  readonly #options: ControlPlaneOptions;
  /** Later ones have larger numbers. */
  readonly #subscriptions = new Map<Subscription, ClientEntry>();
  #numbers = 0;
  readonly #frames = new MapFrames();
  readonly #refusals: AuditLines;
  readonly #host: Host;
  readonly #standing: Standing;
  readonly #shared: Shared = { turns: new Turns(CONTROL_TURN), outbox: new Outbox(CONTROL_OUTBOX) };
  readonly #renewals: NodeJS.Timeout;
  /** Until the next push. */
  #pause: NodeJS.Timeout | undefined;
  #isChanged = false;
  #admitted = 0;
  /** Connections that got nowhere. */
  rejected = 0;

  constructor(options: ControlPlaneOptions) {
    this.#options = options;
    this.#refusals = limitedAudit(options.log);
    this.#standing = new Standing(options.wallMs);
    const pace = { ...PACE, ...options.pace };
    this.#renewals = setInterval(() => {
      for (const session of this.#subscriptions.keys()) session.renewInTime();
    }, pace.lookMs).unref();
    const audited = new Buckets(options.auditedCalls ?? AUDITED_CALLS, AUDITED_OPERATORS);
    this.#host = {
      logins: options.logins ?? new Logins(),
      standing: this.#standing,
      turnMs: (operator) => {
        const now = performance.now();
        return audited.of(operator, now).reserve(now, AUDITED_WAIT_MS);
      },
      has: (tenant) => [...this.#subscriptions.keys()].filter((session) => session.tenant === tenant).length,
      admit: (access, { source, admitted }) => {
        const { maxConnections, known } = options;
        if (this.#admitted >= maxConnections + (access === 'operator' ? OPERATOR_PLACES : 0))
          throw new FarkvError('ERR_BUSY', `this server accepts at most ${maxConnections} connections`);
        this.#admitted += 1;
        known.add(source);
        admitted();
      },
      subscribe: (connection, subscriber, entry) => {
        const session = new Subscription(connection, this.#frames, subscriber, pace);
        this.#subscriptions.set(session, { number: (this.#numbers += 1), ...entry });
        return session;
      },
      left: (session) => {
        this.#admitted -= 1;
        session?.close();
        if (session !== undefined) this.#subscriptions.delete(session);
      },
      rejected: () => (this.rejected += 1),
      refused: (text, fields) => this.#refusals.say(text, fields),
    };
  }

  get clients(): number {
    return this.#subscriptions.size;
  }

  /** For operators alone. */
  clientPage(query: ClientQuery): ClientPage {
    return clientPage(this.#subscriptions.values(), query);
  }

  /** The metadata changed: clients hear of it. */
  stateChanged(): void {
    this.#isChanged = this.#pause !== undefined;
    if (this.#isChanged) return;
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      if (this.#isChanged) this.stateChanged();
    }, COALESCE_MS);
    const state = this.#options.state();
    for (const session of this.#subscriptions.keys()) session.push(state);
  }

  close(): void {
    clearTimeout(this.#pause);
    clearInterval(this.#renewals);
    for (const session of this.#subscriptions.keys()) session.close();
  }

  accept(socket: Socket, guest: Guest): void {
    new Visit(socket, guest, this.#options, this.#host, this.#shared);
  }
}

interface Host {
  readonly logins: Logins;
  readonly standing: Standing;
  /** When this operator may make one more call that is audited; undefined: it has too many that wait. */
  readonly turnMs: (operator: string) => number | undefined;
  /** So many clients of a tenant. */
  readonly has: (tenant: number) => number;
  /** Throws ERR_BUSY when there are too many. */
  readonly admit: (access: Access, guest: Guest) => void;
  readonly subscribe: (
    connection: Connection,
    subscriber: Subscriber,
    entry: Omit<ClientEntry, 'number'>,
  ) => Subscription;
  /** A connection that was admitted has ended. */
  readonly left: (session: Subscription | undefined) => void;
  /** The connection ended without having been let in. */
  readonly rejected: () => void;
  /** Why it was not, where it sent a hello. */
  readonly refused: (text: string, fields: LogFields) => void;
}

/** One connection from its first byte to its end. */
class Visit {
  readonly #options: ControlPlaneOptions;
  readonly #host: Host;
  readonly #guest: Guest;
  readonly #incoming: Incoming;
  readonly #remote: string;
  readonly #tls: boolean;
  /** Undefined until the connection is let in. */
  #access: Access | undefined;
  #who: Who | undefined;
  #role: Role | undefined;
  #subscription: Subscription | undefined;
  #stander: Stander | undefined;
  #calls = 0;
  /** Answers that wait until the other end has read those before them. */
  readonly #answers: Answer[] = [];

  constructor(socket: Socket, guest: Guest, options: ControlPlaneOptions, host: Host, shared: Shared) {
    this.#options = options;
    this.#host = host;
    this.#guest = guest;
    this.#incoming = new Incoming(
      socket,
      options.handshakeMs,
      {
        hello: (hello) => this.#arrives(hello),
        refused: (message, code) =>
          host.refused(`${this.#remote} was refused: ${message}`, loginFailed(code, this.#remote, this.#role, message)),
        frame: (frame) => this.#frame(frame),
        closed: (error) => this.#closed(error),
        drained: () => this.#drained(),
      },
      shared,
    );
    this.#remote = this.#incoming.connection.remote;
    this.#tls = socket instanceof TLSSocket;
  }

  #closed(error: FarkvError | undefined): void {
    if (this.#access === undefined) this.#host.rejected();
    else this.#host.left(this.#subscription);
    if (this.#stander !== undefined) this.#host.standing.remove(this.#stander);
    if (error === undefined) return;
    // What the other end did, or the network, is its own affair; a fault of this program is not.
    const { cause } = error;
    const fault = error.code === 'ERR_INTERNAL' && cause instanceof Error;
    this.#options.log[fault ? 'error' : 'debug'](
      `a connection from ${this.#remote} is closed: ${fault ? (cause.stack ?? cause.message) : describeError(error)}`,
      { event: 'connection-failed', address: this.#remote, code: error.code },
    );
  }

  #frame(frame: Frame): void {
    if (this.#access === undefined) return;
    if (frame.t !== 'call') throw new FarkvError('ERR_PROTOCOL', `a ${frame.t} frame, which is not for this port`);
    void this.#call(frame, this.#access);
  }

  /** Lets the caller in, or throws why not. */
  #arrives(hello: Hello): void {
    const { serverId, credentials, state } = this.#options;
    this.#role = hello.role;
    // mutation: control/server-at-client-port
    if (hello.role === 'peer') {
      throw new FarkvError(
        'ERR_CONFIG',
        'this is the port of clients and operators: --peers and --join name the port between servers (--peer-listen)',
      );
    }
    const identity = identify(this.#host.logins, credentials, this.#guest, hello);
    const who: Who = { role: identity.access, name: identity.name, address: this.#remote };
    this.#who = who;
    const { clusterId } = state();
    const welcome: WelcomeFields = { serverId, clusterId };
    if (hello.role === 'client') {
      if (clusterId === '')
        throw new FarkvError('ERR_NO_LEADER', 'the cluster is not ready yet: its servers have not found each other');
      this.#welcomeClient(hello, welcome, identity, who);
    } else {
      this.#admit(identity, who);
      this.#incoming.welcome(welcome, CLIENT_FRAME_LIMITS);
    }
  }

  #admit({ access, lapsed }: Identity, who: Who): void {
    this.#host.admit(access, this.#guest);
    this.#access = access;
    if (lapsed === undefined) return;
    this.#stander = { lapsed, end: (why) => this.#end(who, why) };
    this.#host.standing.add(this.#stander);
  }

  /** The credential is good no more. */
  #end(who: Who, why: FarkvError): void {
    this.#host.refused('', credentialEnded(who, why.message));
    this.#incoming.connection.close(why);
  }

  #welcomeClient(hello: Hello, welcome: WelcomeFields, identity: Identity, who: Who): void {
    const { state, tickets, wallMs = Date.now } = this.#options;
    const { maxClients = Infinity, access, lapsed } = identity;
    const tenant = tenantNumber(state(), identity.tenant);
    if (tenant === undefined)
      throw new FarkvError('ERR_UNAUTHORIZED', 'the cluster does not have the tenant of this token');
    if (this.#host.has(tenant) >= maxClients) {
      throw new FarkvError('ERR_BUSY', `this server accepts at most ${maxClients} clients of this tenant`);
    }
    this.#admit(identity, who);
    const client = clientOf(tickets, state(), hello.ticket, tenant);
    const clientId = idOf(client);
    this.#options.log.debug(`client ${clientId} of tenant ${tenant}`);
    const writes = access === 'writer'; // mutation: tenants/reader-writes
    const revokedMs = revokedBeforeMs(state(), clientId, tenant);
    let last: Uint8Array = new Uint8Array();
    const ticket = (now: MetadataState): Uint8Array =>
      (last = issueTicket(tickets, now, { client, tenant, writes }, wallMs())); // mutation: tenants/default-ticket
    const isStale = (now: MetadataState): boolean => tickets.openTicket(ticketSecrets(now), last) === undefined;
    const isRevoked = (now: MetadataState): boolean =>
      // mutation: credentials/expired-certificate
      revokedBeforeMs(now, clientId, tenant) > revokedMs || lapsed?.(wallMs()) !== undefined;
    const entry = {
      id: clientId,
      access: writes ? 'writer' : 'reader',
      tenant: identity.tenant ?? '',
      name: identity.name,
      address: this.#remote,
      sinceMs: wallMs(),
      tls: this.#tls,
    } as const;
    const subscriber = { tenant, ticket, isStale, isRevoked, wallMs };
    this.#subscription = this.#host.subscribe(this.#incoming.connection, subscriber, entry);
    // A client makes no calls: it need not send more than a stranger may.
    const told = { clientId, access: entry.access, ticket: ticket(state()) };
    const ofTenant = identity.tenant === undefined ? {} : { tenant: identity.tenant };
    this.#incoming.welcome({ ...welcome, ...told, ...ofTenant }, HELLO_FRAME_LIMITS);
    this.#subscription.push(state());
  }

  async #call(call: Call, access: Access): Promise<void> {
    const failed = (code: ErrorCode, message: string): void =>
      this.#answer({ t: 'answer', id: call.id, ok: false, code, message: printable(message, MESSAGE_MAX) });
    if (this.#calls >= CALLS_MAX) {
      failed('ERR_BUSY', `more than ${CALLS_MAX} calls at once`);
      return;
    }
    // What a cluster says of itself is of all its tenants.
    if (!isCaller(access)) {
      failed('ERR_UNAUTHORIZED', 'calls are for operators, and clients make none');
      return;
    }
    this.#calls += 1;
    let outcome: ErrorCode | 'ok' = 'ok';
    let written = access === 'operator';
    try {
      if (access === 'operator' && isAudited(call.method)) {
        written = await this.#turn();
        if (!written)
          throw new FarkvError('ERR_BUSY', 'too many changes by one operator: later ones are accepted again');
        // What let it in may have ended while the call waited for its turn.
        if (this.#incoming.connection.closed)
          throw new FarkvError('ERR_UNAUTHORIZED', 'the connection of this call was ended');
      }
      const result = await this.#options.call(access, call.method, call.args);
      this.#answer({ t: 'answer', id: call.id, ok: true, result });
    } catch (error) {
      if (!(error instanceof FarkvError))
        this.#options.log.error(`${call.method} failed: ${describeError(error)}`, failedCall(call.method, access));
      outcome = error instanceof FarkvError ? error.code : 'ERR_INTERNAL';
      failed(outcome, error instanceof FarkvError ? error.message : 'the server failed');
    } finally {
      const fields = auditCall(this.#who, call.method, call.args, outcome);
      if (fields !== undefined) {
        // A monitor may ask for what it may not do as often as it likes.
        if (written) this.#options.log.audit(fields);
        else this.#host.refused('', fields);
      }
      this.#calls -= 1;
    }
  }

  /** Waits until this operator may make one more call that is audited. False: too many wait already. */
  async #turn(): Promise<boolean> {
    const ms = this.#host.turnMs(`${this.#who?.name ?? ''} ${this.#guest.source}`);
    if (ms !== undefined && ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
    return ms !== undefined;
  }

  /** An end that does not read its answers gets no more of them, and no more of its calls are read. */
  #answer(answer: Answer): void {
    const { connection } = this.#incoming;
    if (connection.closed) return;
    if (this.#answers.length === 0 && connection.backlog <= ANSWERS_UNREAD) {
      connection.send(answer);
    } else {
      this.#answers.push(answer);
      connection.hold();
    }
  }

  #drained(): void {
    const { connection } = this.#incoming;
    for (let next = this.#answers.shift(); next !== undefined; next = this.#answers.shift()) {
      connection.send(next);
      if (connection.backlog > ANSWERS_UNREAD) break;
    }
    if (this.#answers.length === 0) connection.release();
    this.#subscription?.drained(this.#options.state());
  }
}

const isCaller = (access: Access): access is Caller => access === 'operator' || access === 'monitor';
