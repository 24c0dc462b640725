import test, { type ExecutionContext } from 'ava';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import {
  encodeFrame,
  FrameReader,
  PROTOCOL_MAX,
  PROTOCOL_MIN,
  SERVER_FRAME_LIMITS,
  type ClientMap,
  type Frame,
  type Hello,
} from '../core/protocol/index.js';
import { ControlConnection } from './control-connection.js';
import { FarkvError, type ErrorCode } from './errors.js';

type Script = (hello: Hello, socket: Socket, send: (...frames: Frame[]) => void) => void;

/** A server that answers the hello as the script says. */
class FakeServer {
  readonly hellos: Hello[] = [];
  readonly frames: Frame[] = [];
  readonly sockets = new Set<Socket>();
  address = '';
  readonly #script: Script;
  readonly #server: Server;
  readonly #watchers: (() => void)[] = [];

  private constructor(server: Server, script: Script) {
    this.#server = server;
    this.#script = script;
  }

  static async start(t: ExecutionContext, script: Script): Promise<FakeServer> {
    const server = createServer();
    const fake = new FakeServer(server, script);
    server.on('connection', (socket) => fake.#accept(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    fake.address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    t.teardown(() => fake.close());
    return fake;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  /** Waits until it is so; looked at whenever a frame comes or a connection ends. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#watchers.push(resolve));
  }

  #changed(): void {
    for (const wake of this.#watchers.splice(0)) wake();
  }

  #accept(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.sockets.delete(socket);
      this.#changed();
    });
    const reader = new FrameReader(SERVER_FRAME_LIMITS);
    socket.on('data', (chunk) =>
      reader.push(chunk, (frame) => {
        if (frame.t === 'hello') {
          this.hellos.push(frame);
          this.#script(frame, socket, (...frames) => {
            for (const each of frames) socket.write(encodeFrame(each));
          });
        } else {
          this.frames.push(frame);
          this.#changed();
        }
        return true;
      }),
    );
  }
}

const map = (mapEpoch: number): ClientMap => ({
  clusterId: 'ab'.repeat(16),
  mapEpoch,
  hashSeed: '00'.repeat(16),
  members: [],
  shards: [],
});
const ticket = new Uint8Array(40);
const welcome: Frame = {
  t: 'welcome',
  ok: true,
  version: PROTOCOL_MAX,
  serverId: 's1',
  clusterId: 'ab'.repeat(16),
  clientId: '00000000000000cd',
  access: 'writer',
  ticket,
};
const accept: Script = (_, __, send) => send(welcome, { t: 'map', map: map(1) });

interface Followed {
  readonly control: ControlConnection;
  readonly log: string[];
  readonly failures: FarkvError[];
  /** Resolves when something was logged that starts so. */
  readonly until: (text: string) => Promise<void>;
}

function follow(
  t: ExecutionContext,
  servers: readonly string[],
  options: {
    readonly token?: string;
    readonly probeMs?: number;
    readonly onMap?: (map: ClientMap) => void;
    readonly onCluster?: (clusterId: string) => void;
  } = {},
): Followed {
  const log: string[] = [];
  const failures: FarkvError[] = [];
  let watchers: (() => void)[] = [];
  const say = (text: string) => {
    log.push(text);
    for (const wake of watchers.splice(0)) wake();
  };
  const control = new ControlConnection({
    servers,
    token: options.token,
    tls: undefined,
    ...(options.probeMs === undefined ? {} : { probeMs: options.probeMs }),
    handlers: {
      cluster: (clusterId) => options.onCluster?.(clusterId),
      access: (access) => say(`access ${access}`),
      map: (m) => {
        options.onMap?.(m);
        say(`map ${m.mapEpoch}`);
      },
      ticket: (bytes) => say(`ticket ${bytes.length}`),
      connected: (server) => say(`connected ${server}`),
      failed: (server, error) => {
        failures.push(error);
        say(`failed ${server} ${error.code}`);
      },
      roundFailed: (errors) => say(`round ${errors.map((error) => error.code).join()}`),
    },
  });
  t.teardown(() => control.close());
  control.start();
  let from = 0;
  const until = async (text: string) => {
    for (;;) {
      const at = log.findIndex((line, i) => i >= from && line.startsWith(text));
      if (at >= 0) {
        from = at + 1;
        return;
      }
      await new Promise<void>((resolve) => (watchers = [...watchers, resolve]));
    }
  };
  return { control, log, failures, until };
}

test('hello, welcome, ticket, map; then what is pushed', async (t) => {
  const server = await FakeServer.start(t, accept);
  const { until, log } = follow(t, [server.address], { token: 'secret' });
  await until('connected');
  t.deepEqual(log, ['access writer', 'ticket 40', 'map 1', `connected ${server.address}`]);
  t.like(server.hellos[0], { role: 'client', token: 'secret', versions: [PROTOCOL_MIN, PROTOCOL_MAX] });
  for (const socket of server.sockets) {
    socket.write(encodeFrame({ t: 'ping', id: 5 }));
    socket.write(encodeFrame({ t: 'map', map: map(2), ticket }));
  }
  await until('map 2');
  t.deepEqual(log.slice(4), ['ticket 40', 'map 2']);
  await server.until(() => server.frames.length > 0);
  t.deepEqual(server.frames, [{ t: 'pong', id: 5 }]);
});

test('servers are tried in turn; a client that comes back keeps its id', async (t) => {
  const dead = await FakeServer.start(t, accept);
  dead.close();
  const refusing = await FakeServer.start(t, (_, __, send) =>
    send({ t: 'welcome', ok: false, code: 'ERR_UNAUTHORIZED', message: 'who?', versions: [1, 1] }),
  );
  const good = await FakeServer.start(t, accept);
  const { until, log } = follow(t, [dead.address, refusing.address, good.address]);
  await until('connected');
  t.is(log[0], `failed ${dead.address} ERR_DISCONNECTED`);
  t.is(log[1], `failed ${refusing.address} ERR_UNAUTHORIZED`);
  for (const socket of good.sockets) socket.destroy();
  await until(`failed ${good.address} ERR_DISCONNECTED`);
  await until('connected');
  t.is(good.hellos[0]?.ticket, undefined);
  t.deepEqual(good.hellos[1]?.ticket, Buffer.from(ticket));
});

test('after a round of failures it goes on trying, also servers that were learned', async (t) => {
  const first = await FakeServer.start(t, accept);
  const second = await FakeServer.start(t, accept);
  const { until, control, log } = follow(t, [first.address]);
  await until('connected');
  control.learn([second.address]);
  first.close();
  await until(`failed ${first.address}`);
  await until(`connected ${second.address}`);
  second.close();
  await until('round');
  await until('round');
  t.true(log.filter((line) => line.startsWith('failed')).length >= 5);
});

const garbage: [name: string, script: Script, code: ErrorCode][] = [
  ['garbage', (_, socket) => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'), 'ERR_PROTOCOL'],
  ['an oversized frame', (_, socket) => void socket.write(Buffer.from([0x7f, 0xff, 0xff, 0xff])), 'ERR_PROTOCOL'],
  ['a map before the welcome', (_, __, send) => send({ t: 'map', map: map(1) }), 'ERR_PROTOCOL'],
  ['two welcomes', (_, __, send) => send(welcome, welcome), 'ERR_PROTOCOL'],
  [
    'a frame that is not for clients',
    (_, __, send) => send(welcome, { t: 'call', id: 1, method: 'status', args: null }),
    'ERR_PROTOCOL',
  ],
  ['a version that was not offered', (_, __, send) => send({ ...welcome, version: 99 }), 'ERR_PROTOCOL_VERSION'],
  [
    'an end before the map',
    (_, socket, send) => {
      send(welcome);
      socket.end();
    },
    'ERR_DISCONNECTED',
  ],
];
for (const [name, script, code] of garbage) {
  test(`a server that sends ${name} is left for the next one`, async (t) => {
    const bad = await FakeServer.start(t, script);
    const good = await FakeServer.start(t, accept);
    const { until, failures } = follow(t, [bad.address, good.address]);
    await until(`connected ${good.address}`);
    t.is(failures[0]?.code, code);
  });
}

test('a server that says nothing is left for the next one', async (t) => {
  const silent = await FakeServer.start(t, () => undefined);
  const good = await FakeServer.start(t, accept);
  const { until, failures } = follow(t, [silent.address, good.address]);
  await until(`connected ${good.address}`);
  t.is(failures[0]?.code, 'ERR_TIMEOUT');
});

test('a map that the client refuses ends the connection to that server', async (t) => {
  const other = await FakeServer.start(t, (_, __, send) => send(welcome, { t: 'map', map: map(66) }));
  const good = await FakeServer.start(t, accept);
  const { until, failures } = follow(t, [other.address, good.address], {
    onMap: (m) => {
      if (m.mapEpoch === 66) throw new Error('not mine');
    },
  });
  await until(`connected ${good.address}`);
  t.is(failures[0]?.code, 'ERR_INTERNAL');
});

const stranger = 'cd'.repeat(16);
for (const [name, script] of [
  ['the welcome', (_, __, send) => send({ ...welcome, clusterId: stranger }, { t: 'map', map: map(1) })],
  [
    // No server of ours sends such a welcome.
    'the first part of the map',
    (_, __, send) =>
      send(
        { t: 'welcome', ok: true, version: PROTOCOL_MAX, serverId: 's1', clusterId: '' },
        { t: 'map', map: { ...map(1), clusterId: stranger }, ticket, more: true },
      ),
  ],
] as [string, Script][]) {
  test(`nothing is taken of a server whose cluster is refused by ${name}`, async (t) => {
    const other = await FakeServer.start(t, script);
    const good = await FakeServer.start(t, accept);
    const { until, failures, log } = follow(t, [other.address, good.address], {
      onCluster: (clusterId) => {
        if (clusterId === stranger) throw new FarkvError('ERR_CONFIG', 'not mine');
      },
    });
    await until(`connected ${good.address}`);
    t.is(failures[0]?.code, 'ERR_CONFIG');
    t.deepEqual(log.slice(log.indexOf(`failed ${other.address} ERR_CONFIG`)), [
      `failed ${other.address} ERR_CONFIG`,
      'access writer',
      'ticket 40',
      'map 1',
      `connected ${good.address}`,
    ]);
    t.false(
      log.slice(0, log.indexOf(`failed ${other.address} ERR_CONFIG`)).some((line) => line !== 'access undefined'),
    );
    t.is(good.hellos[0]?.ticket, undefined);
  });
}

test('a map in parts takes effect as a whole', async (t) => {
  const shard = (n: number) => ({ shard: n, worker: 0, epoch: 0, layoutEpoch: 0, buckets: 0, regions: [] });
  const server = await FakeServer.start(t, (_, __, send) =>
    send(
      welcome,
      { t: 'map', map: { ...map(1), shards: [shard(0)] }, more: true },
      { t: 'map', map: { ...map(1), shards: [shard(1)] } },
    ),
  );
  const seen: number[] = [];
  const { until } = follow(t, [server.address], { onMap: (m) => seen.push(m.shards.length) });
  await until('connected');
  t.deepEqual(seen, [2]);
});

test('a server that does not answer a probe is left for another one', async (t) => {
  const still = await FakeServer.start(t, (hello, socket, send) => {
    if (still.hellos.length === 1) accept(hello, socket, send);
    else socket.destroy();
  });
  const other = await FakeServer.start(t, accept);
  const { until, control, failures, log } = follow(t, [still.address]);
  control.probe(); // nobody is connected yet
  await until(`connected ${still.address}`);
  control.learn([still.address, other.address]);
  control.probe();
  await Promise.race([until(`connected ${other.address}`), until(`failed ${still.address} ERR_DISCONNECTED`)]);
  t.is(log.at(-1), `connected ${other.address}`);
  t.deepEqual(
    failures.map(({ message }) => message),
    ['no answer to a ping within 150 ms'],
  );
  // The next one is not left as soon.
  control.probe();
  t.deepEqual(other.frames, []);
});

test('a server that answers a probe is kept', async (t) => {
  const server = await FakeServer.start(t, accept);
  const { until, control, log } = follow(t, [server.address], { probeMs: 2000 });
  await until('connected');
  for (let n = 1; n <= 2; n++) {
    // One at a time: the second is sent when the first is over.
    while (server.frames.length < n) {
      control.probe();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    for (const socket of server.sockets) socket.write(encodeFrame({ t: 'pong', id: n }));
  }
  t.deepEqual(
    server.frames.map(({ t: kind }) => kind),
    ['ping', 'ping'],
  );
  t.is(log.filter((line) => line.startsWith('failed')).length, 0);
});

test('close ends it for good', async (t) => {
  const server = await FakeServer.start(t, accept);
  const { until, control, log } = follow(t, [server.address]);
  await until('connected');
  control.close();
  await server.until(() => server.sockets.size === 0);
  t.is(log.length, 4);
  t.is(server.hellos.length, 1);
});
