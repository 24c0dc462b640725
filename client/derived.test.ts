/** Changes of the present entry (derived.ts) of the SDK, against the fake native client. */
import test from 'ava';
import { setup, text } from '../test/support/keyspace.js';

const any = (value: unknown): never => value as never;

test('an increment answers with the sum, as a bigint', async (t) => {
  const { native, kv, settle } = setup();
  native.store('n', Buffer.from('-9223372036854775808'));
  const all = Promise.all([kv.increment('n'), kv.increment('n', 41), kv.increment('n', -2n), kv.increment('new', 7n)]);
  await settle();
  t.deepEqual(await all, [-9223372036854775807n, -9223372036854775766n, -9223372036854775768n, 7n]);
  t.is(text(await kv.get('new')), '7');
});

test('a value that is no number is an error, and stays', async (t) => {
  const { native, kv, settle } = setup();
  native.store('n', Buffer.from('one'));
  native.store('most', Buffer.from('9223372036854775807'));
  const all = [kv.increment('n'), kv.increment('most')].map((p) => t.throwsAsync(p, { code: 'ERR_NOT_INTEGER' }));
  await settle();
  await Promise.all(all);
  t.is(text(await kv.get('n')), 'one');
});

test('an append answers with the length, and has its own bytes', async (t) => {
  const { native, kv, settle } = setup({ direct: false });
  native.maxOutstanding = 1;
  const bytes = Buffer.from('two');
  const all = Promise.all([kv.append('a', 'one,'), kv.append('a', bytes)]);
  bytes.fill('x');
  await settle();
  t.deepEqual(await all, [4, 7]);
  t.is(Buffer.from(native.entries.get('0/a')!.value).toString(), 'one,two');
  await t.throwsAsync(kv.append('a', Buffer.alloc(8193)), { code: 'ERR_VALUE_TOO_LARGE', message: /at most 8192/ });
  await t.throwsAsync(kv.append('a', any(5)), { code: 'ERR_ARGUMENT' });
});

test('touch says whether there was an entry, and a time to live goes with each', async (t) => {
  const { native, kv, settle } = setup();
  native.store('a', Buffer.from('1'));
  const all = Promise.all([
    kv.touch('a', { ttlMs: 500 }),
    kv.touch('a', { ttlMs: null, timeoutMs: 50 }),
    kv.touch('a'),
    kv.touch('none', { ttlMs: 5 }),
    kv.increment('a', 1, { ttlMs: 9 }),
    kv.append('b', 'x', { ttlMs: 8 }),
  ]);
  await settle();
  t.deepEqual((await all).slice(0, 4), [true, true, true, false]);
  t.deepEqual(native.log, [
    'touch 0/a ttl 500',
    'touch 0/a ttl 0',
    'touch 0/a ttl 0',
    'touch 0/none ttl 5',
    'increment 0/a by 1 ttl 9',
    'append 0/b ttl 8',
  ]);
});

test('a view of another codec neither increments nor appends; a value of another is left', async (t) => {
  const { native, kv, settle } = setup();
  const view = kv.withCodec('msgpack');
  await t.throwsAsync(view.increment('n'), { code: 'ERR_CODEC', message: /withCodec\('buffer'\)/ });
  await t.throwsAsync(view.append('n', 'x'), { code: 'ERR_CODEC' });
  t.deepEqual(native.log, []);
  native.store('n', Buffer.from('5'), 1);
  const all = [kv.increment('n'), kv.append('n', 'x')].map((p) => t.throwsAsync(p, { code: 'ERR_CODEC' }));
  const touched = view.touch('n', { ttlMs: 5 });
  await settle();
  await Promise.all(all);
  t.true(await touched);
});

test('what is wrong with the arguments is said at once', async (t) => {
  const { native, kv } = setup();
  for (const by of [0.5, 2 ** 53, 2n ** 63n, -(2n ** 63n) - 1n, '1', null, Number.NaN])
    await t.throwsAsync(kv.increment('n', any(by)), { code: 'ERR_ARGUMENT' }, String(by));
  for (const ttlMs of [0, -1, 0.5, '5']) {
    await t.throwsAsync(kv.touch('n', { ttlMs: any(ttlMs) }), { code: 'ERR_ARGUMENT' });
    await t.throwsAsync(kv.increment('n', 1, { ttlMs: any(ttlMs) }), { code: 'ERR_ARGUMENT' });
  }
  await t.throwsAsync(kv.touch('n', any({ ttl: 5 })), { code: 'ERR_ARGUMENT' });
  await t.throwsAsync(kv.touch('n', any(null)), { code: 'ERR_ARGUMENT' });
  await t.throwsAsync(kv.increment('n', 1, any({ flags: 5 })), { code: 'ERR_ARGUMENT' });
  t.deepEqual(native.log, []);
});
