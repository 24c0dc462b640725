import test from 'ava';
import { connect } from './connect.js';

test('why nobody answered is told, though the time for it was over before the event loop went on', async (t) => {
  const connecting = connect({ servers: '127.0.0.1:1', connectTimeoutMs: 1 });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  await t.throwsAsync(connecting, {
    code: 'ERR_TIMEOUT',
    message: /no server answered within 1 ms \(127\.0\.0\.1:1\): .*ECONNREFUSED/,
  });
});
