/**
 * Half of a surrogate pair has no UTF-8: an encoder puts another character in its place, and two keys would become one.
 * Refused by every call of the SDK, each adapter, and on the command line, where bytes take its place.
 */
import test from 'ava';
import session from 'express-session';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { KeyvFarkv } from '../../adapters/keyv.js';
import { sessionStore } from '../../adapters/session.js';
import { farkvDriver } from '../../adapters/unstorage.js';
import { bufferCodec, encodeWith, msgpackCodec } from '../../client/codec.js';
import { CALLS } from '../chaos/calls.js';
import { keysOf, oneServer } from '../support/adapters.js';
import { CLI } from '../support/cluster.js';

const server = oneServer(test);
const HALVES = ['cut \ud83d', 'cut \ude00', '\ude00\ud83d', '\ud83d in the middle', `${'long '.repeat(100)}\udbff`];
/** Texts that look alike in UTF-8, and are none: a whole pair, and the character that takes the place of halves. */
const WHOLE = ['whole \u{1f600}', 'replaced \ufffd', '\ufffd\u{1f600}\ufffd', '\u{10ffff}', '\ud7ff\ue000\uf8ff\uffff'];

test('a key with half a pair is refused by every call; one with a whole pair, or with U+FFFD, is a key', async (t) => {
  const kv = server().space();
  for (const key of HALVES) {
    for (const { name, plain } of CALLS)
      if (plain !== undefined)
        await t.throwsAsync(
          async () => await plain(kv, key),
          { code: 'ERR_KEY_INVALID', message: /this one has half a surrogate pair/ },
          `${JSON.stringify(key)}: ${name}`,
        );
  }
  // As a batch they cross together, and two halves side by side would be a pair.
  await t.throwsAsync(kv.getMany(['a\ud83d', '\ude00b']), { code: 'ERR_KEY_INVALID', message: /^2 of 2 keys/ });
  t.deepEqual(await keysOf(kv), []);
  for (const key of WHOLE) await kv.put(key, key);
  for (const key of WHOLE) t.is(String(await kv.get(key)), key);
  t.is(await kv.count(), WHOLE.length);
});

test('a prefix with half a pair is refused', async (t) => {
  const kv = server().space();
  const refused = { code: 'ERR_ARGUMENT', message: /the prefix has half a surrogate pair/ };
  await t.throwsAsync(kv.count({ prefix: 'cut \ud83d' }), refused);
  await t.throwsAsync(kv.scanPage({ prefix: 'cut \ud83d' }), refused);
  await t.throwsAsync(kv.scan({ prefix: 'cut \ud83d' }).next(), refused);
});

test('a value with half a pair is refused; with msgpack wherever in the value it is', async (t) => {
  const kv = server().space();
  const typed = kv.withCodec('msgpack');
  const refused = { code: 'ERR_ARGUMENT', message: /has half a surrogate pair/ };
  const codec = msgpackCodec<unknown>();
  for (const half of HALVES) {
    await t.throwsAsync(kv.put('k', half), refused);
    await t.throwsAsync(kv.append('k', half), refused);
    await t.throwsAsync(kv.compareAndSwap('k', 0n, half), refused);
    await t.throwsAsync(
      kv.update('k', () => half),
      refused,
    );
    await t.throwsAsync(kv.putMany([{ key: 'k', value: half }]), refused);
    for (const value of [
      half,
      { a: [1, { b: half }] },
      { [half]: 1 },
      new Map([['a', half]]),
      new Map([[half, 1]]),
      new Set([half]),
      new Error(half),
      new (class {
        toJSON = (): unknown => [half];
      })(),
    ])
      await t.throwsAsync(typed.put('k', value), refused);
  }
  t.deepEqual(await keysOf(kv), []);
  for (const whole of WHOLE) {
    for (const value of [whole, { [whole]: [whole] }, [Buffer.from([0xed, 0xa0, 0xbd]), whole]])
      t.deepEqual(codec.decode(Buffer.from(encodeWith(codec, value))), value);
    t.is(String(encodeWith(bufferCodec, whole)), whole);
  }
});

test('the adapters refuse such keys, prefixes and values', async (t) => {
  const kv = server().space();
  const key = { code: 'ERR_KEY_INVALID' };
  const value = { code: 'ERR_ARGUMENT' };
  const keyv = new KeyvFarkv(kv);
  await t.throwsAsync(keyv.set('cut \ud83d', 'v'), key);
  await t.throwsAsync(keyv.setMany([{ key: 'cut \ud83d', value: 'v' }]), key);
  await t.throwsAsync(keyv.get('cut \ud83d'), key);
  await t.throwsAsync(keyv.delete('cut \ud83d'), key);
  await t.throwsAsync(keyv.set('k', '\ud83d'), value);
  keyv.namespace = 'cut \ud83d';
  await t.throwsAsync(keyv.clear(), value);
  const storage = farkvDriver({ source: kv });
  await t.throwsAsync(async () => await storage.setItem!('cut \ud83d', 'v', {}), key);
  await t.throwsAsync(async () => await storage.getItem('cut \ud83d'), key);
  await t.throwsAsync(async () => await storage.setItem!('k', '\ud83d', {}), value);
  await t.throwsAsync(async () => await storage.getKeys('cut \ud83d', {}), value);
  const sessions = sessionStore(session, kv);
  await t.throwsAsync(promisify(sessions.get.bind(sessions))('cut \ud83d'), key);
  for (const make of [
    () => new KeyvFarkv(kv, { prefix: '\ud83d' }),
    () => farkvDriver({ source: kv, prefix: '\ud83d' }),
    () => sessionStore(session, kv, { prefix: '\ud83d' }),
  ])
    t.throws(make, { code: 'ERR_ARGUMENT', message: /half a surrogate pair/ });
  t.deepEqual(await keysOf(kv), []);
});

test('bytes on the command line that are no UTF-8 are refused: two keys would become one', async (t) => {
  const run = async (script: string) => {
    const env = { ...process.env, FARKV_CONNECT: server().address };
    const failed = (error: unknown) => error as { readonly code: number; readonly stderr: string };
    return await promisify(execFile)('bash', ['-c', script, process.execPath, CLI], { env }).then(
      () => ({ code: 0, stderr: '' }),
      failed,
    );
  };
  for (const words of ["put $'cut \\xff' one", "put key $'cut \\xed\\xa0\\xbd'", "scan --prefix $'\\xf0\\x9f'"]) {
    const { code, stderr } = await run(`"$0" "$1" ${words}`);
    t.is(code, 2, words);
    t.regex(stderr, /^farkv \w+: a word of the command line is not UTF-8: .*--hex/);
  }
  t.like(await run(`"$0" "$1" put $'\\xef\\xbf\\xbd' 'U+FFFD itself'`), { code: 0 });
  t.is(String(await server().client.get('\ufffd')), 'U+FFFD itself');
});
