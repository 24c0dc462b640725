/**
 * The peers' port: other servers bring Raft messages and make calls; a server that is new asks to join. Nobody else is
 * let in. It runs on the thread of Raft, so what a stranger may cost is small and bounded beforehand: places and
 * handshakes per second (listener.ts, bounds.ts), then one frame of 2 KiB (net/incoming.ts).
 */
import type { Socket } from 'node:net';
import { FarkvError, type ErrorCode } from '../../core/errors.js';
import type { MetadataState } from '../../core/metadata/state.js';
import {
  JOINER_FRAME_LIMITS,
  MESSAGE_MAX,
  PEER_FRAME_LIMITS,
  printable,
  type Call,
  type Frame,
  type Hello,
} from '../../core/protocol/index.js';
import type { Shared } from '../../net/connection.js';
import { Incoming } from '../../net/incoming.js';
import { Outbox } from '../../net/outbox.js';
import { Turns } from '../../net/turns.js';
import { auditCall, credentialEnded, limitedAudit, loginFailed, type AuditLines, type Who } from '../audit.js';
import { describeError, failedCall, RateLimitedLog, type Log } from '../log.js';
import type { RecentAddresses } from './addresses.js';
import type { Access, Credentials, Identity } from './auth.js';
import { CALLS_MAX, JOINER_VISIT, JOINS_AT_ONCE, PEER_CONNECTIONS, PEER_OUTBOX, PEER_TURN } from './bounds.js';
import type { Guest } from './listener.js';
import { identify, Logins } from './logins.js';
import { Standing, type Stander } from './standing.js';

export interface PeerPlaneOptions {
  readonly serverId: string;
  readonly instance: string;
  readonly handshakeMs: number;
  readonly credentials: Credentials;
  readonly state: () => MetadataState;
  /** Throws a FarkvError when this peer must not come in. */
  readonly arrives: (hello: Hello) => void;
  /** A Raft message of an accepted peer. Throws ERR_PROTOCOL when it is none. */
  readonly message: (from: string, message: unknown) => void;
  /** Answers a call, or throws a FarkvError. */
  readonly call: (access: Access, method: string, args: unknown, from: string) => Promise<unknown>;
  /** Addresses from which servers have come. */
  readonly known: RecentAddresses;
  readonly log: Log;
  readonly logins?: Logins;
  readonly wallMs?: () => number;
}

export class PeerPlane {
  readonly #options: PeerPlaneOptions;
  readonly #shared: Shared = { turns: new Turns(PEER_TURN), outbox: new Outbox(PEER_OUTBOX) };
  readonly #refusals: AuditLines;
  readonly #faults: RateLimitedLog;
  readonly #logins: Logins;
  readonly #standing: Standing;
  #admitted = 0;
  /** Joins that are being answered. */
  #joins = 0;

  constructor(options: PeerPlaneOptions) {
    this.#options = options;
    this.#refusals = limitedAudit(options.log);
    this.#faults = new RateLimitedLog((text, fields) => options.log.warn(text, fields));
    this.#logins = options.logins ?? new Logins();
    this.#standing = new Standing(options.wallMs);
  }

  accept(socket: Socket, guest: Guest): void {
    let peer: Peer | undefined;
    let stander: Stander | undefined;
    let calls = 0;
    const { log, handshakeMs } = this.#options;
    const answered = {
      begin: () => (calls += 1) <= (peer?.access === 'peer' ? CALLS_MAX : 1),
      end: () => (calls -= 1),
    };
    const incoming: Incoming = new Incoming(
      socket,
      handshakeMs,
      {
        hello: (hello) => {
          const { identity, ...fields } = this.#arrives(hello, guest);
          const { name, lapsed } = identity;
          const { remote: address } = incoming.connection;
          // A server that asks for its place may do nothing else.
          const arrived: Peer = {
            from: hello.from ?? '',
            source: guest.source,
            who: { role: 'peer', name, address },
            access: hello.join === true ? 'joiner' : 'peer', // mutation: tenants/joiner-as-peer
          };
          peer = arrived;
          if (arrived.access === 'peer') this.#admitted += 1;
          if (lapsed !== undefined) {
            stander = { lapsed, end: (why) => this.#end(incoming, arrived, why) };
            this.#standing.add(stander);
          }
          if (arrived.access === 'joiner') {
            // Until its join token is found to be good it is a stranger, and is told nothing that opens anything.
            const { serverId, clusterId } = fields;
            // mutation: control/joiner-told-directory
            incoming.welcome({ serverId, clusterId }, JOINER_FRAME_LIMITS, JOINER_VISIT);
            return;
          }
          this.#options.known.add(guest.source);
          guest.admitted();
          incoming.welcome(fields, PEER_FRAME_LIMITS);
        },
        refused: (message, code) => {
          const { remote } = incoming.connection;
          this.#refusals.say(`${remote} was refused: ${message}`, loginFailed(code, remote, 'peer', message));
        },
        frame: (frame) => {
          if (peer !== undefined) this.#frame(frame, peer, incoming, answered);
        },
        closed: (error) => {
          if (peer?.access === 'peer') this.#admitted -= 1;
          if (stander !== undefined) this.#standing.remove(stander);
          if (error === undefined) return;
          const { cause } = error;
          const fault = error.code === 'ERR_INTERNAL' && cause instanceof Error;
          const text = `a connection of ${peer?.from ?? 'a stranger'} is closed: ${fault ? (cause.stack ?? cause.message) : describeError(error)}`;
          const fields = { event: 'connection-failed', server: peer?.from ?? '', code: error.code } as const;
          if (fault) log.error(text, fields);
          // Of a server that was let in: it is faulty, or somebody else has its credential.
          else if (error.code === 'ERR_PROTOCOL' && peer?.access === 'peer') this.#faults.say(text, fields);
          else log.debug(text, fields);
        },
        drained: () => undefined,
      },
      this.#shared,
    );
  }

  /** The credential is good no more. */
  #end({ connection }: Incoming, { who }: Peer, why: FarkvError): void {
    this.#refusals.say('', credentialEnded(who, why.message));
    connection.close(why);
  }

  /** What a welcome says, or the reason to turn the peer away. */
  #arrives(hello: Hello, guest: Guest): { serverId: string; clusterId: string; instance: string; identity: Identity } {
    const { credentials, arrives, state, serverId, instance } = this.#options;
    // mutation: control/client-at-server-port
    if (hello.role !== 'peer')
      throw new FarkvError('ERR_CONFIG', 'this is the port between servers: clients and operators use --listen');
    const identity = identify(this.#logins, credentials, guest, hello);
    const { serverId: certified } = identity;
    // mutation: credentials/name-of-another
    if (certified !== undefined && certified !== hello.from)
      throw new FarkvError(
        'ERR_UNAUTHORIZED',
        `the certificate is one of ${certified}, not of ${hello.from ?? 'nobody'}`,
      );
    if (hello.join !== true && this.#admitted >= PEER_CONNECTIONS)
      throw new FarkvError('ERR_BUSY', `there are ${PEER_CONNECTIONS} connections of servers`);
    arrives(hello);
    return { serverId, clusterId: state().clusterId, instance, identity };
  }

  #frame(frame: Frame, peer: Peer, { connection }: Incoming, calls: Calls): void {
    switch (frame.t) {
      case 'raft':
        if (peer.access !== 'peer')
          throw new FarkvError('ERR_PROTOCOL', 'a Raft message from a peer that is not a server');
        this.#options.message(peer.from, frame.message);
        break;
      case 'call':
        if (calls.begin()) void this.#answer(frame, peer, connection, calls);
        else if (peer.access === 'joiner')
          throw new FarkvError('ERR_PROTOCOL', 'a second call of a server that asks for its place');
        else {
          calls.end();
          connection.send(failure(frame, 'ERR_BUSY', `more than ${CALLS_MAX} calls at once`));
        }
        break;
      default:
        throw new FarkvError('ERR_PROTOCOL', `a ${frame.t} frame, which is not for a server`);
    }
  }

  async #answer(call: Call, peer: Peer, connection: Incoming['connection'], calls: Calls): Promise<void> {
    const { access, from, source } = peer;
    const guesses = `${source} join`;
    let outcome: ErrorCode | 'ok' = 'ok';
    const answer = (frame: Frame): void => {
      if (access === 'joiner') connection.end(frame);
      else connection.send(frame);
    };
    try {
      if (access === 'joiner' && (this.#joins += 1) > JOINS_AT_ONCE)
        throw new FarkvError('ERR_BUSY', `${JOINS_AT_ONCE} servers are joining: ask again`);
      const result = await this.#options.call(access, call.method, call.args, from);
      answer({ t: 'answer', id: call.id, ok: true, result });
    } catch (cause) {
      const error = access === 'joiner' ? braked(this.#logins, guesses, cause) : cause;
      outcome = error instanceof FarkvError ? error.code : 'ERR_INTERNAL';
      if (!(error instanceof FarkvError))
        this.#options.log.error(`${call.method} failed: ${describeError(error)}`, failedCall(call.method, access));
      answer(
        error instanceof FarkvError
          ? failure(call, error.code, error.message)
          : failure(call, 'ERR_INTERNAL', 'the server failed'),
      );
    } finally {
      if (access === 'joiner') this.#joins -= 1;
      const fields = access === 'joiner' ? auditCall(peer.who, call.method, call.args, outcome, from) : undefined;
      if (fields !== undefined) this.#refusals.say('', fields);
      calls.end();
    }
  }
}

/** What a joiner is told: after too many wrong join tokens of its address, that it has to wait. A right one does not. */
function braked(logins: Logins, guesses: string, error: unknown): unknown {
  if (!(error instanceof FarkvError) || error.code !== 'ERR_UNAUTHORIZED') return error;
  const waitMs = logins.wrong(guesses);
  return waitMs === 0
    ? error
    : new FarkvError(
        'ERR_BUSY',
        `too many wrong join tokens from this address: the next is told wrong in ${waitMs} ms`,
      );
}

/** Who is at the other end. */
interface Peer {
  readonly from: string;
  /** Its address, as bounds count it. */
  readonly source: string;
  readonly who: Who;
  readonly access: 'peer' | 'joiner';
}

/** Calls of one connection that are being answered. */
interface Calls {
  readonly begin: () => boolean;
  readonly end: () => void;
}

function failure({ id }: Call, code: ErrorCode, message: string): Frame {
  return { t: 'answer', id, ok: false, code, message: printable(message, MESSAGE_MAX) };
}
