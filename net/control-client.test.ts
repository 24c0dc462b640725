/**
 * The two ends of the control plane's connections together: outgoing.ts and control-client.ts on one side, incoming.ts
 * on the other.
 */
import test, { type ExecutionContext } from 'ava';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { inRepository } from '../bench/repository.js';
import { FarkvError, type ErrorCode } from '../core/errors.js';
import { encodeFrame, PROTOCOL_MAX, type Frame, type Hello, type Welcome } from '../core/protocol/index.js';
import { listen, standStill, Watch } from '../test/support/ends.js';
import { ControlClient, type OpenOptions } from './control-client.js';
import { Incoming } from './incoming.js';
import { asRefusal, TLS_ONLY } from './tls.js';

interface Server {
  readonly address: string;
  readonly log: string[];
  readonly sockets: Socket[];
  readonly until: (condition: () => boolean) => Promise<void>;
}

interface Behaviour {
  readonly handshakeMs?: number;
  readonly hello?: (hello: Hello, incoming: Incoming) => void;
  readonly frame?: (frame: Frame, incoming: Incoming) => void;
}

const FIELDS = { serverId: 's1', clusterId: '' } as const;

/** A server that lets everybody in and answers every call with its method, unless told otherwise. */
async function server(t: ExecutionContext, { handshakeMs = 60_000, hello, frame }: Behaviour = {}): Promise<Server> {
  const log: string[] = [];
  const sockets: Socket[] = [];
  const watch = new Watch();
  const say = (text: string): void => {
    log.push(text);
    watch.changed();
  };
  const address = await listen(t, (socket) => {
    sockets.push(socket);
    const incoming: Incoming = new Incoming(socket, handshakeMs, {
      hello: (given) => {
        say(`hello ${given.role}`);
        if (hello === undefined) incoming.welcome(FIELDS);
        else hello(given, incoming);
      },
      refused: (message) => say(`refused: ${message}`),
      frame: (given) => {
        say(given.t);
        if (frame !== undefined) frame(given, incoming);
        else if (given.t === 'call')
          incoming.connection.send({ t: 'answer', id: given.id, ok: true, result: given.method });
      },
      closed: (error) => say(`closed ${error?.code ?? ''}`),
      drained: () => undefined,
    });
    watch.changed();
  });
  return { address, log, sockets, until: (condition) => watch.until(condition) };
}

async function open(t: ExecutionContext, address: string, more: Partial<OpenOptions> = {}): Promise<ControlClient> {
  const client = await ControlClient.open({
    address,
    trust: undefined,
    timeoutMs: 5000,
    hello: { role: 'admin', token: 'secret' },
    ...more,
  });
  t.teardown(() => client.close());
  return client;
}

function raw(t: ExecutionContext, { address }: Server): Socket {
  const socket = connect(Number(address.split(':')[1]), '127.0.0.1');
  socket.on('error', () => undefined);
  t.teardown(() => socket.destroy());
  return socket;
}

const hello: Hello = { t: 'hello', magic: 'farkv', versions: [1, 1], role: 'client' };

test('hello, welcome, calls and their answers', async (t) => {
  const { address, log } = await server(t);
  const client = await open(t, address);
  t.deepEqual(client.welcome, { t: 'welcome', ok: true, version: PROTOCOL_MAX, ...FIELDS });
  t.deepEqual(await Promise.all([client.call('a', {}, 5000), client.call('b', {}, 5000)]), ['a', 'b']);
  t.deepEqual(log, ['hello admin', 'call', 'call']);
});

test('an answer and a welcome are taken though the process stood still until the time for them was over', async (t) => {
  const { address } = await server(t, {
    hello: (_, incoming) => {
      standStill(1500);
      incoming.welcome(FIELDS);
    },
    frame: (frame, incoming) => {
      standStill(1500);
      if (frame.t === 'call') incoming.connection.send({ t: 'answer', id: frame.id, ok: true, result: 'there' });
    },
  });
  const client = await open(t, address, { timeoutMs: 1000 });
  t.is(await client.call('slow', {}, 1000), 'there');
});

test('refused, unreachable, silent, malformed and lost are told apart', async (t) => {
  const fails = async (at: string, code: ErrorCode, message: RegExp, timeoutMs = 5000): Promise<void> => {
    await t.throwsAsync(open(t, at, { timeoutMs }), { instanceOf: FarkvError, code, message });
  };
  const refusing = await server(t, {
    hello: () => {
      throw new FarkvError('ERR_UNAUTHORIZED', 'who\nare you?');
    },
  });
  await fails(refusing.address, 'ERR_UNAUTHORIZED', /^who\\nare you\?$/);
  await refusing.until(() => refusing.log.length === 3);
  t.deepEqual(refusing.log, ['hello admin', 'refused: who\nare you?', 'closed ']);
  await fails(await listen(t, () => undefined), 'ERR_TIMEOUT', /did not answer within 50 ms/, 50);
  await fails(await listen(t, (socket) => socket.destroy()), 'ERR_DISCONNECTED', /./);
  await fails(
    await listen(t, (socket) => socket.end()),
    'ERR_DISCONNECTED',
    /closed the connection without an answer: does it want TLS\? Is it the port of data or of http/,
  );
  await fails(await listen(t, (socket) => socket.write('220 smtp.example.net\r\n')), 'ERR_DISCONNECTED', /not farkv/);
  await fails(
    await listen(t, (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n')),
    'ERR_DISCONNECTED',
    /it speaks http: .* --listen$/,
  );
  await fails(
    await listen(t, (socket) => socket.write(encodeFrame({ t: 'call', id: 1, method: 'm', args: null }))),
    'ERR_PROTOCOL',
    /did not answer with a welcome/,
  );
  const welcome: Welcome = { t: 'welcome', ok: true, version: 99, ...FIELDS };
  await fails(await listen(t, (socket) => socket.write(encodeFrame(welcome))), 'ERR_PROTOCOL_VERSION', /version 99/);
  await fails('127.0.0.1:1', 'ERR_DISCONNECTED', /^127\.0\.0\.1:1: .*ECONNREFUSED/);
});

test('calls on a connection that is lost end with ERR_DISCONNECTED, those that come late are dropped', async (t) => {
  let answer: () => void = () => undefined;
  const { address, sockets } = await server(t, {
    frame: (frame, { connection }) => {
      if (frame.t !== 'call') return;
      const send = (): void => connection.send({ t: 'answer', id: frame.id, ok: true, result: frame.method });
      if (frame.method === 'late') answer = send;
      if (frame.method === 'now') {
        answer();
        send();
      }
    },
  });
  const watch = new Watch();
  const ended: string[] = [];
  const client = await open(t, address, {
    closed: (error) => {
      ended.push(error.code);
      watch.changed();
    },
  });
  await t.throwsAsync(client.call('late', {}, 1), {
    code: 'ERR_TIMEOUT',
    message: 'late was not answered within 1 ms',
  });
  t.is(await client.call('now', {}, 5000), 'now');
  const never = client.call('never', {}, 60_000);
  for (const socket of sockets) socket.destroy();
  await t.throwsAsync(never, { code: 'ERR_DISCONNECTED', message: `the connection to ${address} was lost` });
  await watch.until(() => ended.length > 0);
  await t.throwsAsync(client.call('after', {}, 5000), { code: 'ERR_DISCONNECTED' });
  t.deepEqual(ended, ['ERR_DISCONNECTED']);
});

test('opening ends with its signal', async (t) => {
  const abort = new AbortController();
  const address = await listen(t, () => abort.abort());
  await t.throwsAsync(open(t, address, { signal: abort.signal }), { code: 'ERR_ABORTED' });
  await t.throwsAsync(open(t, address, { signal: abort.signal }), { code: 'ERR_ABORTED' });
});

test('pings are answered at both ends', async (t) => {
  const one = await server(t, {
    hello: (_, incoming) => {
      incoming.welcome(FIELDS);
      incoming.connection.send({ t: 'ping', id: 1 });
    },
  });
  const client = await open(t, one.address);
  await one.until(() => one.log.includes('pong'));
  t.is(await client.call('after', {}, 5000).catch((e: unknown) => (e as FarkvError).code), 'after');
});

test('a hello that came while the process stood still until the time for it was over is taken', async (t) => {
  const one = await server(t, { handshakeMs: 1000 });
  const socket = raw(t, one);
  await Promise.all([once(socket, 'connect'), one.until(() => one.sockets.length > 0)]);
  socket.write(encodeFrame(hello));
  standStill(1500);
  await one.until(() => one.log.length > 0);
  t.deepEqual(one.log, ['hello client']);
});

test('before the hello is accepted a frame is small, and the first frame is a hello', async (t) => {
  const one = await server(t, { handshakeMs: 2000 });
  const large = Buffer.alloc(64);
  large.writeUInt32BE((2 << 10) + 1);
  for (const bytes of [large, encodeFrame({ t: 'ping', id: 1 })]) {
    one.log.length = 0;
    raw(t, one).write(bytes);
    await one.until(() => one.log.length > 0);
    t.deepEqual(one.log, ['closed ERR_PROTOCOL']);
  }
});

test('the token is shown to nobody whose certificate is not trusted, and that is a refusal for a user', async (t) => {
  const pem = (name: string): Buffer => readFileSync(inRepository('test/fixtures/tls', name));
  const got: string[] = [];
  const tls = { cert: pem('server.pem'), key: pem('server-key.pem'), ...TLS_ONLY } as const;
  const address = await listen(
    t,
    (socket) => {
      const incoming: Incoming = new Incoming(socket, 60_000, {
        hello: ({ token }) => {
          got.push(token ?? '');
          incoming.welcome(FIELDS);
        },
        refused: () => undefined,
        frame: () => undefined,
        closed: () => undefined,
        drained: () => undefined,
      });
    },
    tls,
  );
  const error = await t.throwsAsync<FarkvError>(open(t, address, { trust: { value: { ca: pem('stranger.pem') } } }), {
    code: 'ERR_DISCONNECTED',
  });
  t.is(asRefusal(error).code, 'ERR_UNAUTHORIZED');
  await t.throwsAsync(open(t, address, { trust: { value: { ca: pem('ca.pem'), servername: 'other.example.net' } } }), {
    code: 'ERR_DISCONNECTED',
  });
  t.deepEqual(got, []);
  await open(t, address, { trust: { value: { ca: [pem('stranger.pem'), pem('ca.pem')] } } });
  t.deepEqual(got, ['secret']);
  t.is(asRefusal(new FarkvError('ERR_TIMEOUT', 'late')).code, 'ERR_TIMEOUT');
});
