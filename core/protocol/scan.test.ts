import test from 'ava';
import { pack } from 'msgpackr';
import { FarkvError } from '../errors.js';
import { seeded } from '../../test/support/random.js';
import { CLIENT_FRAME_LIMITS, type FrameLimits } from './limits.js';
import { scanMessagePack } from './scan.js';
import { decodeValue, encodeValue } from './value.js';

const small: FrameLimits = { bytes: 1000, depth: 3, elements: 10, stringBytes: 20 };
const refused = { instanceOf: FarkvError, code: 'ERR_PROTOCOL' };
const scan =
  (...bytes: number[]) =>
  (): void =>
    scanMessagePack(Uint8Array.from(bytes), small);

test('plain values of every kind pass and come back', (t) => {
  const value = {
    a: [1, -1, 200, 70_000, 2 ** 40, -(2 ** 40), 1.5],
    b: 'text',
    c: null,
    d: true,
    e: new Uint8Array([1, 2, 3]),
    f: 1n << 60n,
    g: { h: {} },
  };
  t.deepEqual(decodeValue(encodeValue(value), CLIENT_FRAME_LIMITS), { ...value, e: Buffer.from([1, 2, 3]) });
});

test('an undefined property is left out', (t) => {
  t.deepEqual(decodeValue(encodeValue({ a: 1, b: undefined }), small), { a: 1 });
});

test('decoded bytes do not share memory with the message', (t) => {
  const message = encodeValue({ b: new Uint8Array([7]) });
  const { b } = decodeValue(message, small) as { b: Uint8Array };
  t.not(b.buffer, message.buffer);
});

test('an array deeper than the limit is refused', (t) => {
  t.notThrows(scan(0x91, 0x91, 0x91, 0xc0));
  t.throws(scan(0x91, 0x91, 0x91, 0x91, 0xc0), refused);
});

test('more elements than the limit are refused, promised or present', (t) => {
  t.notThrows(scan(0x99, 1, 1, 1, 1, 1, 1, 1, 1, 1));
  t.throws(scan(0x9a, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), refused);
  t.throws(scan(0xdd, 0xff, 0xff, 0xff, 0xff, 1), refused);
  t.throws(scan(0xdf, 0x7f, 0xff, 0xff, 0xff, 1), refused);
});

test('a megabyte of empty arrays is refused before it is decoded', (t) => {
  const bomb = new Uint8Array(60_000).fill(0x90);
  bomb.set([0xdc, 0xea, 0x5d]);
  t.throws(() => scanMessagePack(bomb, CLIENT_FRAME_LIMITS), refused);
});

test('a long string and a long key are refused', (t) => {
  t.notThrows(() => scanMessagePack(encodeValue('x'.repeat(20)), small));
  t.throws(() => scanMessagePack(encodeValue('x'.repeat(21)), small), refused);
  t.throws(() => scanMessagePack(encodeValue({ ['k'.repeat(65)]: 1 }), { ...small, stringBytes: 1000 }), refused);
});

test('extensions of every form are refused', (t) => {
  for (const token of [0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8])
    t.throws(scan(token, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), refused);
  t.throws(() => scanMessagePack(pack(new Date(5)), small), refused);
});

test('keys that are not strings, or are __proto__, are refused', (t) => {
  t.throws(scan(0x81, 1, 1), refused);
  t.throws(() => scanMessagePack(Uint8Array.from([0x81, 0xa9, ...Buffer.from('__proto__'), 1]), small), refused);
  t.notThrows(() => scanMessagePack(encodeValue(['__proto__']), small));
});

test('missing bytes, left over bytes and the unused byte are refused', (t) => {
  for (const bytes of [[], [0x91], [0xd9], [0xd9, 5, 65], [0xcb, 1], [0xc4, 4, 1], [1, 1], [0x90, 0], [0xc1]])
    t.throws(scan(...bytes), refused);
});

test('whatever passes the scan is decoded, and nothing else happens to random bytes', (t) => {
  const random = seeded(t, import.meta.filename);
  // Random tokens mostly; ranges of containers and strings are drawn more often than one byte in 256 would.
  const tokens = [
    0x80, 0x81, 0x82, 0x90, 0x91, 0x93, 0xa1, 0xa3, 0xc0, 0xc3, 0xc4, 0xcc, 0xcd, 0xcf, 0xd3, 0xd9, 0xdc, 0xde,
  ];
  let passed = 0;
  for (let i = 0; i < 50_000; i++) {
    const bytes = Uint8Array.from({ length: 1 + random.below(24) }, () =>
      random.below(2) === 0 ? random.pick(tokens) : random.next() & 0xff,
    );
    try {
      scanMessagePack(bytes, small);
    } catch (e) {
      t.true(e instanceof FarkvError && e.code === 'ERR_PROTOCOL');
      continue;
    }
    passed += 1;
    decodeValue(bytes, small);
  }
  t.true(passed > 100, `only ${passed} passed`);
});

test('every encoded value passes the scan, and no proper beginning of it does', (t) => {
  const random = seeded(t, import.meta.filename);
  const make = (depth: number): unknown => {
    switch (random.below(depth === 0 ? 6 : 8)) {
      case 0:
        return random.next();
      case 1:
        return -random.next();
      case 2:
        return 'x'.repeat(random.below(40));
      case 3:
        return random.bytes(random.below(40));
      case 4:
        return random.below(2) === 0;
      case 5:
        return random.next() / 7;
      case 6:
        return Array.from({ length: random.below(20) }, () => make(depth - 1));
      default:
        return Object.fromEntries(Array.from({ length: random.below(20) }, (_, i) => [`k${i}`, make(depth - 1)]));
    }
  };
  for (let i = 0; i < 300; i++) {
    const bytes = encodeValue(make(4));
    scanMessagePack(bytes, { bytes: 1 << 20, depth: 12, elements: 1 << 20, stringBytes: 4096 });
    t.throws(() => scanMessagePack(bytes.subarray(0, random.below(bytes.length)), CLIENT_FRAME_LIMITS), refused);
  }
});
