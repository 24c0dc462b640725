import test from 'ava';
import { FarkvError } from '../errors.js';
import { seeded } from '../../test/support/random.js';
import { encodeFrame, FrameReader } from './frame.js';
import { CLIENT_FRAME_LIMITS, PEER_FRAME_LIMITS } from './limits.js';
import type { Frame } from './messages.js';
import { encodeValue } from './value.js';

const refused = { instanceOf: FarkvError, code: 'ERR_PROTOCOL' };
const hello: Frame = { t: 'hello', magic: 'farkv', versions: [1, 1], role: 'client', token: 'secret' };
const ping = (id: number): Frame => ({ t: 'ping', id });

function withLength(body: Uint8Array, length = body.length): Uint8Array {
  const out = Buffer.alloc(4 + body.length);
  out.writeUInt32BE(length);
  out.set(body, 4);
  return out;
}

test('frames come out whole and in order however the stream is cut', (t) => {
  const random = seeded(t, import.meta.filename);
  const frames: Frame[] = [hello];
  for (let i = 0; i < 300; i++)
    frames.push(random.below(3) === 0 ? { t: 'raft', message: 'm'.repeat(random.below(3000)) } : ping(i));
  const stream = Buffer.concat(frames.map(encodeFrame));
  for (const piece of [1, 3, 50, 1000, 20_000, stream.length]) {
    const reader = new FrameReader(CLIENT_FRAME_LIMITS);
    const got: Frame[] = [];
    // The same memory is used for every chunk: the reader must not rely on what it was given.
    const chunk = Buffer.alloc(piece);
    for (let at = 0; at < stream.length; at += piece) {
      const n = stream.copy(chunk, 0, at);
      reader.push(chunk.subarray(0, n), (f) => got.push(f) > 0);
      chunk.fill(0xc1);
    }
    t.deepEqual(got, frames);
    t.true(reader.atBoundary);
  }
});

test('a frame over the limit is refused by its length alone', (t) => {
  const reader = new FrameReader(CLIENT_FRAME_LIMITS);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(CLIENT_FRAME_LIMITS.bytes + 1);
  t.throws(() => reader.push(length, () => true), refused);
});

test('an empty frame, an HTTP request and a TLS hello are refused', (t) => {
  for (const bytes of [
    Buffer.alloc(4),
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    Buffer.from('16030100c8010000c40303', 'hex'),
  ]) {
    t.throws(() => new FrameReader(CLIENT_FRAME_LIMITS).push(bytes, () => true), refused);
  }
});

test('the limit can be raised by the frame before', (t) => {
  const reader = new FrameReader(CLIENT_FRAME_LIMITS);
  const big: Frame = { t: 'raft', message: new Uint8Array(100_000) };
  const got: string[] = [];
  const both = Buffer.concat([encodeFrame(hello), encodeFrame(big)]);
  reader.push(both, (f) => {
    got.push(f.t);
    if (f.t === 'hello') reader.limits = PEER_FRAME_LIMITS;
    return true;
  });
  t.deepEqual(got, ['hello', 'raft']);
  t.throws(() => new FrameReader(CLIENT_FRAME_LIMITS).push(both, () => true), refused);
});

test('delivery stops when it is told to', (t) => {
  const got: Frame[] = [];
  new FrameReader(CLIENT_FRAME_LIMITS).push(Buffer.concat([encodeFrame(ping(1)), encodeFrame(ping(2))]), (f) => {
    got.push(f);
    return false;
  });
  t.deepEqual(got, [ping(1)]);
});

test('frames of every kind are checked field by field', (t) => {
  const bad: unknown[] = [
    1,
    null,
    [],
    {},
    { t: 'nonsense' },
    { t: 'ping' },
    { t: 'ping', id: -1 },
    { t: 'ping', id: 1.5 },
    { t: 'ping', id: '1' },
    { ...hello, magic: 'redis' },
    { ...hello, versions: [2, 1] },
    { ...hello, versions: [1] },
    { ...hello, role: 'root' },
    { ...hello, token: 5 },
    { ...hello, from: '../etc' },
    { ...hello, ticket: 'xyz' },
    { ...hello, token: 'a\u001b[2J' },
    { t: 'welcome', ok: 1 },
    { t: 'welcome', ok: true, version: 1, serverId: '', clusterId: '' },
    { t: 'call', id: 1 },
    { t: 'call', id: 1, method: 5, args: {} },
    { t: 'answer', id: 1 },
    { t: 'map', map: {} },
    { t: 'map', map: { clusterId: '', mapEpoch: 1, hashSeed: '0', members: [], shards: [] } },
  ];
  for (const value of bad)
    t.throws(
      () => new FrameReader(CLIENT_FRAME_LIMITS).push(withLength(encodeValue(value)), () => true),
      refused,
      JSON.stringify(value),
    );
});

test('unknown fields are dropped and unknown error codes become internal errors', (t) => {
  const got: Frame[] = [];
  const later = { t: 'answer', id: 1, ok: false, code: 'ERR_OF_2031', message: 'no', extra: 1 };
  new FrameReader(CLIENT_FRAME_LIMITS).push(withLength(encodeValue(later)), (f) => got.push(f) > 0);
  t.deepEqual(got, [{ t: 'answer', id: 1, ok: false, code: 'ERR_INTERNAL', message: 'no' }]);
});

test('random bytes and damaged frames end in ERR_PROTOCOL or in a frame, never otherwise', (t) => {
  const random = seeded(t, import.meta.filename);
  const good = Buffer.concat([
    encodeFrame(hello),
    encodeFrame(ping(1)),
    encodeFrame({ t: 'call', id: 7, method: 'status', args: {} }),
  ]);
  for (let i = 0; i < 5000; i++) {
    const bytes = random.below(2) === 0 ? random.bytes(random.below(200)) : Uint8Array.from(good);
    for (let j = random.below(4); j > 0 && bytes.length > 0; j--)
      bytes[random.below(bytes.length)] = random.next() & 0xff;
    try {
      new FrameReader(CLIENT_FRAME_LIMITS).push(bytes, () => true);
      t.pass();
    } catch (e) {
      t.true(e instanceof FarkvError && e.code === 'ERR_PROTOCOL', String(e));
    }
  }
});
