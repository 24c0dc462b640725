/**
 * What systemd is told of a server: a real process, and a datagram socket as systemd's. Node.js opens no such socket,
 * so Python does.
 */
import test, { type ExecutionContext } from 'ava';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Cluster } from '../support/cluster.js';

const RECEIVER = `
import json, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
name = sys.argv[1]
s.bind('\\0' + name[1:] if name[0] == '@' else name)
print(json.dumps('bound'), flush=True)
while True:
    print(json.dumps(s.recv(4096).decode()), flush=True)
`;

/** The next datagram as text; it ends with the test. */
async function receiver(t: ExecutionContext, socket: string): Promise<() => Promise<string>> {
  const python = spawn('python3', ['-c', RECEIVER, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => python.kill());
  const lines: AsyncIterator<string, undefined> = createInterface({ input: python.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => {
    const { value } = await lines.next();
    if (value === undefined) throw new Error('the receiver has ended');
    return JSON.parse(value) as string;
  };
  t.is(await next(), 'bound');
  return next;
}

function socketPath(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'farkv-notify-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'socket');
}

for (const kind of ['a path', 'an abstract name']) {
  test.serial(`a service manager is told when a server serves and when it stops: ${kind}`, async (t) => {
    const socket = kind === 'a path' ? socketPath(t) : `@farkv-notify-${process.pid}`;
    const next = await receiver(t, socket);
    const cluster = await Cluster.start(t, { shards: 2, env: { NOTIFY_SOCKET: socket } });
    t.is(await next(), 'READY=1\nSTATUS=serves 2 shards');
    const server = cluster.server(0);
    server.signal('SIGHUP');
    await server.said('info SIGHUP: ');
    const stopped = server.stop();
    t.is(await next(), 'STOPPING=1', 'SIGHUP reads nothing, so nothing was said of it');
    t.deepEqual(await stopped, { code: 0, signal: null });
    t.notRegex(server.stderr, /was not told/);
  });
}

test.serial('a server that waits for its majority is not ready, and says that it stops', async (t) => {
  const socket = socketPath(t);
  const next = await receiver(t, socket);
  const cluster = await Cluster.start(t, { servers: 3, absent: [1, 2], ready: false, env: { NOTIFY_SOCKET: socket } });
  const server = cluster.server(0);
  await server.said('waiting for');
  const stopped = server.stop();
  t.is(await next(), 'STOPPING=1');
  t.is((await stopped).code, 0);
});

test.serial('a socket without a receiver is warned of, and the server serves', async (t) => {
  const socket = socketPath(t);
  const cluster = await Cluster.start(t, { env: { NOTIFY_SOCKET: socket } });
  const server = cluster.server(0);
  await server.said(`warn the service manager was not told READY=1: ${socket}: No such file or directory`);
  t.deepEqual(await server.stop(), { code: 0, signal: null });
});
