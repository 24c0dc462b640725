/** An accepted connection after its welcome. */
import test from 'ava';
import { encodeFrame, FrameReader, SERVER_FRAME_LIMITS, type Frame } from '../core/protocol/index.js';
import { hello } from '../test/support/control-rig.js';
import { pair, Watch } from '../test/support/ends.js';
import { Incoming } from './incoming.js';

test('pings of an end that takes nothing are read and cost no memory; when it takes again they are answered', async (t) => {
  const [dialed, accepted] = await pair(t);
  const calls = new Watch();
  let called = 0;
  const incoming: Incoming = new Incoming(accepted, 60_000, {
    hello: () => incoming.welcome({ serverId: 's1', clusterId: '' }),
    refused: (message) => t.fail(message),
    frame: () => {
      called += 1;
      calls.changed();
    },
    closed: () => undefined,
    drained: () => undefined,
  });
  // Nothing leaves: as if the other end and the network between were full.
  accepted.cork();
  const ping = Buffer.concat(Array.from({ length: 1000 }, (_, id) => encodeFrame({ t: 'ping', id })));
  dialed.write(encodeFrame(hello()));
  for (let i = 0; i < 20; i++) dialed.write(ping);
  dialed.write(encodeFrame({ t: 'call', id: 1, method: 'status', args: {} }));
  await calls.until(() => called === 1);
  t.true(incoming.connection.backlog < 8 << 10, `${incoming.connection.backlog} bytes`);
  accepted.uncork();

  const frames: Frame[] = [];
  const reader = new FrameReader(SERVER_FRAME_LIMITS);
  const came = new Watch();
  dialed.on('data', (chunk: Buffer) => {
    reader.push(chunk, (frame) => frames.push(frame) > 0);
    came.changed();
  });
  dialed.write(encodeFrame({ t: 'ping', id: 5000 }));
  await came.until(() => frames.some((frame) => frame.t === 'pong' && frame.id === 5000));
  incoming.connection.close();
});
