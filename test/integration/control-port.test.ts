import test from 'ava';
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { encodeFrame, FrameReader, SERVER_FRAME_LIMITS, type Frame, type Hello } from '../../core/protocol/index.js';
import { loadSettings } from '../../server/config/load.js';
import { startWith } from '../../server/start.js';
import { Cluster, type ServerProcess } from '../support/cluster.js';
import { seeded } from '../support/random.js';
import { statusOf } from '../support/status.js';

const hello: Hello = { t: 'hello', magic: 'farkv', versions: [1, 1], role: 'client' };

function dial(t: { teardown: (f: () => void) => void }, server: Pick<ServerProcess, 'address'>): Socket {
  const socket = connect(Number(server.address.split(':')[1]), '127.0.0.1');
  socket.on('error', () => undefined);
  t.teardown(() => socket.destroy());
  return socket;
}

async function closed(socket: Socket): Promise<void> {
  socket.resume();
  if (!socket.closed) await once(socket, 'close');
}

/** The first frame that comes; undefined when the connection ends instead. */
async function answer(socket: Socket): Promise<Frame | undefined> {
  const reader = new FrameReader(SERVER_FRAME_LIMITS);
  return await new Promise((resolve) => {
    socket.on('data', (chunk: Buffer) =>
      reader.push(chunk, (frame) => {
        resolve(frame);
        return false;
      }),
    );
    socket.once('close', () => resolve(undefined));
  });
}

test.serial('garbage and oversized frames cost their connection and nothing else', async (t) => {
  const cluster = await Cluster.start(t, { memory: '32mb' });
  const server = cluster.server(0);
  const random = seeded(t, import.meta.filename);
  const oversized = Buffer.alloc(4);
  oversized.writeUInt32BE(64 * 1024 + 1);
  const bomb = Buffer.alloc(60_004, 0x90);
  bomb.writeUInt32BE(60_000);
  bomb.set([0xdc, 0xea, 0x5d], 4);
  const inputs = [
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    Buffer.alloc(4),
    oversized,
    Buffer.alloc(1000, 0xff),
    bomb,
    Buffer.from('16030100c8010000c40303', 'hex'),
  ];
  for (let i = 0; i < 30; i++) inputs.push(Buffer.from(random.bytes(4 + random.below(2000))));
  for (const bytes of inputs) {
    const socket = dial(t, server);
    // What is no whole frame yet is waited for: then the end of the connection ends it.
    socket.end(bytes);
    await closed(socket);
  }
  // After a good hello too.
  const socket = dial(t, server);
  socket.end(Buffer.concat([encodeFrame(hello), Buffer.alloc(100, 0xff)]));
  await closed(socket);
  t.true((await statusOf(server.address)).shards.every((s) => s.state === 'serving'));
});

test.serial('a connection that says nothing is closed', async (t) => {
  const settings = loadSettings({ listen: '127.0.0.1:0', memory: '32mb' }, { env: {}, dashes: false });
  const server = await startWith({ settings: { ...settings, handshakeMs: 200 } }, {});
  t.teardown(() => server.close());
  await closed(dial(t, { address: server.addresses[0]! }));
  t.like(await server.status(), { leader: 's1' });
});

test.serial('a client of a later protocol is told which versions are spoken', async (t) => {
  const cluster = await Cluster.start(t, { memory: '32mb' });
  const socket = dial(t, cluster.server(0));
  socket.write(encodeFrame({ ...hello, versions: [8, 9] }));
  t.like(await answer(socket), { t: 'welcome', ok: false, code: 'ERR_PROTOCOL_VERSION', versions: [1, 1] });
});

test.serial('more connections than --max-connections are turned away, and room comes back', async (t) => {
  const cluster = await Cluster.start(t, { memory: '32mb', args: ['--max-connections', '3'] });
  const server = cluster.server(0);
  const guests = [1, 2, 3].map(() => dial(t, server));
  for (const guest of guests) {
    guest.write(encodeFrame(hello));
    t.like(await answer(guest), { t: 'welcome' });
  }
  const fourth = dial(t, server);
  fourth.write(encodeFrame(hello));
  t.like(await answer(fourth), { ok: false, code: 'ERR_BUSY' });
  guests[0]?.destroy();
  for (;;) {
    const again = dial(t, server);
    again.write(encodeFrame(hello));
    const welcome = await answer(again);
    if (welcome?.t === 'welcome' && welcome.ok) break;
  }
  t.true(server.running);
});
