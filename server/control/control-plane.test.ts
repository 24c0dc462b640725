import test, { type ExecutionContext } from 'ava';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { FarkvError } from '../../core/errors.js';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { MetadataState, Shard } from '../../core/metadata/state.js';
import {
  encodeFrame,
  FrameReader,
  MapAssembler,
  SERVER_FRAME_LIMITS,
  type ClientMap,
  type Frame,
  type Hello,
} from '../../core/protocol/index.js';
import { ControlClient } from '../../net/control-client.js';
import { Log } from '../log.js';
import { Credentials } from './auth.js';
import { ControlPlane, type ControlPlaneOptions } from './control-plane.js';
import { Listener } from './listener.js';
import { RENEW_MS } from './tickets.js';

const shard = (n: number, layoutEpoch = 1): Shard => ({
  shard: n,
  owner: 's1',
  worker: 0,
  epoch: 1,
  incarnation: '00'.repeat(8),
  layoutEpoch,
  buckets: 1,
  regions: [],
});
const STATE: MetadataState = {
  ...EMPTY,
  clusterId: 'ab'.repeat(16),
  mapEpoch: 1,
  hashSeed: '01'.repeat(16),
  ticketSecret: '02'.repeat(16),
  voters: ['s1'],
  shards: [shard(0), shard(1)],
};

interface Rig {
  readonly address: string;
  readonly port: number;
  readonly plane: ControlPlane;
  readonly listener: Listener;
  readonly arrivals: string[];
  setState: (state: MetadataState) => void;
}

async function rig(
  t: ExecutionContext,
  options: Partial<ControlPlaneOptions> = {},
  maxConnections = 100,
): Promise<Rig> {
  let state = STATE;
  const arrivals: string[] = [];
  const plane = new ControlPlane({
    serverId: 's1',
    instance: '0a'.repeat(8),
    handshakeMs: 60_000,
    credentials: new Credentials({
      writer: { text: 'secret' },
      reader: { text: 'reading secret' },
      operator: { text: "operator's secret" },
      monitor: { text: "monitor's secret" },
      peer: { text: 'peer secret' },
      tenants: [
        { name: 'a', writer: { text: 'secret of a' }, reader: { text: 'reading secret of a' }, maxClients: 2 },
        { name: 'b', writer: { text: 'secret of b' } },
      ],
    }),
    state: () => state,
    makeTicket: (_secret, client) => Buffer.from(`ticket ${client.toString(16)}`),
    peerArrives: (hello) => {
      if (hello.from === 'bad') throw new FarkvError('ERR_DATA_DIR', 'another\ncluster');
      arrivals.push(hello.from ?? '');
    },
    peerMessage: (from, message) => {
      if (message === 'garbage') throw new FarkvError('ERR_PROTOCOL', 'garbage');
      arrivals.push(`${from}: ${String(message)}`);
    },
    call: (access, method) =>
      method === 'fail' ? Promise.reject(new Error('a secret detail')) : Promise.resolve({ access, method }),
    log: new Log('error', () => undefined),
    ...options,
  });
  const listener = await Listener.open({
    addresses: [{ host: '127.0.0.1', port: 0 }],
    tls: undefined,
    maxConnections,
    handshakeMs: 1000,
    connection: (socket) => plane.accept(socket),
  });
  t.teardown(async () => {
    plane.close();
    await listener.close();
  });
  const port = listener.bound[0]!.port;
  return {
    address: `127.0.0.1:${port}`,
    port,
    plane,
    listener,
    arrivals,
    setState: (next) => {
      state = next;
      plane.stateChanged();
    },
  };
}

/** A raw connection: frames in, frames out. */
class Raw {
  readonly socket: Socket;
  readonly frames: Frame[] = [];
  closed = false;
  readonly #wake: (() => void)[] = [];

  constructor(t: ExecutionContext, port: number) {
    this.socket = connect(port, '127.0.0.1');
    const reader = new FrameReader(SERVER_FRAME_LIMITS);
    const changed = (): void => this.#wake.splice(0).forEach((wake) => wake());
    this.socket.on('data', (chunk: Buffer) => {
      reader.push(chunk, (frame) => this.frames.push(frame) > 0);
      changed();
    });
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => {
      this.closed = true;
      changed();
    });
    t.teardown(() => this.socket.destroy());
  }

  say(...frames: Frame[]): this {
    for (const frame of frames) this.socket.write(encodeFrame(frame));
    return this;
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#wake.push(resolve));
  }

  async got(count: number): Promise<Frame[]> {
    await this.until(() => this.frames.length >= count || this.closed);
    return this.frames;
  }
}

const hello = (more: Partial<Hello> = {}): Hello => ({
  t: 'hello',
  magic: 'farkv',
  versions: [1, 1],
  role: 'client',
  token: 'secret',
  ...more,
});

test('a client gets its id, a ticket and the whole map', async (t) => {
  const { port, plane } = await rig(t);
  const [welcome, map] = await new Raw(t, port).say(hello()).got(2);
  if (welcome?.t !== 'welcome' || !welcome.ok || map?.t !== 'map') return t.fail();
  t.regex(welcome.clientId ?? '', /^[0-9a-f]{16}$/);
  t.is(Buffer.from(welcome.ticket ?? []).toString(), `ticket ${BigInt(`0x${welcome.clientId ?? ''}`).toString(16)}`);
  t.is(map.map.shards.length, 2);
  t.is(map.partial, undefined);
  t.is(plane.clients, 1);
});

test('a client that comes back keeps its id', async (t) => {
  const { port } = await rig(t);
  const [welcome] = await new Raw(t, port).say(hello({ clientId: '00000000000000ff' })).got(1);
  t.like(welcome, { clientId: '00000000000000ff' });
  const [other] = await new Raw(t, port).say(hello({ clientId: '0000000000000000' })).got(1);
  t.true(other?.t === 'welcome' && other.ok && /[1-9a-f]/.test(other.clientId ?? ''));
});

test('changes of one moment are pushed together, and only what changed', async (t) => {
  const { port, setState } = await rig(t);
  const raw = new Raw(t, port).say(hello());
  await raw.got(2);
  const { shards } = STATE;
  setState({ ...STATE, mapEpoch: 2, shards: [shard(0, 2), shards[1]!] });
  setState({ ...STATE, mapEpoch: 3, shards: [shard(0, 3), shards[1]!] });
  await raw.got(3);
  setState({ ...STATE, mapEpoch: 4, shards: [shard(0, 4), shard(1, 2)] });
  const frames = await raw.got(4);
  const maps = new MapAssembler();
  const seen: ClientMap[] = [];
  for (const f of frames) if (f.t === 'map') seen.push(maps.push(f)!);
  t.deepEqual(
    seen.map((m) => m.mapEpoch),
    [1, 3, 4],
  );
  t.deepEqual(
    frames.filter((f) => f.t === 'map').map((f) => f.map.shards.length),
    [2, 1, 2],
  );
  t.deepEqual(seen.at(-1)?.shards, [shard(0, 4), shard(1, 2)]);
});

test('a client that reads nothing gets fewer pushes, and the newest state when it reads again', async (t) => {
  const { port, setState, plane } = await rig(t);
  const raw = new Raw(t, port).say(hello());
  await raw.got(2);
  raw.socket.pause();
  const bulk = (layoutEpoch: number): Shard => ({
    ...shard(0, layoutEpoch),
    regions: Array.from({ length: 4000 }, (_, i) => ({
      provider: 'tcp',
      kind: 'heap',
      segment: i,
      tag: layoutEpoch,
      bytes: 4096,
      remoteAddress: '1',
      rkey: '18446744073709551615',
    })),
  });
  const epochs = (of: Raw): number[] => of.frames.flatMap((f) => (f.t === 'map' ? [f.map.mapEpoch] : []));
  // Another client, which reads, says when a change was pushed.
  const reads = new Raw(t, port).say(hello());
  await reads.got(2);
  const pushes = 60;
  for (let i = 2; i <= pushes; i++) {
    setState({ ...STATE, mapEpoch: i, shards: [bulk(i), shard(1)] });
    await reads.until(() => epochs(reads).at(-1) === i);
  }
  t.is(plane.clients, 2);
  raw.socket.resume();
  await raw.until(() => epochs(raw).at(-1) === pushes);
  t.true(epochs(raw).length < epochs(reads).length, `${epochs(raw).length} pushes`);
});

test('a client that takes nothing for long is dropped', async (t) => {
  const { port, setState, plane } = await rig(t, { pace: { renewMs: 60_000, stalledMs: 50 } });
  const raw = new Raw(t, port).say(hello());
  await raw.got(2);
  raw.socket.pause();
  const reads = new Raw(t, port).say(hello());
  await reads.got(2);
  const bulk = (layoutEpoch: number): Shard => ({
    ...shard(0, layoutEpoch),
    regions: Array.from({ length: 8000 }, (_, i) => ({
      provider: 'tcp',
      kind: 'heap',
      segment: i,
      tag: layoutEpoch,
      bytes: 4096,
      remoteAddress: '1',
      rkey: '18446744073709551615',
    })),
  });
  for (let i = 2; plane.clients > 1; i++) {
    setState({ ...STATE, mapEpoch: i, shards: [bulk(i), shard(1)] });
    await reads.until(() => reads.frames.some((f) => f.t === 'map' && f.map.mapEpoch === i));
  }
  t.false(reads.closed);
});

test('a new ticket comes before the old one has expired, and changes nothing of the map', async (t) => {
  const expiries: number[] = [];
  const { port } = await rig(t, {
    pace: { renewMs: 20, stalledMs: 60_000 },
    makeTicket: (_secret, _client, expiresMs) => {
      expiries.push(expiresMs);
      return Buffer.alloc(40);
    },
  });
  const frames = await new Raw(t, port).say(hello()).got(5);
  const maps = new MapAssembler();
  const seen = frames.flatMap((f) => (f.t === 'map' ? [maps.push(f)] : []));
  for (const map of seen) t.deepEqual(map, seen[0]);
  t.true(frames.slice(2).every((f) => f.t === 'map' && f.ticket !== undefined));
  t.true(expiries.every((e) => e > Date.now() + 2 * RENEW_MS - 60_000));
});

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

test('calls are answered, and an inner error tells nothing', async (t) => {
  const { address } = await rig(t);
  const client = await ControlClient.open({
    address,
    trust: undefined,
    timeoutMs: 5000,
    hello: { role: 'admin', token: "operator's secret" },
  });
  t.teardown(() => client.close());
  t.deepEqual(await client.call('status', {}, 5000), { access: 'operator', method: 'status' });
  await t.throwsAsync(client.call('fail', {}, 5000), { code: 'ERR_INTERNAL', message: 'the server failed' });
});

test('calls in flight on one connection are bounded', async (t) => {
  let release: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (release = resolve));
  const { address } = await rig(t, { call: () => gate });
  const client = await ControlClient.open({
    address,
    trust: undefined,
    timeoutMs: 5000,
    hello: { role: 'admin', token: "operator's secret" },
  });
  t.teardown(() => client.close());
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
