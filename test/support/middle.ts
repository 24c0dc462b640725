/**
 * Between clients and a server's data plane over tcp: every server of a cluster advertises another loopback host than
 * it listens on, and here the same port of that host leads to it. What is said on the way can be withheld, and
 * connections can be cut, as a network does to a server that goes on and is reached by others.
 *
 *     const cluster = await Cluster.start(t, { args: ['--transport', 'shm,tcp', ...ADVERTISED] });
 *     const middle = await Middle.before(t, cluster.server(0));
 *
 * Not for: what the bytes mean.
 */
import type { ExecutionContext } from 'ava';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { ServerProcess } from './cluster.js';

const HOST = '127.0.0.2';
/** Options of `farkv server`. */
export const ADVERTISED: readonly string[] = ['--advertise', HOST];

/** `open`: both ways. `unanswered`: what the server says is withheld. `settled`: for those who are there already;
 * whoever comes is turned away. `closed`: neither way, for nobody. */
export type Passage = 'open' | 'unanswered' | 'settled' | 'closed';

export class Middle {
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  readonly #servers: Server[] = [];
  #passage: Passage = 'open';

  /** Before every tcp address of the server's data plane. */
  static async before(t: Pick<ExecutionContext, 'teardown'>, server: ServerProcess): Promise<Middle> {
    const middle = new Middle();
    t.teardown(() => middle.#end());
    for (const { provider, address } of (await server.ready()).fabric) {
      if (provider === 'tcp') await middle.#listen(Number(address.slice(address.lastIndexOf(':') + 1)));
    }
    return middle;
  }

  /** From now on; what was withheld is lost with its connection. */
  set passage(passage: Passage) {
    this.#passage = passage;
    if (passage === 'closed') for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }

  async #listen(port: number): Promise<void> {
    const server = createServer((client) => {
      if (this.#passage === 'closed' || this.#passage === 'settled') client.destroy();
      else this.#between(client, connect({ port, host: '127.0.0.1', noDelay: true }));
    });
    this.#servers.push(server);
    server.listen(port, HOST);
    await once(server, 'listening');
  }

  #between(client: Socket, server: Socket): void {
    const pair = [client, server] as const;
    client.setNoDelay(true);
    this.#pairs.add(pair);
    for (const socket of pair) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#pairs.delete(pair);
        for (const other of pair) other.destroy();
      });
    }
    client.on('data', (bytes) => void server.write(bytes));
    server.on('data', (bytes) => {
      if (this.#passage !== 'unanswered') client.write(bytes);
    });
  }

  #end(): void {
    this.passage = 'closed';
    for (const server of this.#servers) server.close();
  }
}
