/** What adapters share, against a server: listing and clearing while others write. */
import test from 'ava';
import { KeyvFarkv } from '../../adapters/keyv.js';
import { PrefixedKeys } from '../../adapters/prefixed-keys.js';
import { farkvDriver } from '../../adapters/unstorage.js';
import type { Keyspace } from '../../client/index.js';
import { keysOf, oneServer } from '../support/adapters.js';

const server = oneServer(test);
const bytes = (kv: Keyspace<never, unknown>) => kv.withCodec('buffer');

test('clear() keeps an entry that is written after the scan saw it', async (t) => {
  const kv = server().space();
  const keys = new PrefixedKeys(kv, 'p', (source) => {
    const view = bytes(source);
    const scanPage = view.scanPage.bind(view);
    view.scanPage = (async (options: { readonly batch: number }) => {
      const page = await scanPage(options);
      await kv.put('p:raced', 'new');
      return page;
    }) as typeof view.scanPage;
    return view;
  });
  await kv.put('p:old', 'old');
  await kv.put('p:raced', 'old');
  await keys.clear('');
  t.deepEqual(await keysOf(kv), ['p:raced']);
  t.is(String(await kv.get('p:raced')), 'new');
});

test('keys come by what they begin with, whatever bytes they have', async (t) => {
  const kv = server().space();
  const keys = new PrefixedKeys(kv, 'prä', bytes);
  const names = ['', 'a', 'a:', 'a:b', 'ab', 'Zoë \u{1f980}'];
  for (const name of names) await kv.put(keys.key(name), name);
  await kv.put('pr', 'other');
  await kv.put(Buffer.from([0x70, 0x72, 0xff]), 'other');
  t.deepEqual((await keys.all('')).sort(), [...names].sort());
  t.deepEqual((await keys.all('a')).sort(), ['a', 'a:', 'a:b', 'ab']);
  t.deepEqual((await keys.all('a:')).sort(), ['a:', 'a:b']);
  t.deepEqual(await keys.all('Zoë'), ['Zoë \u{1f980}']);
  await keys.clear('a:');
  t.deepEqual((await keys.all('')).sort(), ['', 'a', 'ab', 'Zoë \u{1f980}'].sort());
});

test('a connection that is closed while it is made ends too', async (t) => {
  const keys = new PrefixedKeys(server().address, 'p', bytes);
  const using = keys.use();
  await keys.close();
  const kv = await using;
  await t.throwsAsync(kv.get('a'), { code: 'ERR_CLOSED' });
  await t.throwsAsync(keys.use(), { code: 'ERR_CLOSED' });
});

test('a view with any codec is a source, and the adapter stores as it always does', async (t) => {
  const kv = server().space();
  const store = new KeyvFarkv(kv.withCodec<{ readonly n: number }>('msgpack'));
  await store.set('k', 'v');
  t.is(await new KeyvFarkv(kv).get('k'), 'v');
  const storage = farkvDriver({ source: kv.withCodec('msgpack') });
  await storage.setItem?.('k', 'v', {});
  t.is(String(await kv.get('unstorage:k')), 'v');
});
