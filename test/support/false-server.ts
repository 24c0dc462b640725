/** Servers that are none: they answer as a test says. Each listens on a port of its own, until the test ends. */
import type { ExecutionContext } from 'ava';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { CLIENT_FRAME_LIMITS, encodeFrame, FrameReader, type Frame, type Welcome } from '../../core/protocol/index.js';

type Test = Pick<ExecutionContext, 'teardown'>;

/** Any protocol; gives the port. */
export async function falseServer(t: Test, connection: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    connection(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const WELCOME: Welcome = { t: 'welcome', ok: true, version: 1, serverId: 's1', clusterId: 'ab'.repeat(16) };

/** A control port: welcomes whoever comes, and answers calls. What `answer` throws is the answer of a call that failed. */
export async function falseControl(
  t: Test,
  answer: (method: string, args: unknown) => unknown,
  welcome: Welcome = WELCOME,
): Promise<string> {
  const port = await falseServer(t, (socket) => {
    const reader = new FrameReader(CLIENT_FRAME_LIMITS);
    const say = (frame: Frame): void => void socket.write(encodeFrame(frame));
    socket.on('data', (chunk: Buffer) =>
      reader.push(chunk, (frame) => {
        if (frame.t === 'hello') say(welcome);
        if (frame.t === 'ping') say({ t: 'pong', id: frame.id });
        if (frame.t === 'call') say(answerTo(frame.id, () => answer(frame.method, frame.args)));
        return true;
      }),
    );
  });
  return `127.0.0.1:${port}`;
}

function answerTo(id: number, answer: () => unknown): Frame {
  try {
    return { t: 'answer', id, ok: true, result: answer() };
  } catch (error) {
    return { t: 'answer', id, ok: false, code: 'ERR_BUSY', message: (error as Error).message };
  }
}

/** Redis: answers each command, whose words it is given, with bytes of its protocol. */
export async function falseRedis(t: Test, answer: (words: readonly string[]) => string | Buffer): Promise<string> {
  const port = await falseServer(t, (socket) => {
    let rest = '';
    socket.on('data', (chunk: Buffer) => {
      rest += chunk.toString('latin1');
      for (let words = takeCommand(); words !== undefined; words = takeCommand())
        socket.write(Buffer.from(answer(words)));
    });
    // Words of the tests have no line feeds: `$N CRLF` and the word are lines, two for each.
    function takeCommand(): string[] | undefined {
      const count = /^\*(\d+)\r\n/.exec(rest);
      if (count === null) return undefined;
      const lines = rest.split('\r\n');
      const end = 1 + 2 * Number(count[1]);
      if (lines.length <= end) return undefined;
      rest = lines.slice(end).join('\r\n');
      return lines.slice(1, end).filter((_, i) => i % 2 === 1);
    }
  });
  return `redis://127.0.0.1:${port}`;
}
