/** How a client connects: over which transport, to which servers, what it says when it cannot; and how it is closed. */
import test from 'ava';
import { connect, FarkvError, type ClientEvent } from '../../client/index.js';
import { Cluster, farkv } from '../support/cluster.js';
import { clientOf, inProcess, sharedCluster } from '../support/sdk-clients.js';

const shared = sharedCluster(test);

test('auto picks shared memory on the same host, says so, and tells events', async (t) => {
  const events: ClientEvent[] = [];
  const kv = await clientOf(t, shared(), { onEvent: (event) => events.push(event) });
  for (const { provider, reason } of kv.transports()) t.deepEqual([provider, reason], ['shm', 'same host']);
  t.true(events.some((event) => event.type === 'control' && event.connected));
  t.true(events.some((event) => event.type === 'transport' && event.transport.provider === 'shm'));
  const told = JSON.stringify(events);
  t.false(/rkey|token|ticket/i.test(told));
});

test('what a transport says of itself is an event', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1 });
  let onEvent: (event: ClientEvent) => void = () => undefined;
  const said = new Promise<ClientEvent & { type: 'log' }>((resolve) => {
    onEvent = (event) => {
      if (event.type === 'log') resolve(event);
    };
  });
  await clientOf(t, cluster, { transport: 'shm', onEvent });
  await cluster.server(0).kill();
  const { level, message, omitted } = await said;
  t.deepEqual([level, omitted], ['info', 0]);
  t.regex(message, /^shm: .*: connect: /);
});

test('a transport that cannot be used: another one and why, or with strict an error', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, args: ['--transport', 'tcp'] });
  const kv = await clientOf(t, cluster, { transport: 'shm' });
  const [first] = kv.transports();
  t.is(first?.provider, 'tcp');
  t.regex(first?.reason ?? '', /shm: the server does not offer it/);
  await kv.put('a', 'x');
  t.is(String(await kv.get('a')), 'x');
  await t.throwsAsync(connect({ servers: cluster.addresses, transport: 'shm', strict: true }), {
    code: 'ERR_UNSUPPORTED',
    message: /s1: .*shm: the server does not offer it/,
  });
});

test('a data port that cannot be reached is named, with what to do at the server', async (t) => {
  // Nobody listens at this address of the loopback.
  const cluster = await Cluster.start(t, { servers: 1, args: ['--advertise', '127.0.0.2'] });
  const { address } = cluster.server(0);
  const seconds = 4;
  const connecting = connect({ servers: address, transport: 'tcp', strict: true, connectTimeoutMs: seconds * 1000 });
  const running = farkv([
    'get',
    'a',
    '--connect',
    address,
    '--transport',
    'tcp',
    '--strict',
    '--timeout',
    `${seconds}s`,
  ]);
  await t.throwsAsync(connecting, {
    code: 'ERR_TIMEOUT',
    message: /no server's data plane .*tcp: failed with ERR_DISCONNECTED at 127\.0\.0\.2:\d+.*--advertise names them/,
  });
  const { code, stderr } = await running;
  t.is(code, 69);
  t.regex(stderr, /at 127\.0\.0\.2:\d+/);
  t.notRegex(stderr, /is a server running there/);
});

test('connect says what is wrong', async (t) => {
  const cluster = await Cluster.start(t, { servers: 1, args: ['--token', 'open sesame'] });
  const servers = cluster.addresses;
  await t.throwsAsync(connect({ servers }), { code: 'ERR_UNAUTHORIZED' });
  const wrong = await t.throwsAsync(connect({ servers, token: 'open sesamf' }), { code: 'ERR_UNAUTHORIZED' });
  t.false(wrong.message.includes('sesam'));
  const kv = await connect({ servers, token: 'open sesame' });
  await kv.put('a', 'x');
  await kv.close();
  const two = connect as (servers: string, options: object) => Promise<unknown>;
  await t.throwsAsync(two('127.0.0.1:1', { codec: 'msgpack' }), { code: 'ERR_ARGUMENT', message: /one argument/ });
  for (const codec of ['json', 5, null, { id: 16, name: 'x' }])
    await t.throwsAsync(connect({ servers: '127.0.0.1:1', codec } as never), { code: 'ERR_CONFIG', message: /codec/ });
  await t.throwsAsync(connect({ servers: '127.0.0.1:1', connectTimeoutMs: 300 }), {
    code: 'ERR_DISCONNECTED',
    message: /no server listens there .*ECONNREFUSED/,
  });
  await t.throwsAsync(connect({ servers, tls: true, connectTimeoutMs: 500 }), { instanceOf: FarkvError });
  const abort = new AbortController();
  const pending = connect({ servers: '127.0.0.1:1', signal: abort.signal });
  abort.abort();
  await t.throwsAsync(pending, { code: 'ERR_ABORTED' });
  await t.throwsAsync(connect({ servers: '127.0.0.1:1', signal: abort.signal }), { code: 'ERR_ABORTED' });
});

test('one server that answers is enough; the others are learned from it', async (t) => {
  const kv = await clientOf(t, shared(), { servers: ['127.0.0.1:1', shared().server(1).address] });
  // The others answer when they come to it.
  while (kv.transports().length < 3) await new Promise(setImmediate);
  await kv.put('a', 'x');
  t.is(String(await kv.get('a')), 'x');
});

test('an idle client does not keep a process from ending', async (t) => {
  const answer = await inProcess({
    task: 'idle',
    servers: shared().addresses.join(','),
    transport: 'auto',
    argument: 0,
  });
  t.deepEqual(answer, { done: true, code: 0 });
});

test('await using closes the client', async (t) => {
  const made = await connect({ servers: shared().addresses });
  await made[Symbol.asyncDispose]();
  await t.throwsAsync(made.get('a'), { code: 'ERR_CLOSED' });
});
