/** What is refused wherever it comes from: a frame of a peer, a command, a snapshot. */
import test from 'ava';
import { checkAddresses, wallMs } from './check-state.js';

test('an address is one that can be connected to', (t) => {
  const good = ['127.0.0.1:7400', '[::1]:7400', 'db1.example.net'];
  t.deepEqual(checkAddresses(good, 'peer'), good);
  for (const bad of ['', 'a b:1', 'host:99999', '[::1', '/run/socket'])
    t.throws(() => checkAddresses(['s1:1', bad], 'peer'), { code: 'ERR_PROTOCOL', message: /peer\[1\] is not/ }, bad);
});

test('a time that is added to stays a number that can be saved', (t) => {
  t.is(wallMs(Date.UTC(2026, 0), 'atMs'), Date.UTC(2026, 0));
  t.throws(() => wallMs(Number.MAX_SAFE_INTEGER, 'atMs'), { code: 'ERR_PROTOCOL' });
});
