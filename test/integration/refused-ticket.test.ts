/** A client whose ticket an owner refuses asks for another one, whether it is new or has worked before. */
import test from 'ava';
import { once } from 'node:events';
import { connect as dial, createServer, type AddressInfo, type Socket } from 'node:net';
import { connect } from '../../client/index.js';
import { encodeFrame, FrameReader, SERVER_FRAME_LIMITS, type Frame } from '../../core/protocol/index.js';
import { Cluster } from '../support/cluster.js';

/** Another ticket than the one that was made: owners refuse it as they refuse one that has expired. */
const spoiled = (ticket: Uint8Array): Uint8Array => ticket.map((byte, i) => (i === 0 ? byte ^ 1 : byte));

test.serial('a client whose ticket is refused goes back for another one, and is let in', async (t) => {
  const cluster = await Cluster.start(t);
  const { address } = cluster.server(0);
  const port = Number(address.slice(address.lastIndexOf(':') + 1));
  let visits = 0;
  const sockets = new Set<Socket>();
  // Between the client and the control port: the first visitor gets a ticket that is good for nothing.
  const between = createServer((client) => {
    const isFirst = visits++ === 0;
    const server = dial({ host: '127.0.0.1', port });
    const reader = new FrameReader(SERVER_FRAME_LIMITS);
    const pass = (frame: Frame): boolean =>
      client.write(
        encodeFrame(
          isFirst && frame.t === 'welcome' && frame.ok && frame.ticket !== undefined
            ? { ...frame, ticket: spoiled(frame.ticket) }
            : frame,
        ),
      ) || true;
    server.on('data', (bytes: Buffer) => reader.push(bytes, pass));
    client.on('data', (bytes: Buffer) => server.write(bytes));
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => other.destroy());
    }
  }).listen(0, '127.0.0.1');
  await once(between, 'listening');
  t.teardown(() => {
    between.close();
    for (const socket of sockets) socket.destroy();
  });
  const reasons: string[] = [];
  const kv = await connect({
    servers: `127.0.0.1:${(between.address() as AddressInfo).port}`,
    connectTimeoutMs: 60_000,
    onEvent: (event) => {
      if (event.type === 'transport' && !event.transport.connected) reasons.push(event.transport.reason);
    },
  });
  t.teardown(() => kv.close());
  t.regex(reasons.join('; '), /ERR_UNAUTHORIZED/);
  await kv.put('k', 'v');
  t.is((await kv.get('k'))?.toString(), 'v');
});
