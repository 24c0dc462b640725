import test, { type ExecutionContext } from 'ava';
import type { Socket } from 'node:net';
import { encodeFrame, FrameReader, SERVER_FRAME_LIMITS, type Frame } from '../core/protocol/index.js';
import { pair, Watch } from '../test/support/ends.js';
import { Connection } from './connection.js';
import { Heartbeat } from './heartbeat.js';

interface Beating {
  readonly connection: Connection;
  readonly other: Socket;
  readonly closed: () => string | undefined;
  readonly pings: () => number;
  readonly until: (condition: () => boolean) => Promise<void>;
}

/** A connection that is pinged every few milliseconds; `answer` says what the other end sends for each. */
async function beating(
  t: ExecutionContext,
  silentMs: number,
  answer: (frame: Frame) => Uint8Array | undefined,
): Promise<Beating> {
  const [dialed, other] = await pair(t);
  const watch = new Watch();
  let closed: string | undefined;
  let pings = 0;
  const connection = new Connection(dialed, SERVER_FRAME_LIMITS, {
    frame: () => undefined,
    closed: (error) => {
      closed = error?.code ?? 'no reason';
      heartbeat.stop();
      watch.changed();
    },
  });
  const heartbeat = new Heartbeat(connection, { pingMs: 5, silentMs });
  const reader = new FrameReader(SERVER_FRAME_LIMITS);
  other.on('data', (chunk: Buffer) =>
    reader.push(chunk, (frame) => {
      pings += 1;
      const bytes = answer(frame);
      if (bytes !== undefined) other.write(bytes);
      watch.changed();
      return true;
    }),
  );
  t.teardown(() => connection.close());
  return { connection, other, closed: () => closed, pings: () => pings, until: (condition) => watch.until(condition) };
}

test('an end that sends nothing is given up', async (t) => {
  const { closed, pings, until } = await beating(t, 50, () => undefined);
  await until(() => closed() !== undefined || pings() > 400);
  t.is(closed(), 'ERR_TIMEOUT');
});

test('an end that answers pings is kept, for longer than it may be silent', async (t) => {
  const { closed, pings, until } = await beating(t, 200, (frame) =>
    encodeFrame({ t: 'pong', id: frame.t === 'ping' ? frame.id : 0 }),
  );
  await until(() => closed() !== undefined || pings() > 100);
  t.is(closed(), undefined);
});

test('bytes of a long frame count like an answer', async (t) => {
  const long = encodeFrame({ t: 'call', id: 1, method: 'm', args: 'x'.repeat(4000) });
  let at = 0;
  const { closed, pings, until } = await beating(t, 200, () => long.subarray(at, ++at));
  await until(() => closed() !== undefined || pings() > 100);
  t.is(closed(), undefined);
});
