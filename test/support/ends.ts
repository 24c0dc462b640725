/**
 * The two ends of connections, for tests of net/: a listening socket, a connected pair, and a process that stands
 * still.
 */
import type { ExecutionContext } from 'ava';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';

type Test = Pick<ExecutionContext, 'teardown'>;

/** host:port of a server that hands every connection to `accept`; over TLS where options are given. */
export async function listen(t: Test, accept: (socket: Socket) => void, tls?: TlsOptions): Promise<string> {
  const server = tls === undefined ? createServer() : createTlsServer(tls);
  server.on(tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    socket.on('error', () => undefined);
    t.teardown(() => socket.destroy());
    accept(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Both sockets of one connection. */
export async function pair(t: Test): Promise<readonly [Socket, Socket]> {
  const { promise, resolve } = withResolve<Socket>();
  const address = await listen(t, resolve);
  const dialed = connect(Number(address.split(':')[1]), '127.0.0.1');
  dialed.on('error', () => undefined);
  t.teardown(() => dialed.destroy());
  return [dialed, await promise];
}

/** A promise and what resolves it. */
export function withResolve<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((given) => (resolve = given));
  return { promise, resolve };
}

/** Whether this comes about. False: nobody would wait any longer. */
export async function isSoon(event: Promise<unknown>): Promise<boolean> {
  const { promise: late, resolve } = withResolve<boolean>();
  const patience = setTimeout(() => resolve(false), 60_000);
  return await Promise.race([event.then(() => true), late]).finally(() => clearTimeout(patience));
}

/** The event loop of this process goes on only after this time. */
export function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Resolves when a condition holds that is looked at whenever `changed` is called. */
export class Watch {
  readonly #waiting: (() => void)[] = [];

  readonly changed = (): void => {
    for (const wake of this.#waiting.splice(0)) wake();
  };

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}
