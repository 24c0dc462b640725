import test, { type ExecutionContext } from 'ava';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { FarkvError } from '../../core/errors.js';
import { EMPTY } from '../../core/metadata/reduce.js';
import { encodeFrame, type Frame, type Hello } from '../../core/protocol/index.js';
import { ControlClient } from '../../net/control-client.js';
import { hello, opened, operator, PLACES, Raw, rig, shard, STATE, TENANTS } from '../../test/support/control-rig.js';
import { Log } from '../log.js';
import { RecentAddresses } from './addresses.js';
import { Listener } from './listener.js';

/** An operator's connection, which the test closes at its end. */
async function operatorClient(t: ExecutionContext, address: string): Promise<ControlClient> {
  const client = await ControlClient.open({
    address,
    trust: undefined,
    timeoutMs: 5000,
    hello: { role: 'admin', token: "operator's secret" },
  });
  t.teardown(() => client.close());
  return client;
}

test('versions that do not overlap are refused with what is spoken here', async (t) => {
  const { port } = await rig(t);
  const raw = new Raw(t, port).say(hello({ versions: [7, 9] }));
  t.like((await raw.got(1))[0], { ok: false, code: 'ERR_PROTOCOL_VERSION', versions: [1, 1] });
  await raw.until(() => raw.closed);
  t.like((await new Raw(t, port).say(hello({ versions: [1, 9] })).got(1))[0], { ok: true, version: 1 });
});

test('a wrong token, a missing one and one of another role are refused', async (t) => {
  const { port } = await rig(t);
  const without: Hello = { t: 'hello', magic: 'farkv', versions: [1, 1], role: 'client' };
  for (const h of [
    hello({ token: 'wrong' }),
    without,
    hello({ token: '' }),
    hello({ role: 'admin', token: "operator's secre" }),
    // Of another role each.
    hello({ role: 'admin', token: 'secret' }),
    hello({ role: 'admin', token: 'peer secret' }),
    hello({ token: "operator's secret" }),
    hello({ token: 'peer secret' }),
  ]) {
    t.like((await new Raw(t, port).say(h).got(1))[0], { ok: false, code: 'ERR_UNAUTHORIZED' });
  }
});

test('a token opens one tenant: its clients get its shards, a ticket for it, and what changes there', async (t) => {
  const { port, setState } = await rig(t);
  setState(TENANTS);
  const [ofAll, ofA] = [new Raw(t, port).say(hello()), new Raw(t, port).say(hello({ token: 'secret of a' }))];
  const shardsOf = (frames: Frame[]): number[][] =>
    frames.flatMap((f) => (f.t === 'map' ? [f.map.shards.map((s) => s.shard)] : []));
  t.deepEqual(shardsOf(await ofAll.got(2)), [[0]]);
  t.deepEqual(shardsOf(await ofA.got(2)), [[1]]);
  t.deepEqual(
    [ofAll, ofA].map(({ frames: [welcome] }) => welcome && opened(welcome)?.tenant),
    [0, 1],
  );
  setState({ ...TENANTS, mapEpoch: 2, shards: [shard(0, 2), STATE.shards[1]!] });
  t.deepEqual(shardsOf(await ofAll.got(3)), [[0], [0]]);
  t.deepEqual(shardsOf(await ofA.got(3)), [[1], []]);
});

test('the token of a tenant is none for operators, or a cluster that does not have the domain', async (t) => {
  const { port, setState } = await rig(t);
  setState(TENANTS);
  for (const h of [
    hello({ role: 'admin', token: 'secret of a' }),
    hello({ token: 'secret of b' }),
    hello({ token: 'secret of' }),
  ]) {
    t.like((await new Raw(t, port).say(h).got(1))[0], { ok: false, code: 'ERR_UNAUTHORIZED' });
  }
});

test('clients make no calls, also those of the default tenant', async (t) => {
  const { port, setState } = await rig(t, { call: () => Promise.resolve('all there is') });
  setState(TENANTS);
  const call: Frame = { t: 'call', id: 1, method: 'status', args: {} };
  for (const token of ['secret', 'reading secret', 'secret of a']) {
    t.like(
      (await new Raw(t, port).say(hello({ token }), call).got(3)).find((f) => f.t === 'answer'),
      { ok: false, code: 'ERR_UNAUTHORIZED' },
    );
  }
});

test('a token says what its owner may do: calls by role, tickets that write or not', async (t) => {
  const flags: (number | undefined)[] = [];
  const { port, setState } = await rig(t);
  setState(TENANTS);
  for (const token of ['secret', 'reading secret', 'secret of a', 'reading secret of a']) {
    const [welcome] = await new Raw(t, port).say(hello({ token })).got(2);
    flags.push(welcome && opened(welcome)?.flags);
  }
  t.deepEqual(flags, [3, 1, 3, 1]);
  const call: Frame = { t: 'call', id: 1, method: 'any', args: {} };
  const as = async (more: Partial<Hello>): Promise<unknown> => {
    const frames = await new Raw(t, port).say(hello(more), call).got(2);
    return frames.find((f) => f.t === 'answer');
  };
  t.like(await as({ role: 'admin', token: "operator's secret" }), { result: { access: 'operator' } });
  t.like(await as({ role: 'admin', token: "monitor's secret" }), { result: { access: 'monitor' } });
});

test('changes by one operator are limited, and neither those of another nor what changes nothing', async (t) => {
  const audited: string[] = [];
  const log = new Log('error', (_level, _text, fields) => {
    if (fields !== undefined) audited.push(`${fields.event} ${String(fields.result)}`);
  });
  const { port } = await rig(t, { auditedCalls: { perSecond: 1 / 3600, burst: 2 }, log });
  const calls = (method: string, ids: readonly number[]): Frame[] =>
    ids.map((id) => ({ t: 'call', id, method, args: {} }));
  const answers = async (from: string, ...frames: Frame[]): Promise<string[]> => {
    const got = await new Raw(t, port, from).say(operator(), ...frames).got(1 + frames.length);
    return got.flatMap((f) => (f.t === 'answer' ? [`${f.id} ${f.ok ? 'ok' : f.code}`] : [])).sort();
  };
  t.deepEqual(await answers('127.0.0.1', ...calls('drain', [1, 2]), ...calls('any', [3])), ['1 ok', '2 ok', '3 ok']);
  // By another connection too.
  t.deepEqual(await answers('127.0.0.1', ...calls('drain', [1]), ...calls('any', [2])), ['1 ERR_BUSY', '2 ok']);
  t.deepEqual(await answers('127.0.0.2', ...calls('drain', [1])), ['1 ok']);
  t.deepEqual(audited, ['drain ok', 'drain ok', 'drain ERR_BUSY', 'drain ok']);
});

test('a tenant has no more clients than it may have', async (t) => {
  const { port, setState } = await rig(t);
  setState(TENANTS);
  const tenant = hello({ token: 'secret of a' });
  const two = [new Raw(t, port).say(tenant), new Raw(t, port).say(tenant)];
  for (const one of two) t.like((await one.got(2))[0], { ok: true });
  t.like((await new Raw(t, port).say(tenant).got(1))[0], { ok: false, code: 'ERR_BUSY' });
  t.like((await new Raw(t, port).say(hello()).got(1))[0], { ok: true });
});

test('a client is told to wait while there is no cluster, an operator is let in', async (t) => {
  const { port } = await rig(t, { state: () => EMPTY });
  t.like((await new Raw(t, port).say(hello()).got(1))[0], { ok: false, code: 'ERR_NO_LEADER' });
  t.like((await new Raw(t, port).say(operator()).got(1))[0], { ok: true, clusterId: '' });
});

test('a server is told which port is for servers, and a Raft message ends its connection', async (t) => {
  const { port } = await rig(t);
  const peer = new Raw(t, port).say(hello({ role: 'peer', token: 'secret', from: 's2' }));
  const [refusal] = await peer.got(1);
  t.like(refusal, { ok: false, code: 'ERR_CONFIG' });
  t.regex(refusal?.t === 'welcome' && !refusal.ok ? refusal.message : '', /--peer-listen/);
  const client = new Raw(t, port).say(hello());
  await client.got(2);
  client.say({ t: 'raft', message: 'm2' }, { t: 'call', id: 1, method: 'status', args: {} });
  await client.until(() => client.closed);
  t.is(client.frames.length, 2);
});

test('garbage, and a first frame that is no hello, end the connection without an answer', async (t) => {
  const { port, plane } = await rig(t);
  for (const bytes of [
    Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
    Buffer.alloc(100),
    Buffer.alloc(100, 0xff),
    encodeFrame({ t: 'ping', id: 1 }),
    encodeFrame({ t: 'call', id: 1, method: 'status', args: {} }),
  ]) {
    const raw = new Raw(t, port);
    raw.socket.write(bytes);
    await raw.until(() => raw.closed);
    t.deepEqual(raw.frames, []);
  }
  t.is(plane.rejected, 5);
});

test('a connection that says nothing is closed', async (t) => {
  const { port } = await rig(t, { handshakeMs: 50 });
  const raw = new Raw(t, port);
  await raw.until(() => raw.closed);
  t.deepEqual(raw.frames, []);
  const half = new Raw(t, port);
  half.socket.write(encodeFrame(hello()).subarray(0, 10));
  await half.until(() => half.closed);
  t.deepEqual(half.frames, []);
});

test('clients beyond --max-connections are refused, operators have places of their own, and room comes back', async (t) => {
  const { port } = await rig(t, { maxConnections: 2 });
  const guests = [new Raw(t, port).say(hello()), new Raw(t, port).say(hello())];
  for (const guest of guests) t.like((await guest.got(2))[0], { ok: true });
  t.like((await new Raw(t, port).say(hello()).got(1))[0], { ok: false, code: 'ERR_BUSY' });
  const monitor = hello({ role: 'admin', token: "monitor's secret" });
  t.like((await new Raw(t, port).say(monitor).got(1))[0], { ok: false, code: 'ERR_BUSY' });
  const operators = Array.from({ length: 17 }, () => new Raw(t, port).say(operator()));
  const answers = await Promise.all(operators.map(async (one) => (await one.got(1))[0]));
  t.is(answers.filter((one) => one?.t === 'welcome' && one.ok).length, 16);
  for (const one of [...operators, guests[0]!]) one.socket.destroy();
  for (;;) {
    const again = new Raw(t, port).say(hello());
    if ((await again.got(2)).length === 2) break;
  }
  t.pass();
});

test('connections without a login give way to later ones, those of known addresses to each other alone', async (t) => {
  const known = new RecentAddresses(10);
  const places = { strangers: 2, known: 2, isKnown: (source: string) => known.has(source) };
  const { port, listener } = await rig(t, { known }, { places, handshakeMs: 60_000 });
  const first = new Raw(t, port, '127.0.0.2').say(operator());
  t.like((await first.got(1))[0], { ok: true });
  const slow = new Raw(t, port, '127.0.0.2');
  await once(slow.socket, 'connect');
  const silent = [new Raw(t, port), new Raw(t, port), new Raw(t, port)];
  await silent[0]!.until(() => silent.filter((one) => one.closed).length === 1 || silent[0]!.closed);
  // A server that is full of silent connections lets in who shows a token.
  t.like((await new Raw(t, port).say(hello()).got(2))[0], { ok: true });
  slow.say(operator());
  t.like((await slow.got(1))[0], { ok: true });
  t.true(listener.evicted >= 2);
  t.false(first.closed);
});

test('wrong tokens make their address wait, and no other', async (t) => {
  const { port } = await rig(t);
  const code = async (from: string, h: Hello): Promise<string> => {
    const [answer] = await new Raw(t, port, from).say(h).got(1);
    return answer?.t === 'welcome' ? (answer.ok ? 'ok' : answer.code) : 'none';
  };
  const guesses: string[] = [];
  while (guesses.at(-1) !== 'ERR_BUSY' && guesses.length < 200)
    guesses.push(await code('127.0.0.3', hello({ token: `guess ${guesses.length}` })));
  t.is(guesses.at(-1), 'ERR_BUSY');
  t.true(guesses.filter((one) => one === 'ERR_UNAUTHORIZED').length >= 10);
  t.is(await code('127.0.0.4', hello()), 'ok');
  t.is(await code('127.0.0.3', operator()), 'ok');
});

test('a connection that does not read its answers gets no more calls answered', async (t) => {
  const large = 'x'.repeat(4000);
  let calls = 0;
  const { port } = await rig(t, {
    call: () => {
      calls += 1;
      return Promise.resolve(Array.from({ length: 64 }, () => large));
    },
  });
  const raw = new Raw(t, port).say(operator());
  await raw.got(1);
  raw.socket.pause();
  const COUNT = 2000;
  for (let id = 0; id < COUNT; id++) raw.say({ t: 'call', id, method: 'status', args: {} });
  // Another operator is answered meanwhile, again and again.
  const other = new Raw(t, port).say(operator());
  for (let id = 0; id < 50; id++) {
    other.say({ t: 'call', id, method: 'status', args: {} });
    await other.got(id + 2);
  }
  t.true(calls < COUNT / 2, `${calls} calls were made`);
  raw.socket.resume();
  const answered = (): number => raw.frames.filter((f) => f.t === 'answer').length;
  await raw.until(() => answered() === COUNT || raw.closed);
  t.is(answered(), COUNT);
  t.true(calls > 50);
});

test('calls are answered, and an inner error tells nothing', async (t) => {
  const { address } = await rig(t);
  const client = await operatorClient(t, address);
  t.deepEqual(await client.call('status', {}, 5000), { access: 'operator', method: 'status' });
  await t.throwsAsync(client.call('fail', {}, 5000), { code: 'ERR_INTERNAL', message: 'the server failed' });
});

test('calls in flight on one connection are bounded', async (t) => {
  let release: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (release = resolve));
  const { address } = await rig(t, { call: () => gate });
  const client = await operatorClient(t, address);
  const calls = Array.from({ length: 40 }, () =>
    client.call('slow', {}, 5000).then(
      () => 'ok',
      (e: unknown) => (e as FarkvError).code,
    ),
  );
  t.deepEqual(
    await Promise.all(calls.slice(32)),
    Array.from({ length: 8 }, () => 'ERR_BUSY'),
  );
  release();
  t.deepEqual(
    await Promise.all(calls.slice(0, 32)),
    Array.from({ length: 32 }, () => 'ok'),
  );
});

test('a port in use is named, and nothing stays bound', async (t) => {
  const { port } = await rig(t);
  const error = await t.throwsAsync(
    Listener.open({
      addresses: [
        { host: '127.0.0.1', port: 0 },
        { host: '127.0.0.1', port },
      ],
      tls: undefined,
      places: PLACES,
      handshakeMs: 1000,
      connection: () => undefined,
    }),
    { code: 'ERR_ADDRESS_IN_USE' },
  );
  t.true(error.message.startsWith(`127.0.0.1:${port}: another program listens there`));
  await t.throwsAsync(
    Listener.open({
      addresses: [{ host: '192.0.2.7', port: 0 }],
      tls: undefined,
      places: PLACES,
      handshakeMs: 1000,
      connection: () => undefined,
    }),
    { code: 'ERR_ADDRESS_INVALID' },
  );
});

test('closing cuts every connection', async (t) => {
  const { port, listener, plane } = await rig(t);
  const raw = new Raw(t, port).say(hello());
  await raw.got(2);
  plane.close();
  await listener.close();
  await raw.until(() => raw.closed);
  await t.throwsAsync(once(connect(port, '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' });
});
