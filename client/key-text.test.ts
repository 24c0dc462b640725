import test from 'ava';
import { TEXTS_MAX } from '../native/native-client.js';
import { KeyText } from './key-text.js';
import { setup, text } from '../test/support/keyspace.js';

test('keys that are all texts are joined, with their lengths, up to a bound', (t) => {
  const joined = new KeyText(4);
  t.is(joined.join(['ab', '', 'cde']), 'abcde');
  t.deepEqual([...joined.lengths], [2, 0, 3, 0]);
  t.is(joined.join(['a', Buffer.from('b')]), undefined);
  // eslint-disable-next-line no-sparse-arrays -- what a program may hand over
  t.is(joined.join(['a', , 'b'] as string[]), undefined);
  t.is(joined.join(['a'.repeat(TEXTS_MAX - 1), 'b'])?.length, TEXTS_MAX);
  t.is(joined.join(['a'.repeat(TEXTS_MAX - 1), 'bc']), undefined);
});

test('the text that the native side is given is that of the keys of each crossing', async (t) => {
  const { native, kv, settle } = setup({ direct: true, maxOutstanding: 6000 });
  native.maxOutstanding = 6000;
  const keys = Array.from({ length: 1500 }, (_, i) => `key${i}`);
  const put = kv.putMany(keys.map((key, i) => ({ key, value: `value ${i}` })));
  await settle();
  await put;
  t.deepEqual(
    (await kv.getMany(keys)).map(text),
    keys.map((_, i) => `value ${i}`),
  );
  t.true(native.texts >= 4);
});
