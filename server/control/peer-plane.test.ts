import test, { type ExecutionContext } from 'ava';
import { FarkvError } from '../../core/errors.js';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { Frame, Hello } from '../../core/protocol/index.js';
import { hello, Raw } from '../../test/support/control-rig.js';
import { Log } from '../log.js';
import { RecentAddresses } from './addresses.js';
import { Credentials } from './auth.js';
import { Handshakes, type HandshakesOptions } from './handshakes.js';
import { Listener } from './listener.js';
import { Logins } from './logins.js';
import { PeerPlane } from './peer-plane.js';

const RATE = { perSecond: 1000, burst: 1000 } as const;
const OPEN: HandshakesOptions = { strangers: RATE, known: RATE, turn: 10 };

interface Rig {
  readonly port: number;
  readonly arrivals: string[];
  /** Connections that lost their place. */
  readonly evicted: () => number;
}

async function rig(
  t: ExecutionContext,
  handshakes = OPEN,
  isKnown: (source: string) => boolean = () => false,
  strangers = 100,
): Promise<Rig> {
  const arrivals: string[] = [];
  const plane = new PeerPlane({
    serverId: 's1',
    instance: '0a'.repeat(8),
    handshakeMs: 60_000,
    credentials: new Credentials({
      writer: { text: 'secret' },
      operator: { text: "operator's secret" },
      peer: { text: 'peer secret' },
      tenants: [],
    }),
    state: () => EMPTY,
    arrives: ({ from }) => {
      if (from === 'bad') throw new FarkvError('ERR_DATA_DIR', 'another\ncluster');
      arrivals.push(from ?? '');
    },
    message: (from, message) => {
      if (message === 'garbage') throw new FarkvError('ERR_PROTOCOL', 'garbage');
      arrivals.push(`${from}: ${String(message)}`);
    },
    call: (access, method, args, from) =>
      access === 'joiner' && args === 'guess'
        ? Promise.reject(new FarkvError('ERR_UNAUTHORIZED', 'the join token is wrong'))
        : access === 'joiner' && args === 'held'
          ? new Promise(() => undefined)
          : Promise.resolve({ access, method, from }),
    known: new RecentAddresses(10),
    logins: new Logins(() => 0),
    log: new Log('error', () => undefined),
  });
  const listener = await Listener.open({
    addresses: [{ host: '127.0.0.1', port: 0 }],
    tls: undefined,
    places: { strangers, known: 100, isKnown },
    handshakes: new Handshakes(handshakes),
    handshakeMs: 60_000,
    connection: (socket, guest) => plane.accept(socket, guest),
  });
  t.teardown(() => listener.close());
  return { port: listener.bound[0]!.port, arrivals, evicted: () => listener.evicted };
}

const peer = (more: Partial<Hello> = {}): Hello => hello({ role: 'peer', token: 'peer secret', from: 's2', ...more });

test('peers are examined before they speak Raft', async (t) => {
  const { port, arrivals } = await rig(t);
  const bad = new Raw(t, port).say(peer({ from: 'bad' }));
  t.like((await bad.got(1))[0], { ok: false, code: 'ERR_DATA_DIR', message: 'another\\ncluster' });
  const good = new Raw(t, port).say(peer(), { t: 'raft', message: 'm1' }, { t: 'ping', id: 3 });
  t.deepEqual(
    (await good.got(2)).map((f) => f.t),
    ['welcome', 'pong'],
  );
  t.deepEqual(arrivals, ['s2', 's2: m1']);
  good.say({ t: 'raft', message: 'garbage' });
  await good.until(() => good.closed);
});

test('a call of a peer is answered, with frames larger than those of a client', async (t) => {
  const { port, arrivals } = await rig(t);
  const wide: Frame = { t: 'call', id: 1, method: 'm', args: Array.from({ length: 30 }, () => 'y'.repeat(4000)) };
  const frames = await new Raw(t, port).say(peer(), { t: 'raft', message: 'x'.repeat(4000) }, wide).got(2);
  t.deepEqual(frames.at(-1), { t: 'answer', id: 1, ok: true, result: { access: 'peer', method: 'm', from: 's2' } });
  t.is(arrivals.length, 2);
});

test('a server that asks for its place may do nothing else', async (t) => {
  const { port, arrivals } = await rig(t);
  const joiner = new Raw(t, port).say(peer({ join: true }), { t: 'call', id: 1, method: 'join', args: {} });
  t.like((await joiner.got(2)).at(-1), { result: { access: 'joiner' } });
  joiner.say({ t: 'raft', message: 'm1' });
  await joiner.until(() => joiner.closed);
  t.deepEqual(arrivals, ['s2']);
});

test('wrong join tokens make their address wait, no other, and no right one', async (t) => {
  const { port } = await rig(t);
  const call = async (args: unknown, from?: string): Promise<Frame | undefined> => {
    const one = new Raw(t, port, from).say(peer({ join: true }), { t: 'call', id: 1, method: 'join', args });
    return (await one.got(2)).at(-1);
  };
  for (let i = 0; i < 10; i++) t.like(await call('guess'), { ok: false, code: 'ERR_UNAUTHORIZED' });
  t.like(await call('guess'), { ok: false, code: 'ERR_BUSY' });
  t.like(await call('guess', '127.0.0.9'), { ok: false, code: 'ERR_UNAUTHORIZED' });
  t.like(await call('right'), { ok: true });
});

test('a server that asks for its place is a stranger until it has one: it is told little, and may cost little', async (t) => {
  const { port, evicted } = await rig(t, OPEN, () => false, 2);
  const join = (id: number, args: unknown = {}): Frame => ({ t: 'call', id, method: 'join', args });
  const come = (...frames: Frame[]): Raw => new Raw(t, port).say(peer({ join: true }), ...frames);
  const first = come();
  t.deepEqual((await first.got(1))[0], { t: 'welcome', ok: true, version: 1, serverId: 's1', clusterId: '' });
  const many = <T>(length: number, one: T): T[] => Array.from({ length }, () => one);
  for (const frames of [
    [join(1, many(20, 'x'.repeat(1000)))],
    [join(1, many(600, 1))],
    [join(1, 'held'), join(2)],
    many<Frame>(5, { t: 'ping', id: 1 }),
  ]) {
    const one = come(...frames);
    await one.until(() => one.closed || one.frames.length > 5);
    t.true(one.closed);
    t.false(one.frames.some((frame) => frame.t === 'answer'));
  }
  // It has no place of a server: later strangers take the one that it has.
  for (let i = 0; i < 3; i++) await come().got(1);
  await first.until(() => first.closed);
  t.true(evicted() > 0);
  const member = new Raw(t, port).say(peer());
  t.like((await member.got(1))[0], { ok: true, instance: '0a'.repeat(8) });
});

test('only so many joins are in hand at once, however many ask', async (t) => {
  const { port } = await rig(t);
  const ask = (args: string): Raw =>
    new Raw(t, port).say(peer({ join: true }), { t: 'call', id: 1, method: 'join', args });
  for (let i = 0; i < 4; i++) await ask('held').got(1);
  t.like((await ask('right').got(2)).at(-1), { ok: false, code: 'ERR_BUSY' });
  const member = new Raw(t, port).say(peer(), { t: 'call', id: 1, method: 'm', args: {} });
  t.like((await member.got(2)).at(-1), { ok: true });
});

test('nobody but a server with the token of servers is let in', async (t) => {
  const { port, arrivals } = await rig(t);
  const code = async (h: Hello): Promise<string> => {
    const [answer] = await new Raw(t, port).say(h).got(1);
    return answer?.t === 'welcome' && !answer.ok ? answer.code : 'welcome';
  };
  t.is(await code(peer({ token: 'secret' })), 'ERR_UNAUTHORIZED');
  t.is(await code(hello({ role: 'admin', token: "operator's secret" })), 'ERR_CONFIG');
  t.is(await code(hello()), 'ERR_CONFIG');
  t.deepEqual(arrivals, []);
});

test('logins begin no faster than they may, and those of known addresses do not wait for strangers', async (t) => {
  const later: (() => void)[] = [];
  const handshakes: HandshakesOptions = {
    strangers: { perSecond: 0, burst: 2 },
    known: { perSecond: 0, burst: 2 },
    turn: 100,
    now: () => 0,
    later: (serve, ms) => {
      if (ms === 0) setImmediate(serve);
      else later.push(serve);
    },
  };
  const { port, arrivals } = await rig(t, handshakes, (source) => source === '127.0.0.9');
  const strangers = Array.from({ length: 5 }, (_, i) => new Raw(t, port).say(peer({ from: `x${i}` })));
  await Promise.race(strangers.map((one) => one.got(1)));
  t.like((await new Raw(t, port, '127.0.0.9').say(peer()).got(1))[0], { ok: true });
  t.like((await new Raw(t, port, '127.0.0.9').say(peer({ from: 's3' })).got(1))[0], { ok: true });
  t.is(arrivals.filter((from) => from.startsWith('x')).length, 2);
  t.deepEqual(
    arrivals.filter((from) => from.startsWith('s')),
    ['s2', 's3'],
  );
});
