import test, { type ExecutionContext } from 'ava';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { FarkvError } from '../../core/errors.js';
import { EMPTY } from '../../core/metadata/reduce.js';
import { encodeFrame, type Frame, type Hello } from '../../core/protocol/index.js';
import { ControlClient } from '../../net/control-client.js';
import { hello, Raw, rig, shard, STATE } from '../../test/support/control-rig.js';
import { Listener } from './listener.js';

test('versions that do not overlap are refused with what is spoken here', async (t) => {
  const { port } = await rig(t);
  const raw = new Raw(t, port).say(hello({ versions: [7, 9] }));
  t.like((await raw.got(1))[0], { ok: false, code: 'ERR_PROTOCOL_VERSION', versions: [1, 1] });
  await raw.until(() => raw.closed);
  t.like((await new Raw(t, port).say(hello({ versions: [1, 9] })).got(1))[0], { ok: true, version: 1 });
});

test("a wrong token and a missing one are refused, also the clients' token for a peer", async (t) => {
  const { port, arrivals } = await rig(t);
  const without: Hello = { t: 'hello', magic: 'farkv', versions: [1, 1], role: 'client' };
  for (const h of [
    hello({ token: 'wrong' }),
    without,
    hello({ token: '' }),
    hello({ role: 'admin', token: "operator's secre" }),
    // Of another role each.
    hello({ role: 'admin', token: 'secret' }),
    hello({ role: 'admin', token: 'peer secret' }),
    hello({ role: 'peer', from: 's2', token: "operator's secret" }),
    hello({ token: "operator's secret" }),
    hello({ token: 'peer secret' }),
    hello({ role: 'peer', from: 's2' }),
  ]) {
    t.like((await new Raw(t, port).say(h).got(1))[0], { ok: false, code: 'ERR_UNAUTHORIZED' });
  }
  t.deepEqual(arrivals, []);
});

const TENANTS = { ...STATE, tenants: [{ name: 'a', shards: 1 }] };

test('a token opens one tenant: its clients get its shards, a ticket for it, and what changes there', async (t) => {
  const made: number[] = [];
  const { port, setState } = await rig(t, {
    makeTicket: (_secret, _client, _expires, tenant) => {
      made.push(tenant);
      return Buffer.alloc(40, tenant);
    },
  });
  setState(TENANTS);
  const [ofAll, ofA] = [new Raw(t, port).say(hello()), new Raw(t, port).say(hello({ token: 'secret of a' }))];
  const shardsOf = (frames: Frame[]): number[][] =>
    frames.flatMap((f) => (f.t === 'map' ? [f.map.shards.map((s) => s.shard)] : []));
  t.deepEqual(shardsOf(await ofAll.got(2)), [[0]]);
  t.deepEqual(shardsOf(await ofA.got(2)), [[1]]);
  t.deepEqual(made.sort(), [0, 1]);
  const [welcome] = ofA.frames;
  t.deepEqual(welcome?.t === 'welcome' && welcome.ok ? [...new Set(welcome.ticket)] : [], [1]);
  setState({ ...TENANTS, mapEpoch: 2, shards: [shard(0, 2), STATE.shards[1]!] });
  t.deepEqual(shardsOf(await ofAll.got(3)), [[0], [0]]);
  t.deepEqual(shardsOf(await ofA.got(3)), [[1], []]);
});

test('the token of a tenant is none for operators, servers, or a cluster that does not have the domain', async (t) => {
  const { port, setState, arrivals } = await rig(t);
  setState(TENANTS);
  for (const h of [
    hello({ role: 'admin', token: 'secret of a' }),
    hello({ role: 'peer', from: 's2', token: 'secret of a' }),
    hello({ token: 'secret of b' }),
    hello({ token: 'secret of' }),
  ]) {
    t.like((await new Raw(t, port).say(h).got(1))[0], { ok: false, code: 'ERR_UNAUTHORIZED' });
  }
  t.deepEqual(arrivals, []);
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
  const flags: number[] = [];
  const { port, setState } = await rig(t, {
    makeTicket: (_secret, _client, _expires, tenant, of) => {
      flags.push(of);
      return Buffer.alloc(40, tenant);
    },
  });
  setState(TENANTS);
  for (const token of ['secret', 'reading secret', 'secret of a', 'reading secret of a'])
    t.like((await new Raw(t, port).say(hello({ token })).got(2))[0], { ok: true });
  t.deepEqual(flags, [3, 1, 3, 1]);
  const call: Frame = { t: 'call', id: 1, method: 'any', args: {} };
  const as = async (more: Partial<Hello>): Promise<unknown> => {
    const frames = await new Raw(t, port).say(hello(more), call).got(2);
    return frames.find((f) => f.t === 'answer');
  };
  t.like(await as({ role: 'admin', token: "operator's secret" }), { result: { access: 'operator' } });
  t.like(await as({ role: 'admin', token: "monitor's secret" }), { result: { access: 'monitor' } });
  t.like(await as({ role: 'peer', token: 'peer secret', from: 's2' }), { result: { access: 'peer' } });
  t.like(await as({ role: 'peer', token: 'peer secret', from: 's2', join: true }), { result: { access: 'joiner' } });
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
  t.like((await new Raw(t, port).say(hello({ role: 'admin', token: "operator's secret" })).got(1))[0], {
    ok: true,
    clusterId: '',
  });
});

test('peers are examined, and only they may speak Raft', async (t) => {
  const { port, arrivals } = await rig(t);
  const peer = hello({ role: 'peer', token: 'peer secret', from: 's2' });
  const bad = new Raw(t, port).say({ ...peer, from: 'bad' });
  t.like((await bad.got(1))[0], { ok: false, code: 'ERR_DATA_DIR', message: 'another cluster' });
  const good = new Raw(t, port).say(peer, { t: 'raft', message: 'm1' }, { t: 'ping', id: 3 });
  t.deepEqual(
    (await good.got(2)).map((f) => f.t),
    ['welcome', 'pong'],
  );
  t.deepEqual(arrivals, ['s2', 's2: m1']);
  good.say({ t: 'raft', message: 'garbage' });
  await good.until(() => good.closed);
  const client = new Raw(t, port).say(hello(), { t: 'raft', message: 'm2' });
  await client.until(() => client.closed);
  t.deepEqual(arrivals, ['s2', 's2: m1']);
});

test('peers may send more than clients', async (t) => {
  const { port, arrivals } = await rig(t);
  const big: Frame = { t: 'raft', message: 'x'.repeat(4000) };
  const wide: Frame = { t: 'call', id: 1, method: 'm', args: Array.from({ length: 30 }, () => 'y'.repeat(4000)) };
  const peer = new Raw(t, port).say(hello({ role: 'peer', token: 'peer secret', from: 's2' }), big, wide);
  t.is((await peer.got(2)).at(-1)?.t, 'answer');
  t.is(arrivals.length, 2);
  const client = new Raw(t, port).say(hello(), wide);
  await client.until(() => client.closed);
  t.false(client.frames.some((f) => f.t === 'answer'));
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

test('more connections than allowed are turned away, and there is room again when one leaves', async (t) => {
  const { port, listener } = await rig(t, {}, 2);
  const first = new Raw(t, port).say(hello());
  const second = new Raw(t, port).say(hello());
  await Promise.all([first.got(2), second.got(2)]);
  const third = new Raw(t, port).say(hello());
  await third.until(() => third.closed);
  t.deepEqual(third.frames, []);
  t.is(listener.refused, 1);
  first.socket.destroy();
  for (;;) {
    const again = new Raw(t, port).say(hello());
    if ((await again.got(2)).length === 2) break;
  }
  t.pass();
});

async function admin(t: ExecutionContext, address: string): Promise<ControlClient> {
  const hello = { role: 'admin', token: "operator's secret" } as const;
  const client = await ControlClient.open({ address, trust: undefined, timeoutMs: 5000, hello });
  t.teardown(() => client.close());
  return client;
}

test('calls are answered, and an inner error tells nothing', async (t) => {
  const { address } = await rig(t);
  const client = await admin(t, address);
  t.deepEqual(await client.call('status', {}, 5000), { access: 'operator', method: 'status' });
  await t.throwsAsync(client.call('fail', {}, 5000), { code: 'ERR_INTERNAL', message: 'the server failed' });
});

test('calls in flight on one connection are bounded', async (t) => {
  let release: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (release = resolve));
  const { address } = await rig(t, { call: () => gate });
  const client = await admin(t, address);
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
      maxConnections: 9,
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
      maxConnections: 9,
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
