/**
 * Binds the control addresses and hands each new connection on; counts them, and turns away those that are too many.
 */
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { FarkvError } from '../../core/errors.js';
import { formatHostPort, type HostPort } from '../config/units.js';

export interface ListenerOptions {
  readonly addresses: readonly HostPort[];
  readonly tls: TlsOptions | undefined;
  readonly maxConnections: number;
  /** A TLS handshake may take this long. */
  readonly handshakeMs: number;
  readonly connection: (socket: Socket) => void;
}

const bindErrors: Readonly<
  Record<string, readonly [code: 'ERR_ADDRESS_IN_USE' | 'ERR_ADDRESS_INVALID', text: string]>
> = {
  EADDRINUSE: ['ERR_ADDRESS_IN_USE', 'another program listens there; choose another --listen or stop that program'],
  EADDRNOTAVAIL: ['ERR_ADDRESS_INVALID', 'this machine does not have that address'],
  ENOTFOUND: ['ERR_ADDRESS_INVALID', 'that host name is not known'],
  EACCES: ['ERR_ADDRESS_INVALID', 'this user may not listen there'],
};

export class Listener {
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #options: ListenerOptions;
  readonly bound: HostPort[] = [];
  refused = 0;

  private constructor(options: ListenerOptions) {
    this.#options = options;
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

  /** Stops listening and cuts every connection. */
  async close(): Promise<void> {
    const closing = this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(closing);
  }

  async #bind(address: HostPort): Promise<void> {
    const { tls, handshakeMs } = this.#options;
    const ready = (socket: Socket): void => this.#options.connection(socket);
    const server =
      tls === undefined ? createServer({ noDelay: true }) : createTlsServer({ ...tls, handshakeTimeout: handshakeMs });
    // Both kinds of server emit `connection` for the plain socket; what comes over TLS is handed on when its handshake
    // is done.
    server.on('connection', (socket: Socket) => {
      if (this.#sockets.size >= this.#options.maxConnections) {
        this.refused += 1;
        socket.destroy();
        return;
      }
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      socket.on('error', () => socket.destroy());
      if (tls === undefined) ready(socket);
    });
    if (tls !== undefined) {
      server.on('secureConnection', ready);
      // Somebody spoke something else than TLS 1.3: the socket is destroyed already.
      server.on('tlsClientError', () => undefined);
    }
    await new Promise<void>((resolve, reject) => {
      server.once('error', (cause: NodeJS.ErrnoException) => {
        const [code, text] = bindErrors[cause.code ?? ''] ?? ['ERR_ADDRESS_INVALID', cause.message];
        reject(new FarkvError(code, `${formatHostPort(address)}: ${text}`, { cause }));
      });
      server.listen({ host: address.host, port: address.port }, resolve);
    });
    server.removeAllListeners('error');
    server.on('error', () => undefined);
    this.#servers.push(server);
    this.bound.push({ host: address.host, port: (server.address() as AddressInfo).port });
  }
}
