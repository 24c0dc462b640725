import test from 'ava';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { connect } from './connect.js';

test('why nobody answered is told, though the time for it was over before the event loop went on', async (t) => {
  const connecting = connect({ servers: '127.0.0.1:1', connectTimeoutMs: 1 });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  await t.throwsAsync(connecting, {
    code: 'ERR_DISCONNECTED',
    message: /no server listens there \(127\.0\.0\.1:1\): .*ECONNREFUSED/,
  });
});

test('connect does not wait for its time where nobody listens, and does where somebody says nothing', async (t) => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const servers = ['127.0.0.1:1', '127.0.0.1:2'];
  await t.throwsAsync(connect({ servers, connectTimeoutMs: 2 ** 31 - 1 }), { code: 'ERR_DISCONNECTED' });
  const waiting = connect({ servers: [...servers, `127.0.0.1:${port}`], connectTimeoutMs: 1500 });
  await t.throwsAsync(waiting, { code: 'ERR_TIMEOUT' });
  silent.close();
});
