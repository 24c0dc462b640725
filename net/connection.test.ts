import test, { type ExecutionContext } from 'ava';
import type { Socket } from 'node:net';
import type { FarkvError } from '../core/errors.js';
import { CLIENT_FRAME_LIMITS, encodeFrame, type Frame } from '../core/protocol/index.js';
import { pair, Watch } from '../test/support/ends.js';
import { BACKLOG_MAX, Connection, type Shared } from './connection.js';
import { Outbox } from './outbox.js';
import { Turns } from './turns.js';

interface Ends {
  readonly connection: Connection;
  readonly other: Socket;
  readonly frames: Frame[];
  /** One for each time that `closed` was called. */
  readonly ends: (FarkvError | undefined)[];
  readonly until: (condition: () => boolean) => Promise<void>;
}

async function ends(
  t: ExecutionContext,
  handle: (frame: Frame, connection: Connection) => void = () => undefined,
  shared?: Shared,
): Promise<Ends> {
  const [dialed, other] = await pair(t);
  const watch = new Watch();
  const frames: Frame[] = [];
  const closed: (FarkvError | undefined)[] = [];
  const connection = new Connection(
    dialed,
    CLIENT_FRAME_LIMITS,
    {
      frame: (frame) => {
        frames.push(frame);
        watch.changed();
        handle(frame, connection);
      },
      closed: (error) => {
        closed.push(error);
        watch.changed();
      },
    },
    shared,
  );
  t.teardown(() => connection.close());
  return { connection, other, frames, ends: closed, until: (condition) => watch.until(condition) };
}

const ping = (id: number): Uint8Array => encodeFrame({ t: 'ping', id });

test('frames arrive whole and in order, however they are cut', async (t) => {
  const { other, frames, until } = await ends(t);
  const bytes = Buffer.concat([ping(1), ping(2), ping(3)]);
  other.write(bytes.subarray(0, 7));
  other.write(bytes.subarray(7));
  await until(() => frames.length === 3);
  t.deepEqual(
    frames,
    [1, 2, 3].map((id) => ({ t: 'ping', id })),
  );
});

test('a connection that is closed by a handler gets no more frames, and ends once', async (t) => {
  const { other, frames, ends: closed, until } = await ends(t, (_, connection) => connection.close());
  other.write(Buffer.concat([ping(1), ping(2)]));
  await until(() => closed.length > 0);
  t.is(frames.length, 1);
  t.deepEqual(closed, [undefined]);
});

test('why a connection ended is told by its code', async (t) => {
  const why = async (act: (other: Socket) => void, handle?: () => void): Promise<FarkvError | undefined> => {
    const { other, ends: closed, until } = await ends(t, handle);
    act(other);
    await until(() => closed.length > 0);
    return closed[0];
  };
  t.is(await why((other) => other.end()), undefined);
  t.is((await why((other) => other.end(ping(1).subarray(0, 5))))?.code, 'ERR_PROTOCOL');
  t.is((await why((other) => other.write('GET / HTTP/1.1\r\n\r\n')))?.code, 'ERR_PROTOCOL');
  const reset = await why((other) => other.resetAndDestroy());
  t.is(reset?.code, 'ERR_DISCONNECTED');
  t.like(reset?.cause, { code: 'ECONNRESET' });
  const fault = new TypeError('a bug');
  const own = await why(
    (other) => other.write(ping(1)),
    () => {
      throw fault;
    },
  );
  t.is(own?.code, 'ERR_INTERNAL');
  t.is(own?.cause, fault);
});

test('an end that reads nothing costs a bounded number of bytes, then its connection', async (t) => {
  const { connection, other, ends: closed } = await ends(t);
  other.pause();
  const bytes = new Uint8Array(1 << 20);
  let sent = 0;
  for (; closed.length === 0 && sent < 2 * BACKLOG_MAX; sent += bytes.length) connection.sendBytes(bytes);
  t.is(closed[0]?.code, 'ERR_BUSY');
  t.true(sent <= BACKLOG_MAX + bytes.length, `${sent} bytes`);
});

const LARGE = { frames: 1000, bytes: 1 << 20 };

test('a connection handles its frames of one turn, reads nothing until the next, and loses none', async (t) => {
  const begin: (() => void)[] = [];
  const watch = new Watch();
  const turns = new Turns({ each: { frames: 2, bytes: 1 << 20 }, all: LARGE }, (serve) => {
    begin.push(serve);
    watch.changed();
  });
  const { other, frames } = await ends(t, undefined, { turns, outbox: new Outbox(1 << 20) });
  other.write(Buffer.concat([ping(1), ping(2), ping(3), ping(4), ping(5).subarray(0, 3)]));
  await watch.until(() => begin.length > 0);
  t.is(frames.length, 2);
  begin.shift()?.();
  t.is(frames.length, 4);
  other.write(ping(5).subarray(3));
  while (frames.length < 5) {
    await watch.until(() => begin.length > 0 || frames.length >= 5);
    begin.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.deepEqual(
    frames.map((f) => (f.t === 'ping' ? f.id : 0)),
    [1, 2, 3, 4, 5],
  );
});

test('what was sent leaves at once where it is told to', async (t) => {
  const [dialed, other] = await pair(t);
  const connection = new Connection(dialed, CLIENT_FRAME_LIMITS, { frame: () => undefined, closed: () => undefined });
  connection.send({ t: 'ping', id: 1 });
  t.true(dialed.writableCorked > 0 && dialed.writableLength > 0);
  connection.flush();
  t.is(dialed.writableCorked, 0);
  other.destroy();
});

test('a connection that is held handles no frame until it is released', async (t) => {
  const { connection, other, frames, until } = await ends(t, (frame, own) => {
    if (frame.t === 'ping' && frame.id === 2) own.hold();
  });
  other.write(Buffer.concat([ping(1), ping(2), ping(3)]));
  await until(() => frames.length >= 2);
  other.write(ping(4));
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  t.is(frames.length, 2);
  connection.release();
  await until(() => frames.length === 4);
  t.pass();
});

test('of all connections that send more than is taken, the one with the most ends', async (t) => {
  const outbox = new Outbox(8 << 20);
  const turns = new Turns({ each: LARGE, all: LARGE });
  const [small, large] = [await ends(t, undefined, { turns, outbox }), await ends(t, undefined, { turns, outbox })];
  for (const { other } of [small, large]) other.pause();
  small.connection.sendBytes(new Uint8Array(1 << 20));
  for (let sent = 0; large.ends.length === 0 && sent < 32; sent++) large.connection.sendBytes(new Uint8Array(1 << 20));
  t.is(large.ends[0]?.code, 'ERR_BUSY');
  t.is(small.ends.length, 0);
  t.true(outbox.bytes <= 8 << 20);
});
