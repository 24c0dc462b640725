/**
 * Hostile connections, as a process of their own: so many sockets at once that do one thing to a control port or a
 * peers' port, and come back when they are closed. Loopback only. Each wave is connected first and then sends all at
 * once. The process ends after so many seconds, or with its standard input, and prints what became of its connections
 * as one line of JSON.
 *
 *     node hostile.js 5 '[{"kind":"hellos","address":"127.0.0.1:7400","sockets":500}]'
 */
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { Duplex } from 'node:stream';
import { parseServerAddress } from '../../core/address.js';
import { encodeFrame, type Hello } from '../../core/protocol/index.js';
import { encodeValue } from '../../core/protocol/value.js';
import { Random } from './random.js';

export type HostileKind = 'silent' | 'half' | 'garbage' | 'hellos' | 'tls' | 'guesses' | 'unread' | 'joiners';

export interface Hostility {
  readonly kind: HostileKind;
  readonly address: string;
  readonly sockets: number;
  /** The address that the sockets come from, one of 127.0.0.0/8. */
  readonly from?: string;
  readonly token?: string;
  readonly role?: Hello['role'];
  readonly seed?: number;
}

export interface HostileCounts {
  readonly kind: HostileKind;
  readonly opened: number;
  readonly closed: number;
  readonly failed: number;
  readonly received: number;
}

/** A wave sends when all are connected, or after this. */
const WAVE_MS = 1000;

/** A hello of about 8 KB whose fields cost as much to read as a frame of that size can. */
function largeHello(role: Hello['role']): Uint8Array {
  const body = encodeValue({
    t: 'hello',
    magic: 'farkv',
    versions: [1, 1],
    role,
    token: 'a guess',
    more: Array.from({ length: 4000 }, (_, i) => i % 256),
  });
  const out = new Uint8Array(4 + body.length);
  new DataView(out.buffer).setUint32(0, body.length);
  out.set(body, 4);
  return out;
}

/** The first flight of a TLS client, as it is on the wire. */
async function clientHello(): Promise<Buffer> {
  return await new Promise((resolve) => {
    const wire = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _encoding, done) => {
        resolve(chunk);
        done();
      },
    });
    connectTls({ socket: wire, minVersion: 'TLSv1.3' }).on('error', () => undefined);
  });
}

async function bytesOf({ kind, token, role = 'client', seed = 1 }: Hostility): Promise<() => Uint8Array | undefined> {
  const random = new Random(seed);
  const hello = (shown: string | undefined, join = false): Uint8Array =>
    encodeFrame({
      t: 'hello',
      magic: 'farkv',
      versions: [1, 1],
      role,
      ...(role === 'peer' ? { from: join ? 's9' : 's2', instance: '00'.repeat(8) } : {}),
      ...(join ? { join } : {}),
      ...(shown === undefined ? {} : { token: shown }),
    });
  switch (kind) {
    case 'silent':
      return () => undefined;
    case 'half':
      return () => hello(token).subarray(0, 20);
    case 'garbage':
      return () => random.bytes(4 + random.below(2000));
    case 'hellos': {
      const large = largeHello(role);
      return () => large;
    }
    case 'tls': {
      const first = await clientHello();
      return () => first;
    }
    case 'guesses': {
      let guess = 0;
      return () => hello(`guess ${++guess}`);
    }
    case 'unread': {
      const calls = Array.from({ length: 2000 }, (_, id) => encodeFrame({ t: 'call', id, method: 'status', args: {} }));
      return () => Buffer.concat([hello(token), ...calls]);
    }
    case 'joiners': {
      // As dear to read as the frames of servers may be, and none of them a join.
      const args = Array.from({ length: 260_000 }, () => 1);
      const call = encodeFrame({ t: 'call', id: 1, method: 'join', args });
      const all = Buffer.concat([hello(token, true), ...Array.from({ length: 64 }, () => call)]);
      return () => all;
    }
  }
}

/** Begins; returns what ends it and says what became of it. */
async function begin(hostility: Hostility): Promise<() => HostileCounts> {
  const { host, port } = parseServerAddress(hostility.address);
  const bytes = await bytesOf(hostility);
  let opened = 0;
  let closed = 0;
  let failed = 0;
  let received = 0;
  let ended = false;
  const waiting = new Set<Socket>();
  let connecting = 0;
  const strike = (): void => {
    for (const socket of waiting) {
      const sent = bytes();
      if (sent !== undefined) socket.write(sent);
    }
    waiting.clear();
  };
  const open = (): void => {
    if (ended) return;
    connecting += 1;
    const socket = connectPlain({
      host,
      port,
      ...(hostility.from === undefined ? {} : { localAddress: hostility.from }),
    });
    let connected = false;
    const settled = (): void => {
      connecting -= 1;
      if (connecting === 0) strike();
    };
    socket.once('connect', () => {
      connected = true;
      opened += 1;
      waiting.add(socket);
      settled();
    });
    if (hostility.kind === 'unread') socket.pause();
    else socket.on('data', (chunk: Buffer) => (received += chunk.length));
    socket.on('error', () => undefined);
    socket.once('close', () => {
      waiting.delete(socket);
      if (connected) closed += 1;
      else {
        failed += 1;
        settled();
      }
      setImmediate(open);
    });
  };
  for (let i = 0; i < hostility.sockets; i++) open();
  const waves = setInterval(strike, WAVE_MS);
  return () => {
    ended = true;
    clearInterval(waves);
    return { kind: hostility.kind, opened, closed, failed, received };
  };
}

async function run(seconds: number, hostilities: readonly Hostility[]): Promise<void> {
  const ends = await Promise.all(hostilities.map(begin));
  await new Promise<void>((resolve) => {
    setTimeout(resolve, seconds * 1000);
    process.stdin.on('end', resolve).on('close', resolve).resume();
  });
  const counts = ends.map((end) => end());
  process.stdout.write(`${JSON.stringify(counts)}\n`, () => process.exit(0));
}

void run(Number(process.argv[2]), JSON.parse(process.argv[3] ?? '[]') as Hostility[]);
