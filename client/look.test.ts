/** has and ttl, against the fake native client. */
import test from 'ava';
import { setup } from '../test/support/keyspace.js';

for (const direct of [true, false]) {
  test(`${direct ? 'at once' : 'later'}: has and ttl say what there is, and decode nothing`, async (t) => {
    const { native, kv, settle } = setup({ direct });
    native.store('empty', new Uint8Array(0));
    native.store('large', Buffer.alloc(200_000));
    // Of a codec that this view does not have.
    native.store('other', Buffer.from('x'), 77);
    const typed = kv.withCodec('msgpack');
    const all = Promise.all([
      kv.has('empty'),
      kv.has('large'),
      typed.has('other'),
      kv.has('none'),
      kv.ttl('empty'),
      kv.ttl('none'),
      kv.ttl('ends'),
      kv.ttl('over'),
    ]);
    native.entries.set('0/ends', { value: Buffer.from('x'), version: 1n, codec: 0, flags: 0, result: 1n << 42n });
    native.entries.set('0/over', { value: Buffer.from('x'), version: 1n, codec: 0, flags: 0, result: 1n });
    if (direct) {
      t.deepEqual((await all).slice(0, 6), [true, true, true, false, null, undefined]);
      t.true(((await kv.ttl('ends')) ?? 0) > 1e12);
      t.is(await kv.ttl('over'), 0);
    } else {
      await settle();
      const answers = await all;
      t.deepEqual(answers.slice(0, 6), [true, true, true, false, null, undefined]);
      t.true((answers[6] ?? 0) > 1e12);
      t.is(answers[7], 0);
    }
    t.is(native.held, 0);
  });
}

test('has that a signal ended, and one for which there is no room at once', async (t) => {
  const { native, kv, settle } = setup({ direct: false });
  native.store('a', Buffer.from('x'));
  native.maxOutstanding = 1;
  const all = Promise.all([kv.has('a'), kv.has('b'), kv.ttl('a')]);
  await t.throwsAsync(kv.has('a', { signal: AbortSignal.abort() }), { code: 'ERR_ABORTED' });
  await settle();
  t.deepEqual(await all, [true, false, null]);
  await t.throwsAsync(kv.has(''), { code: 'ERR_KEY_INVALID' });
});
