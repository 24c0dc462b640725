import test from 'ava';
import { isEnd } from './top-keys.js';

test('q and Ctrl-C end it, among other keys too, and no key that has such a byte in it', (t) => {
  for (const keys of ['q', 'Q', '\x03', 'xq', '\x1b[Aq', '\x1bOQ\x03'])
    t.true(isEnd(Buffer.from(keys)), JSON.stringify(keys));
  for (const keys of ['', 'x', '\x1bOQ', '\x1b[1;2Q', '\x1bq', 'ą', '日本'])
    t.false(isEnd(Buffer.from(keys)), JSON.stringify(keys));
});
