/** Somebody between clients and a server's data port: passes everything on and hears it. */
import type { ExecutionContext } from 'ava';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface WireTap {
  /** Everything that was heard so far, of all connections. */
  readonly heard: () => Buffer;
  /** What clients have sent, by connection. */
  readonly sent: () => readonly Buffer[];
}

/** Listens at `host` and leads to `to`, at the same port. */
export async function tapWire(t: ExecutionContext, host: string, to: string, port: number): Promise<WireTap> {
  const all: Buffer[] = [];
  const sent: Buffer[][] = [];
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const own: Buffer[] = [];
    sent.push(own);
    const owner = connect({ host: to, port, noDelay: true });
    client.setNoDelay(true);
    for (const [from, other] of [
      [client, owner],
      [owner, client],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes: Buffer) => {
        all.push(bytes);
        if (from === client) own.push(bytes);
        other.write(bytes);
      });
      from.on('error', () => other.destroy());
      from.on('close', () => other.destroy());
    }
  });
  server.listen(port, host);
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { heard: () => Buffer.concat(all), sent: () => sent.map((list) => Buffer.concat(list)) };
}
