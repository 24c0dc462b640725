import test from 'ava';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { probe } from './probe.js';

test('a server has ended when nobody listens at any of its addresses', async (t) => {
  const server = createServer((socket) => socket.destroy());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const here = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const other = createServer();
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  const nobody = `127.0.0.1:${(other.address() as AddressInfo).port}`;
  other.close();
  await once(other, 'close');

  await t.notThrowsAsync(probe([here]));
  await t.notThrowsAsync(probe([nobody, here]));
  await t.throwsAsync(probe([nobody]));
  await t.throwsAsync(probe([nobody, nobody]));
  await t.notThrowsAsync(probe([]));
  server.close();
});
