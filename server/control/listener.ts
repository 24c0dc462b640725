/**
 * Binds the addresses of a port and brings each connection to the point at which it may say who it is:
 *
 *   accepted --a place (places.ts)--> first bytes --its turn (handshakes.ts)--> TLS handshake, if any --> `connection`
 *
 * A connection that loses its place, or is slower than `handshakeMs`, is closed. Nothing of a connection is read here.
 *
 * Invariant: a connection has a place until `admitted` is called or until it is closed.
 */
import { createServer, type AddressInfo, type ListenOptions, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type Server as TlsServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { FarkvError } from '../../core/errors.js';
import { formatHostPort, type HostPort } from '../config/units.js';
import { shownBy, type ShownCertificate } from '../../net/certificate.js';
import { sourceOf } from './addresses.js';
import type { Handshakes } from './handshakes.js';
import { Places, type PlacesOptions, type Visitor } from './places.js';

export interface ListenerOptions {
  readonly addresses: readonly HostPort[];
  /** That named them, for errors. Default: --listen. */
  readonly option?: string;
  /** What to serve with now (tls.ts). */
  readonly tls: { readonly value: TlsOptions } | undefined;
  readonly places: PlacesOptions;
  /** Undefined: connections begin as soon as they have sent something. */
  readonly handshakes?: Handshakes;
  /** First bytes and a TLS handshake may take this long. */
  readonly handshakeMs: number;
  readonly connection: (socket: Socket, guest: Guest) => void;
}

/** A connection that has not shown yet who it is. */
export interface Guest {
  /** Its address, as bounds count it. */
  readonly source: string;
  /** What it has shown, where that claims a role. */
  readonly certificate?: ShownCertificate;
  /** It has: it gives its place back. */
  readonly admitted: () => void;
}

const bindErrors: Readonly<
  Record<string, readonly [code: 'ERR_ADDRESS_IN_USE' | 'ERR_ADDRESS_INVALID', text: string]>
> = {
  EADDRINUSE: [
    'ERR_ADDRESS_IN_USE',
    'another program listens there, perhaps a farkv server that was started before: stop it, or choose another OPTION',
  ],
  EADDRNOTAVAIL: ['ERR_ADDRESS_INVALID', 'this machine does not have that address (OPTION)'],
  ENOTFOUND: ['ERR_ADDRESS_INVALID', 'that host name is not known (OPTION)'],
  EACCES: ['ERR_ADDRESS_INVALID', 'this user may not listen there (OPTION)'],
};

/** Throws ERR_ADDRESS_IN_USE or ERR_ADDRESS_INVALID. `option`: that named the address. */
export async function listenAt(
  server: Server,
  address: HostPort,
  option = '--listen',
  more: Pick<ListenOptions, 'ipv6Only'> = {},
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const [code, text] = bindErrors[cause.code ?? ''] ?? ['ERR_ADDRESS_INVALID', cause.message];
      reject(new FarkvError(code, `${formatHostPort(address)}: ${text.replace('OPTION', option)}`, { cause }));
    });
    server.listen({ host: address.host, port: address.port, backlog: BACKLOG, ...more }, resolve);
  });
}

/** The kernel keeps so many connections that are not accepted yet. */
const BACKLOG = 4096;

export class Listener {
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #places: Places;
  readonly #options: ListenerOptions;
  readonly #tls: TlsServer | undefined;
  #tlsOptions: TlsOptions | undefined;
  /** Guests whose TLS handshake has begun, by the two ends of their connection. */
  readonly #shaking = new Map<string, { readonly guest: Guest; readonly shaken: () => void }>();
  readonly bound: HostPort[] = [];

  private constructor(options: ListenerOptions) {
    this.#options = options;
    this.#places = new Places(options.places);
    this.#tls = options.tls === undefined ? undefined : this.#tlsServer(options.tls.value);
  }

  /** Throws ERR_ADDRESS_IN_USE or ERR_ADDRESS_INVALID; then nothing is bound. */
  static async open(options: ListenerOptions): Promise<Listener> {
    const listener = new Listener(options);
    try {
      for (const address of options.addresses) await listener.#bind(address);
    } catch (error) {
      await listener.close();
      throw error;
    }
    return listener;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** Connections that lost their place before they had shown who they are. */
  get evicted(): number {
    return this.#places.evicted;
  }

  /** Stops listening and cuts every connection. */
  async close(): Promise<void> {
    const closing = this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(closing);
  }

  #came(socket: Socket): void {
    const visitor: Visitor = { source: sourceOf(socket.remoteAddress), evict: () => socket.destroy() };
    const guest: Guest = { source: visitor.source, admitted: () => this.#places.leave(visitor) };
    const heard = (waits: boolean): void => this.#places.heard(visitor, waits);
    this.#sockets.add(socket);
    const late = setTimeout(() => socket.destroy(), this.#options.handshakeMs).unref();
    socket.once('close', () => {
      clearTimeout(late);
      this.#sockets.delete(socket);
      this.#places.leave(visitor);
    });
    socket.on('error', () => socket.destroy());
    this.#places.enter(visitor);
    socket.once('readable', () => {
      // The end of a connection that has sent nothing is to be read as well.
      if (socket.readableLength === 0) {
        socket.destroy();
        return;
      }
      const begin = (): void => {
        clearTimeout(late);
        heard(false);
        this.#begin(socket, guest, () => heard(false));
      };
      const { handshakes, places } = this.#options;
      const { source } = guest;
      if (handshakes === undefined) begin();
      else {
        heard(true);
        handshakes.add(places.isKnown(source), { source, alive: () => !socket.destroyed, begin });
      }
    });
  }

  /** `shaken`: its TLS handshake is done. */
  #begin(socket: Socket, guest: Guest, shaken: () => void): void {
    if (this.#tls === undefined) {
      this.#options.connection(socket, guest);
      return;
    }
    const ends = endsOf(socket);
    const shaking = { guest, shaken };
    this.#shaking.set(ends, shaking);
    socket.once('close', () => {
      // Another connection may have the same ends by now.
      if (this.#shaking.get(ends) === shaking) this.#shaking.delete(ends);
    });
    const now = this.#options.tls?.value;
    if (now !== undefined && now !== this.#tlsOptions) this.#tls.setSecureContext(now);
    this.#tlsOptions = now;
    this.#tls.emit('connection', socket);
  }

  /** It listens nowhere: it is given the connections whose turn has come. */
  #tlsServer(tls: TlsOptions): TlsServer {
    this.#tlsOptions = tls;
    const server = createTlsServer({ ...tls, handshakeTimeout: this.#options.handshakeMs });
    server.on('secureConnection', (socket: TLSSocket) => {
      const ends = endsOf(socket);
      const shaking = this.#shaking.get(ends);
      this.#shaking.delete(ends);
      const certificate = shownBy(socket);
      if (shaking === undefined) {
        socket.destroy();
        return;
      }
      shaking.shaken();
      this.#options.connection(socket, { ...shaking.guest, ...(certificate === undefined ? {} : { certificate }) });
    });
    // Somebody spoke something else than TLS 1.3: the socket is destroyed already.
    server.on('tlsClientError', () => undefined);
    return server;
  }

  async #bind(address: HostPort): Promise<void> {
    const server = createServer({ noDelay: true });
    server.on('connection', (socket: Socket) => this.#came(socket));
    await listenAt(server, address, this.#options.option);
    server.removeAllListeners('error');
    server.on('error', () => undefined);
    this.#servers.push(server);
    this.bound.push({ host: address.host, port: (server.address() as AddressInfo).port });
  }
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress ?? ''} ${remotePort ?? 0} ${localAddress ?? ''} ${localPort ?? 0}`;
}
