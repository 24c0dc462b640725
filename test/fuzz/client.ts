/**
 * A client's control connection, over real sockets, to a server that sends what it likes. A map is given to the client
 * only whole and checked; a server that breaks the protocol is given up with a known error, and the next is tried.
 */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { ControlConnection } from '../../client/control-connection.js';
import type { FarkvError } from '../../core/errors.js';
import type { ClientMap } from '../../core/protocol/index.js';
import { shard } from '../support/control-rig.js';
import { MAP, WELCOME } from './frames.js';
import { bytesOf, type Input } from './input.js';
import { must, type FuzzTarget, type Rig } from './target.js';

const ticket = new Uint8Array(40);
const push = (more: object): unknown => ({ ...MAP, ...more });
const first: readonly Input[] = [
  [
    ['frame', { ...WELCOME, clientId: '00'.repeat(8), ticket }],
    ['frame', MAP],
    ['turn'],
    ['frame', push({ map: { ...MAP.map, mapEpoch: 2, shards: [shard(0, 2)] }, partial: true, ticket })],
    ['frame', { t: 'ping', id: 1 }],
  ],
  [
    ['frame', WELCOME],
    ['frame', push({ map: { ...MAP.map, shards: [shard(0)] }, more: true })],
    ['frame', push({ map: { ...MAP.map, shards: [shard(1)] }, partial: true })],
  ],
  [['frame', { t: 'welcome', ok: false, code: 'ERR_UNAUTHORIZED', message: 'no', versions: [1, 1] }]],
  [
    ['frame', WELCOME],
    ['frame', { t: 'answer', id: 1, ok: true, result: {} }],
  ],
];

function judge(map: ClientMap): void {
  must(
    map.shards.every(({ regions }) => Array.isArray(regions)) && Array.isArray(map.members),
    'a map that is none is given to the client',
  );
}

async function open(): Promise<Rig> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  let broken: unknown;
  let arrived: (socket: Socket) => void = () => undefined;
  server.on('connection', (socket) => {
    socket.on('error', () => undefined);
    arrived(socket);
  });

  const run = async (input: Input): Promise<void> => {
    const came = new Promise<Socket>((resolve) => (arrived = resolve));
    let ended: (error: FarkvError) => void = () => undefined;
    const end = new Promise<FarkvError>((resolve) => (ended = resolve));
    const connection = new ControlConnection({
      servers: [`127.0.0.1:${port}`],
      token: 'secret',
      tls: undefined,
      handlers: {
        cluster: (clusterId) => {
          if (!/^([0-9a-f]{32})?$/.test(clusterId)) broken = new Error('a cluster id that is none');
        },
        map: (map) => {
          try {
            judge(map);
          } catch (error) {
            broken = error;
          }
        },
        ticket: (bytes) => {
          if (!(bytes instanceof Uint8Array) || bytes.length > 256) broken = new Error('a ticket that is none');
        },
        connected: () => undefined,
        failed: (_server, error) => {
          ended(error);
          connection.close();
        },
        roundFailed: () => undefined,
      },
    });
    connection.start();
    const socket = await came;
    for (const step of input) {
      const bytes = bytesOf(step);
      if (bytes === undefined) await new Promise((resolve) => setImmediate(resolve));
      else socket.write(bytes);
    }
    // The client reads to the end, if it has not given this server up before.
    socket.end();
    const error = await end;
    socket.destroy();
    if (broken !== undefined) throw broken as Error;
    // A server may say of itself that it failed; a fault of this program has a cause.
    must(error.code !== 'ERR_INTERNAL' || error.cause === undefined, `given up by a fault: ${String(error.cause)}`);
  };
  return {
    run,
    close: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}

export const client: FuzzTarget = { name: 'client', first, open };
