import test from 'ava';
import { setImmediate as turn } from 'node:timers/promises';
import { Packr } from 'msgpackr';
import { runInNewContext } from 'node:vm';
import { bufferCodec, encodeWith, msgpackCodec, resolveCodec, type Codec } from './codec.js';
import { setup } from '../test/support/keyspace.js';

test('msgpack values come back as they were; another codec refuses them; buffer reads their bytes', async (t) => {
  const { native, kv, settle } = setup();
  const typed = kv.withCodec('msgpack');
  const values = [
    { name: 'Ada', tags: ['x', 'y'], at: new Date(0), raw: Buffer.from([1, 2, 3]) },
    [1, -2, 3.5, 2 ** 40],
    'text',
    null,
    false,
    12n ** 15n,
    new Set([1, 2]),
  ];
  for (const value of values) {
    const put = typed.put('v', value);
    await settle();
    await put;
    t.deepEqual(await typed.get('v'), value);
  }
  await t.throwsAsync(typed.put('v', undefined), { code: 'ERR_ARGUMENT', message: /undefined/ });
  t.true(Buffer.isBuffer(await kv.get('v')));
  native.store('plain', Buffer.from('plain bytes'));
  await t.throwsAsync(typed.get('plain'), {
    code: 'ERR_CODEC',
    message: /written with the codec "buffer" \(number 0\).*reads with "msgpack" \(number 1\)/,
  });
  native.store('broken', Buffer.from([0x92, 0xa5]), 1);
  await t.throwsAsync(typed.get('broken'), { code: 'ERR_CORRUPT', message: /could not decode/ });
});

test('values made in another realm are stored as those of this one are', (t) => {
  const codec = msgpackCodec<unknown>();
  const back = (source: string): unknown => codec.decode(Buffer.from(codec.encode(runInNewContext(source))));
  t.deepEqual(back('new Map([["a", { b: 1 }]])'), { a: { b: 1 } });
  t.deepEqual(back('({ of: [new Set([1, 2]), new Date(5000), /x+/gi, new Float64Array([1.5])] })'), {
    of: [new Set([1, 2]), new Date(5000), /x+/gi, new Float64Array([1.5])],
  });
  const error = back('new TypeError("why")');
  t.true(error instanceof TypeError && error.message === 'why');
  t.deepEqual(back('new Uint8Array([1, 2])'), new Uint8Array([1, 2]));
  t.deepEqual(back('({ a: [1, null, "x"] })'), { a: [1, null, 'x'] });
  t.throws(() => codec.encode(runInNewContext('Promise.resolve(1)')), { code: 'ERR_ARGUMENT' });
  t.deepEqual(Buffer.from(encodeWith(bufferCodec, runInNewContext('new Uint8Array([7])'))), Buffer.from([7]));
});

test("a program's own msgpackr reads and writes values of the codec msgpack, and has no extension of farkv's", async (t) => {
  const { kv, settle } = setup();
  const packr = new Packr({ useRecords: false });
  const own: Codec<unknown> = {
    id: 1,
    name: 'msgpack',
    copies: true,
    encode: (value) => packr.pack(value),
    decode: (bytes) => packr.unpack(bytes) as unknown,
  };
  const value = { name: 'Ada', notes: ['a text of more than sixteen bytes', 1] };
  const views = [kv.withCodec(own), kv.withCodec('msgpack')] as const;
  for (const [i, view] of views.entries()) {
    const put = view.put('v', value);
    await settle();
    await put;
    t.deepEqual(await views[1 - i]?.get('v'), value);
  }
  const map: unknown = runInNewContext('new Map([["a", 1]])');
  t.deepEqual(packr.unpack(packr.pack(map)), {});
  const codec = msgpackCodec<unknown>();
  t.deepEqual(codec.decode(Buffer.from(codec.encode(map))), { a: 1 });
});

test('what MessagePack would store nothing of is refused, by every call that stores', async (t) => {
  const { kv } = setup();
  const typed = kv.withCodec('msgpack');
  const codec = msgpackCodec<unknown>();
  for (const [nothing, what] of [
    [Symbol('v'), /symbol/],
    [() => 1, /function/],
    [{ of: [() => 1] }, /function/],
    [Promise.resolve(1), /await/],
  ] as const) {
    t.throws(() => encodeWith(codec, nothing), { code: 'ERR_ARGUMENT', message: what });
    await t.throwsAsync(typed.put('v', nothing), { code: 'ERR_ARGUMENT', message: what });
    await t.throwsAsync(typed.putMany([{ key: 'v', value: nothing }]), { message: what });
    await t.throwsAsync(typed.compareAndSwap('v', 0n, nothing), { message: what });
  }
});

test('a decoded msgpack value does not lie in memory that is used again', async (t) => {
  for (const direct of [true, false]) {
    const { kv, native, settle } = setup({ direct });
    const typed = kv.withCodec<{ readonly bytes: Buffer }>('msgpack');
    for (let i = 0; i < 20; i++) {
      const put = typed.put(`k${i}`, { bytes: Buffer.alloc(100, i) });
      native.direct = direct;
      await settle();
      await put;
    }
    const gets = Array.from({ length: 20 }, (_, i) => typed.get(`k${i}`));
    await settle();
    for (const [i, value] of (await Promise.all(gets)).entries()) t.deepEqual(value?.bytes, Buffer.alloc(100, i));
  }
});

test('a codec of the program may call the client while it decodes', async (t) => {
  for (const direct of [true, false]) {
    const { kv, native, settle } = setup({ direct });
    const inner: Promise<Buffer | undefined>[] = [];
    const nested: Codec<string, string> = {
      id: 20,
      name: 'nested',
      encode: (value) => Buffer.from(value),
      decode: (bytes) => {
        inner.push(kv.get('other'));
        kv.getSync('other');
        return bytes.toString();
      },
    };
    native.store('other', Buffer.alloc(3000, '#'));
    for (let i = 0; i < 30; i++) native.store(`k${i}`, Buffer.alloc(2000, 65 + i), 20);
    const view = kv.withCodec(nested);
    const keys = Array.from({ length: 30 }, (_, i) => `k${i}`);
    const gets = Promise.all([...keys.map((key) => view.get(key)), view.getMany(keys)]);
    await settle();
    const results = await gets;
    const expected = keys.map((_, i) => String.fromCharCode(65 + i).repeat(2000));
    t.deepEqual(results.slice(0, 30), expected);
    t.deepEqual(results[30], expected);
    await settle();
    for (const value of await Promise.all(inner)) t.is(value?.toString(), '#'.repeat(3000));
  }
});

test('codecs are checked', (t) => {
  const codec = (id: number) => ({ id, name: 'mine', encode: (v: string) => Buffer.from(v), decode: String });
  for (const id of [0, 1, 2, 16]) t.notThrows(() => resolveCodec(codec(id)));
  for (const id of [-1, 3, 15, 256, 1.5]) t.throws(() => resolveCodec(codec(id)), { code: 'ERR_ARGUMENT' });
  t.throws(() => resolveCodec({ id: 16, name: 'x' } as never), { code: 'ERR_ARGUMENT' });
});

test('a codec that throws or gives no bytes fails the put', async (t) => {
  const { kv } = setup();
  const cause = new Error('no');
  const thrower = kv.withCodec<string, string>({
    id: 16,
    name: 'thrower',
    encode: () => {
      throw cause;
    },
    decode: String,
  });
  const error = await t.throwsAsync(thrower.put('a', 'x'), { code: 'ERR_ARGUMENT' });
  t.is(error.cause, cause);
  await t.throwsAsync(
    kv.withCodec({ id: 16, name: 'odd', encode: () => 'text' as never, decode: String }).put('a', 'x'),
    { code: 'ERR_ARGUMENT' },
  );
});

function scanBody(
  entries: readonly { readonly key: string; readonly value?: string; readonly valueBytes?: number }[],
): Buffer {
  return Buffer.concat(
    entries.map(({ key, value, valueBytes }) => {
      const head = Buffer.alloc(32);
      head.writeBigUInt64LE(77n, 0);
      head.writeBigUInt64LE(1234n, 8);
      head.writeUInt32LE(valueBytes ?? value?.length ?? 0, 16);
      head.writeUInt32LE(5, 20);
      head.writeUInt16LE(key.length, 24);
      head[27] = value === undefined ? 0 : 1;
      return Buffer.concat([head, Buffer.from(key), Buffer.from(value ?? '')]);
    }),
  );
}

test('a scan walks through the shards, page by page', async (t) => {
  const { native, kv, settle } = setup();
  const steps = () => [
    { body: scanBody([{ key: 'a' }, { key: 'b' }]), next: 5n },
    { body: scanBody([]), next: 0n },
    { body: scanBody([{ key: 'c' }]), next: 0n },
  ];
  native.scanBodies = steps();
  const page = kv.scanPage({ batch: 2 });
  await settle();
  const { entries, cursor } = await page;
  t.deepEqual(
    entries.map(({ key, ...rest }) => ({ key: key.toString(), ...rest })),
    [
      { key: 'a', version: 77n, flags: 5, expiresAtMs: 1234 },
      { key: 'b', version: 77n, flags: 5, expiresAtMs: 1234 },
    ],
  );
  t.is(cursor, '0.5');
  const rest = kv.scanPage({ batch: 2, cursor: '0.5' });
  await settle();
  t.deepEqual(
    (await rest).entries.map(({ key }) => key.toString()),
    ['c'],
  );
  t.is((await rest).cursor, undefined);
  t.deepEqual(native.log, ['scan 0 0 0 2 false', 'scan 0 0 5 2 false', 'scan 0 1 0 2 false']);
});

test('a scan with values reads by itself what did not fit, as it is then, and leaves out what is gone', async (t) => {
  const { native, kv, settle } = setup();
  // Written again after the scan listed it, without an end.
  const version = native.store('large', Buffer.alloc(100_000, 'L'), 0, 6);
  native.scanBodies = [
    {
      body: scanBody([
        { key: 'small', value: 'S' },
        { key: 'large', valueBytes: 100_000 },
        { key: 'gone', valueBytes: 9 },
      ]),
      next: 0n,
    },
  ];
  const found: object[] = [];
  const walk = (async () => {
    for await (const { key, value, ...rest } of kv.scan({ values: true }))
      found.push({ key: key.toString(), bytes: value.length, ...rest });
  })();
  for (let i = 0; i < 5; i++) await settle();
  await walk;
  t.deepEqual(found, [
    { key: 'small', bytes: 1, version: 77n, flags: 5, expiresAtMs: 1234 },
    { key: 'large', bytes: 100_000, version, flags: 6, expiresAtMs: undefined },
  ]);
});

test('of a page of large values as many are read side by side as have 8 MiB', async (t) => {
  const { native, operations, kv } = setup({ direct: false });
  const large = Array.from({ length: 20 }, (_, i) => ({ key: `large-${i}`, valueBytes: 1 << 20 }));
  const huge = { key: 'huge', valueBytes: 10 << 20 };
  const listed = [{ key: 'small', value: 'S' }, ...large, huge, { key: 'last', value: 'S' }];
  for (const { key } of [...large, huge]) native.store(key, Buffer.from('read'));
  native.scanBodies = [{ body: scanBody(listed), next: 0n }];
  let most = 0;
  let pages = 0;
  const page = kv.scanPage({ values: true }).finally(() => pages++);
  while (pages === 0) {
    most = Math.max(most, native.outstanding.length);
    native.complete(1);
    operations.drain();
    await turn();
  }
  t.deepEqual(
    (await page).entries.map(({ key, value }) => [String(key), value.length]),
    listed.map((entry) => [entry.key, 'value' in entry ? 1 : 4]),
  );
  t.is(most, 8);
});

test('a scan page larger than a slab is taken whole', async (t) => {
  const { native, kv, settle } = setup();
  const many = Array.from({ length: 2000 }, (_, i) => ({ key: `key-${i}`, value: 'v'.repeat(50) }));
  native.scanBodies = [{ body: scanBody(many), next: 0n }];
  const page = kv.scanPage({ values: true, batch: 4096 });
  await settle();
  await settle();
  t.is((await page).entries.length, 2000);
  t.is(native.held, 0);
});

test('a scan reply that ends within an entry is refused', async (t) => {
  const { native, kv, settle } = setup();
  native.scanBodies = [{ body: scanBody([{ key: 'abc', value: 'xyz' }]).subarray(0, 36), next: 0n }];
  const page = t.throwsAsync(kv.scanPage({ values: true }), { code: 'ERR_PROTOCOL' });
  await settle();
  await page;
});
