/**
 * Outgoing: one dialed connection, from the address to its end: socket, TLS, hello, welcome. The SDK
 * (client/control-connection.ts), servers among themselves and operators (control-client.ts) all dial by it. How long
 * it may take, and what comes after the end, is up to them.
 *
 *   DIALING --connected (with TLS: secure)--> GREETING --welcome--> OPEN
 *      |                                         | no welcome, a refusal |
 *      +------------> closed <-------------------+-----------------------+
 *
 * Invariants:
 *   - Nothing is sent before the certificate is trusted. The hello, which carries the token, is the first frame.
 *   - `welcomed` is called at most once, before any `frame`; `closed` once, last.
 */
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { parseServerAddress } from '../core/address.js';
import { FarkvError } from '../core/errors.js';
import type { Frame } from '../core/protocol/index.js';
import { expired, shownByBoth, type ShownByBoth } from './certificate.js';
import { Connection } from './connection.js';
import { limitsOf, makeHello, readWelcome, type Accepted, type HelloFields } from './hello.js';
import { dialerTls, type TrustSource } from './tls.js';

export interface OutgoingOptions {
  /** host:port */
  readonly address: string;
  /** undefined: no TLS. */
  readonly trust: TrustSource | undefined;
  /** The server that is expected there, where that is known. */
  readonly serverId?: string;
  readonly hello: HelloFields;
}

export interface OutgoingHandlers {
  readonly welcomed: (welcome: Accepted) => void;
  /** The other end answered the hello with no, or with nonsense; `closed` follows. */
  readonly refused?: (error: FarkvError) => void;
  /** The answer to a ping, after the welcome. */
  readonly ponged?: ((id: number) => void) | undefined;
  /** Frames after the welcome, but pings and their answers. What it throws closes the connection. */
  readonly frame: (frame: Frame) => void;
  readonly closed: (error: FarkvError) => void;
}

const OTHER_TLS = 'is it one without TLS, or the port of data, and not --listen?';
/** The port of data knows no certificates; who speaks no TLS answers with no version of it. */
const NO_TLS = /^ERR_SSL_(SSL.*_ALERT_HANDSHAKE_FAILURE|WRONG_VERSION_NUMBER)$/;

export class Outgoing {
  readonly connection: Connection;
  readonly #options: OutgoingOptions;
  readonly #handlers: OutgoingHandlers;
  #state: 'dialing' | 'greeting' | 'open' = 'dialing';
  /** Undefined: no TLS, or no handshake yet. */
  #shown: ShownByBoth | undefined;

  /** Throws when the address is none. */
  constructor(options: OutgoingOptions, handlers: OutgoingHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    const { hello } = options;
    const socket = this.#dial();
    this.connection = new Connection(socket, limitsOf(hello.role), {
      frame: (frame) => this.#received(frame),
      closed: (error) =>
        handlers.closed(
          error === undefined ? new FarkvError('ERR_DISCONNECTED', this.#hungUp()) : this.#inWords(error),
        ),
    });
  }

  #dial(): Socket {
    const { address, trust, serverId } = this.#options;
    const { host, port } = parseServerAddress(address);
    const greet = (): void => this.#greet();
    if (trust === undefined) return connectPlain({ host, port }).once('connect', greet);
    const socket = connectTls({ host, port, ...dialerTls(host, trust.value, serverId) });
    return socket.once('secureConnect', () => {
      this.#shown = shownByBoth(socket);
      greet();
    });
  }

  /** Why the certificates of both ends would not do for the same connection again; undefined: they would. */
  lapsed(wallMs: number): string | undefined {
    if (this.#shown === undefined) return undefined;
    const { ownMs, otherMs } = this.#shown;
    return expired(otherMs, wallMs) ?? expired(ownMs, wallMs, "the dialing end's");
  }

  #greet(): void {
    this.#state = 'greeting';
    this.connection.send(makeHello(this.#options.hello));
  }

  /**
   * A server with TLS and one without have no words for each other, nor have its ports. Between servers a start or an end is the likelier
   * reason.
   */
  #hungUp(): string {
    const text = 'the server closed the connection';
    const { trust, hello } = this.#options;
    if (hello.role === 'peer') return text;
    if (this.#state === 'open') return text;
    if (trust === undefined)
      return `${text} without an answer: does it want TLS? Is it the port of data or of http, and not --listen? Or it has no file descriptors left`;
    return this.#state === 'dialing'
      ? `${text} in the TLS handshake: ${OTHER_TLS}`
      : `${text} without an answer: is it the port of http, and not --listen?`;
  }

  /** What OpenSSL says is for its own developers. */
  #inWords(error: FarkvError): FarkvError {
    const { code = '' } = (error.cause ?? {}) as NodeJS.ErrnoException;
    if (this.#state !== 'dialing' || this.#options.hello.role === 'peer' || !NO_TLS.test(code)) return error;
    return new FarkvError('ERR_DISCONNECTED', `the TLS handshake failed: ${OTHER_TLS}`, { cause: error.cause });
  }

  #received(frame: Frame): void {
    if (frame.t === 'ping') {
      this.connection.send({ t: 'pong', id: frame.id });
    } else if (frame.t === 'pong') {
      this.#handlers.ponged?.(frame.id);
    } else if (this.#state !== 'open') {
      this.#welcomed(frame);
    } else if (frame.t === 'welcome') {
      throw new FarkvError('ERR_PROTOCOL', 'a welcome at the wrong time');
    } else {
      this.#handlers.frame(frame);
    }
  }

  #welcomed(frame: Frame): void {
    let welcome: Accepted;
    try {
      welcome = readWelcome(frame, this.#options.address);
    } catch (error) {
      if (error instanceof FarkvError) this.#handlers.refused?.(error);
      throw error;
    }
    this.#state = 'open';
    this.#handlers.welcomed(welcome);
  }
}
