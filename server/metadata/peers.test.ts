import test from 'ava';
import { createServer, type Server as TcpServer, type Socket } from 'node:net';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AddressInfo } from 'node:net';
import { FarkvError, type ErrorCode } from '../../core/errors.js';
import { raftIdOf } from '../../core/metadata/placement.js';
import { EMPTY } from '../../core/metadata/reduce.js';
import type { RaftMessage } from '../../core/raft/index.js';
import type { MetadataState, Server } from '../../core/metadata/state.js';
import {
  encodeFrame,
  FrameReader,
  PEER_FRAME_LIMITS,
  type Frame,
  type Hello,
  type Welcome,
} from '../../core/protocol/index.js';
import type { KnownServer } from '../data-directory.js';
import { isSoon } from '../../test/support/ends.js';
import { Tokens } from '../control/auth.js';
import { Log } from '../log.js';
import { Peers, type PeersOptions } from './peers.js';

const known = (id: string, ...addresses: string[]): KnownServer => ({
  id,
  raftId: raftIdOf(id),
  addresses: addresses.length > 0 ? addresses : ['127.0.0.1:1'],
});
const CLUSTER = 'ab'.repeat(16);
const instance = (n: number): string => n.toString(16).padStart(16, '0');

interface Made {
  readonly peers: Peers;
  readonly outcast: FarkvError[];
  /** Looked at whenever something was logged. */
  readonly until: (condition: () => boolean) => Promise<void>;
}

function make(options: Partial<PeersOptions> = {}): Made {
  const outcast: FarkvError[] = [];
  const waiting: (() => void)[] = [];
  const wake = (): void => waiting.splice(0).forEach((one) => one());
  const peers = new Peers({
    id: 's1',
    instance: instance(1),
    tokens: new Tokens({ text: 'secret' }),
    trust: undefined,
    timeoutMs: 2000,
    log: new Log('debug', wake),
    known: ['s1', 's2', 's3'].map((id) => known(id)),
    told: { of: new Map(), any: [] },
    state: () => EMPTY,
    clusterId: () => CLUSTER,
    up: () => undefined,
    gone: () => undefined,
    outcast: (error) => {
      outcast.push(error);
      wake();
    },
    ...options,
  });
  const until = async (condition: () => boolean): Promise<void> => {
    while (!condition()) await new Promise<void>((resolve) => waiting.push(resolve));
  };
  return { peers, outcast, until };
}

const hello = (more: Partial<Hello> = {}): Hello => ({
  t: 'hello',
  magic: 'farkv',
  versions: [1, 1],
  role: 'peer',
  from: 's2',
  instance: instance(2),
  voters: ['s1', 's2', 's3'],
  clusterId: CLUSTER,
  ...more,
});
const refused = (code: ErrorCode, message: RegExp) => ({ instanceOf: FarkvError, code, message });

test('a server of this cluster is let in, also before either knows the cluster', (t) => {
  t.notThrows(() => make().peers.arrives(hello()));
  t.notThrows(() => make().peers.arrives(hello({ clusterId: '' })));
  t.notThrows(() => make({ clusterId: () => '' }).peers.arrives(hello()));
});

test('strangers, namesakes and servers with another list are turned away', (t) => {
  const { peers } = make();
  t.throws(
    () => peers.arrives({ t: 'hello', magic: 'farkv', versions: [1, 1], role: 'peer' }),
    refused('ERR_CONFIG', /not one of the servers/),
  );
  t.throws(() => peers.arrives(hello({ from: 's9' })), refused('ERR_CONFIG', /s9 is not one of/));
  t.notThrows(() => peers.arrives(hello({ from: 's1', instance: instance(1) })), 'it came to itself');
  t.throws(() => peers.arrives(hello({ from: 's1' })), refused('ERR_CONFIG', /two servers have the same --id/));
  t.throws(
    () => peers.arrives(hello({ voters: ['s1', 's2'] })),
    refused('ERR_CONFIG', /must be the same for every server/),
  );
});

test('a server of another cluster is turned away', (t) => {
  t.throws(
    () => make().peers.arrives(hello({ clusterId: 'cd'.repeat(16) })),
    refused('ERR_DATA_DIR', /belongs to cluster/),
  );
});

test('a server that does not name its data directory is turned away', (t) => {
  const nameless: Hello = {
    t: 'hello',
    magic: 'farkv',
    versions: [1, 1],
    role: 'peer',
    from: 's2',
    clusterId: CLUSTER,
  };
  t.throws(() => make().peers.arrives(nameless), refused('ERR_PROTOCOL', /does not name/));
});

test('nobody takes the name of a known server before this one has read its log', (t) => {
  const { peers } = make({
    known: ['s1', 's2', 's3'].map((id) => ({ ...known(id), instance: instance(Number(id[1])) })),
  });
  t.throws(() => peers.arrives(hello({ instance: instance(7) })), refused('ERR_DATA_DIR', /another data directory/));
  t.notThrows(() => peers.arrives(hello()));
});

test('a server that lost its data directory is turned away: as long as this one lives, and by what the metadata remembers', (t) => {
  const { peers } = make();
  peers.arrives(hello());
  t.notThrows(() => peers.arrives(hello()));
  t.throws(() => peers.arrives(hello({ instance: instance(7) })), refused('ERR_DATA_DIR', /another data directory/));
  const member = {
    id: 's2',
    raftId: 2,
    incarnation: instance(0),
    control: [],
    fabric: [],
    memoryBytes: 1,
    instance: instance(2),
  };
  const state: MetadataState = { ...EMPTY, members: new Map([['s2', member]]) };
  const later = make({ state: () => state }).peers;
  t.throws(() => later.arrives(hello({ instance: instance(7) })), refused('ERR_DATA_DIR', /another data directory/));
  t.notThrows(() => later.arrives(hello()));
});

/** Another server's port for servers, as far as a welcome goes. */
async function fakePeer(
  t: { teardown: (f: () => void) => void },
  welcome: Welcome | ((hello: Hello) => Welcome),
  got: Frame[] = [],
): Promise<string> {
  const server: TcpServer = createServer((socket) => {
    const reader = new FrameReader(PEER_FRAME_LIMITS);
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) =>
      reader.push(chunk, (frame) => {
        got.push(frame);
        if (frame.t === 'hello') socket.write(encodeFrame(typeof welcome === 'function' ? welcome(frame) : welcome));
        if (frame.t === 'call')
          socket.write(encodeFrame({ t: 'answer', id: frame.id, ok: true, result: frame.method }));
        server.emit('got');
        return true;
      }),
    );
    t.teardown(() => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const accepted = (serverId: string, more: Partial<Extract<Welcome, { ok: true }>> = {}): Welcome => ({
  t: 'welcome',
  ok: true,
  version: 1,
  serverId,
  clusterId: CLUSTER,
  instance: instance(2),
  ...more,
});
const rejected: Welcome = { t: 'welcome', ok: false, code: 'ERR_UNAUTHORIZED', message: 'no', versions: [1, 1] };

test('a server has ended when nobody listens where it did; a connection that breaks and can be made again says nothing', async (t) => {
  const opened: Socket[] = [];
  const listener = createServer((socket) => {
    opened.push(socket);
    const reader = new FrameReader(PEER_FRAME_LIMITS);
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) =>
      reader.push(chunk, (frame) => {
        if (frame.t === 'hello') socket.write(encodeFrame(accepted('s2')));
        return true;
      }),
    );
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const ended: number[] = [];
  let ups = 0;
  const states = new EventEmitter();
  const { peers } = make({
    known: [known('s1'), known('s2', `127.0.0.1:${(listener.address() as AddressInfo).port}`)],
    up: () => states.emit('up', ++ups),
    gone: (raftId) => states.emit('gone', ended.push(raftId)),
  });
  t.teardown(() => {
    peers.close();
    listener.close();
    for (const socket of opened) socket.destroy();
  });
  const first = once(states, 'up');
  peers.start(['127.0.0.1:1']);
  await first;
  const again = once(states, 'up');
  for (const socket of opened) socket.destroy();
  await again;
  t.deepEqual(ended, []);
  const gone = once(states, 'gone');
  listener.close();
  for (const socket of opened) socket.destroy();
  await gone;
  t.is(ended[0], raftIdOf('s2'));
  t.is(ups, 2);
});

test('a way to another server carries calls and Raft messages', async (t) => {
  const got: Frame[] = [];
  const address = await fakePeer(t, accepted('s2'), got);
  const { peers, until } = make({ known: [known('s1'), known('s2', '127.0.0.1:1', address)] });
  t.teardown(() => peers.close());
  await t.throwsAsync(peers.call('s2', 'x', {}, 1000), { code: 'ERR_DISCONNECTED' });
  peers.start(['127.0.0.1:1']);
  await until(() => peers.reach.connected.length > 0);
  peers.send({ type: 'stale', from: raftIdOf('s1'), to: raftIdOf('s2'), term: 3 }, true);
  t.is(await peers.call('s2', 'hello?', {}, 5000), 'hello?');
  t.deepEqual(
    got.map((f) => f.t),
    ['hello', 'call', 'raft', 'call'],
  );
  t.like(got[1], { method: 'is-at', args: { peer: ['127.0.0.1:1'] } }, 'it may have another address than before');
  t.like(got[0], {
    role: 'peer',
    from: 's1',
    token: 'secret',
    voters: ['s1', 's2'],
    clusterId: CLUSTER,
    instance: instance(1),
  });
});

test('a server that a majority refuses cannot go on, one refusal alone is nothing', async (t) => {
  const { peers, outcast, until } = make({
    known: [known('s1'), known('s2', await fakePeer(t, rejected)), known('s3', await fakePeer(t, accepted('s3')))],
  });
  t.teardown(() => peers.close());
  peers.start(['127.0.0.1:1']);
  await until(() => peers.reach.connected.length > 0);
  t.deepEqual(outcast, []);

  const alone = make({
    clusterId: () => '',
    known: [known('s1'), known('s2', await fakePeer(t, rejected)), known('s3', await fakePeer(t, accepted('s9')))],
  });
  t.teardown(() => alone.peers.close());
  alone.peers.start(['127.0.0.1:1']);
  await alone.until(() => alone.outcast.length > 0);
  t.true(['ERR_UNAUTHORIZED', 'ERR_CONFIG'].includes(alone.outcast[0]?.code ?? ''));
});

test('servers that have exchanged their addresses find each other, and none ends for that', async (t) => {
  const [own, third, second] = await Promise.all([
    fakePeer(t, accepted('s1', { instance: instance(1) })),
    fakePeer(t, accepted('s3', { instance: instance(3) })),
    fakePeer(t, accepted('s2')),
  ]);
  const { peers, outcast, until } = make({ known: [known('s1'), known('s2', third, second), known('s3', own)] });
  t.teardown(() => peers.close());
  peers.start(['127.0.0.1:1']);
  await until(() => peers.reach.connected.length === 2 || outcast.length > 0);
  t.deepEqual(outcast, []);
});

test('a server that says where it is now is looked for there, too', async (t) => {
  const address = await fakePeer(t, accepted('s2'));
  const { peers, until } = make({ known: [known('s1'), known('s2')] });
  t.teardown(() => peers.close());
  peers.start(['127.0.0.1:1']);
  peers.isAt('s9', [address]);
  peers.isAt('s2', ['127.0.0.1:2']);
  peers.isAt('s2', [address]);
  await until(() => peers.reach.connected.includes('s2'));
  t.pass();
});

test('a server is looked for where the operator says now, then where it was, then where any is said to be', async (t) => {
  const asked: Frame[] = [];
  const before = await fakePeer(t, accepted('s3', { instance: instance(3) }), asked);
  const now = await fakePeer(t, accepted('s2'));
  const { peers, until } = make({
    known: [known('s1'), known('s2', before), known('s3')],
    told: { of: new Map([['s2', [now]]]), any: [before] },
  });
  t.teardown(() => peers.close());
  peers.start(['127.0.0.1:1']);
  await until(() => peers.reach.connected.length === 2);
  t.deepEqual(
    asked.map((f) => f.t),
    ['hello'],
    's3 alone was looked for there',
  );
});

/** Tokens of a file, which can be written anew: then they are read anew, whatever the time. */
function tokenFile(
  t: { teardown: (f: () => void) => void },
  ...first: string[]
): { readonly tokens: Tokens; readonly write: (...lines: string[]) => void } {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-peers-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, 'tokens');
  const write = (...lines: string[]): void => writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 });
  write(...first);
  let nowMs = 0;
  return { tokens: new Tokens({ file }, { nowMs: () => (nowMs += 10_000) }), write };
}

test('while tokens are exchanged, a server that is refused with one shows the next', async (t) => {
  const tokens = tokenFile(t, 'old', 'new').tokens;
  const wants = (token: string, no: Welcome) => (hello: Hello) => (hello.token === token ? accepted('s2') : no);
  // The second one was told to wait, since others of its address have shown many wrong ones.
  for (const no of [rejected, { ...rejected, code: 'ERR_BUSY' } as const]) {
    const { peers, outcast, until } = make({
      known: [known('s1'), known('s2', await fakePeer(t, wants('new', no)))],
      tokens,
    });
    t.teardown(() => peers.close());
    peers.start(['127.0.0.1:1']);
    await until(() => peers.reach.connected.length > 0 || outcast.length > 0);
    t.deepEqual(outcast, [], 'one refused token is no refusal');
  }

  const refusedWithAll = make({
    known: [known('s1'), known('s2', await fakePeer(t, wants('newest', rejected)))],
    tokens,
  });
  t.teardown(() => refusedWithAll.peers.close());
  refusedWithAll.peers.start(['127.0.0.1:1']);
  await refusedWithAll.until(() => refusedWithAll.outcast.length > 0);
  t.is(refusedWithAll.outcast[0]?.code, 'ERR_UNAUTHORIZED');
});

test('a connection ends when the token that it was dialed with is taken out of the file, and is dialed with another', async (t) => {
  const got: Frame[] = [];
  const { tokens, write } = tokenFile(t, 'old', 'new');
  // The other end answers no pings: its silence must not end the connection meanwhile.
  const timeoutMs = 600_000;
  const address = await fakePeer(t, accepted('s2'), got);
  const { peers, until } = make({ known: [known('s1'), known('s2', address)], tokens, timeoutMs });
  t.teardown(() => peers.close());
  peers.start(['127.0.0.1:1']);
  const shown = (): (string | undefined)[] => got.flatMap((frame) => (frame.t === 'hello' ? [frame.token] : []));
  await until(() => peers.reach.connected.length > 0);
  write('new', 'newest');
  t.true(await isSoon(until(() => shown().length > 1)));
  t.deepEqual(shown(), ['old', 'new']);
});

const stateOf = (servers: readonly Server[], voters: readonly string[]): MetadataState => ({
  ...EMPTY,
  clusterId: CLUSTER,
  firstServers: ['s1', 's2', 's3'],
  servers,
  voters,
});
const server = (id: string, n: number, raftId = raftIdOf(id), peer = ['127.0.0.1:1']): Server => ({
  id,
  raftId,
  instance: instance(n),
  control: [],
  peer,
  draining: false,
});

test('the metadata says who the servers are, and links come and go with it', async (t) => {
  const got: Frame[] = [];
  const address = await fakePeer(t, accepted('s4', { instance: instance(4) }), got);
  let state = EMPTY;
  const { peers, until } = make({ state: () => state });
  t.teardown(() => peers.close());
  peers.start(['127.0.0.1:1']);
  t.throws(
    () => peers.arrives(hello({ from: 's4', instance: instance(4), voters: [] })),
    refused('ERR_CONFIG', /s4 is not one of/),
  );
  state = stateOf([server('s1', 1), server('s2', 2), server('s4', 4, 44, [address])], ['s1', 's2']);
  peers.refresh();
  t.notThrows(() => peers.arrives(hello({ from: 's4', instance: instance(4), voters: ['anything'] })));
  await until(() => peers.reach.connected.includes('s4'));
  t.is(peers.idOf(44), 's4');
  t.is(peers.raftIdOf('s4'), 44);
  t.deepEqual(peers.voters, ['s1', 's2']);
  t.false('voters' in got[0]!);
  state = stateOf([server('s1', 1), server('s2', 2)], ['s1', 's2']);
  peers.refresh();
  t.deepEqual(peers.reach.connected, []);
  t.is(peers.raftIdOf('s4'), undefined);
  t.throws(
    () => peers.arrives(hello({ from: 's4', instance: instance(4) })),
    refused('ERR_REMOVED', /is not one of.*--join and an empty data directory/),
  );
  t.throws(
    () => peers.arrives(hello({ from: 's4', instance: instance(4), clusterId: '' })),
    refused('ERR_CONFIG', /is not one of/),
    'a directory that was never in this cluster',
  );
});

test('a server that the cluster was made with and that has not come yet must have been started with the same list', async (t) => {
  const got: Frame[] = [];
  const address = await fakePeer(t, accepted('s3', { instance: instance(3), clusterId: '' }), got);
  const coming: Server = { id: 's3', raftId: raftIdOf('s3'), control: [], draining: false };
  // s4 came since.
  const state = stateOf([server('s1', 1), server('s2', 2), coming, server('s4', 4, 44, [])], ['s1', 's2', 's3']);
  const { peers, until } = make({ state: () => state, known: [known('s1'), known('s2'), known('s3', address)] });
  t.teardown(() => peers.close());
  t.deepEqual(peers.ids, ['s1', 's2', 's3', 's4']);
  const first = hello({ from: 's3', instance: instance(3), clusterId: '' });
  t.throws(
    () => peers.arrives({ ...first, voters: ['s1', 's3'] }),
    refused('ERR_CONFIG', /must be the same for every server/),
  );
  t.notThrows(() => peers.arrives(first));
  peers.start(['127.0.0.1:1']);
  await until(() => peers.reach.connected.includes('s3'));
  // It compares the lists too.
  t.like(got[0], { voters: ['s1', 's2', 's3'] });
});

test('a server that lost its directory is told the command, and after it comes under its old name with another number', (t) => {
  let state = stateOf([server('s1', 1), server('s2', 2)], ['s1', 's2']);
  const { peers } = make({ state: () => state });
  t.throws(() => peers.arrives(hello({ instance: instance(7) })), refused('ERR_DATA_DIR', /farkv member remove s2/));
  t.notThrows(() => peers.arrives(hello({ instance: instance(7), join: true, clusterId: '' })));
  state = stateOf([server('s1', 1), server('s2', 7, 77)], ['s1']);
  peers.refresh();
  t.notThrows(() => peers.arrives(hello({ instance: instance(7) })));
  t.throws(() => peers.arrives(hello({ instance: instance(2) })), refused('ERR_DATA_DIR', /another data directory/));
});

test('a server of another cluster cannot join', (t) => {
  t.throws(
    () => make().peers.arrives(hello({ from: 's9', join: true, clusterId: 'cd'.repeat(16) })),
    refused('ERR_DATA_DIR', /belongs to cluster/),
  );
});

test('messages that were lost on the way to a server are counted on when it has another address', (t) => {
  let state = stateOf([server('s1', 1), server('s2', 2, 22)], ['s1', 's2']);
  const { peers } = make({ state: () => state });
  const lost = (): number | undefined => peers.figures.find(({ id }) => id === 's2')?.lostMessages;
  const message: RaftMessage = { type: 'append-accept', from: 1, to: 22, term: 1, index: 1 };
  t.is(lost(), 0);
  for (let i = 0; i < 3; i++) peers.send(message, false);
  t.is(lost(), 3);
  state = stateOf([server('s1', 1), server('s2', 2, 22, ['127.0.0.1:2'])], ['s1', 's2']);
  peers.refresh();
  t.is(lost(), 3);
  peers.send(message, false);
  t.is(lost(), 4);
  state = stateOf([server('s1', 1)], ['s1']);
  peers.refresh();
  t.is(lost(), undefined);
});
