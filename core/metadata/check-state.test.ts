/** What is refused wherever it comes from: a frame of a peer, a command, a snapshot. */
import test from 'ava';
import { checkAddresses, checkFabricAddress, checkRegion, wallMs } from './check-state.js';

test('an address is one that can be connected to', (t) => {
  const good = ['127.0.0.1:7400', '[::1]:7400', 'db1.example.net'];
  t.deepEqual(checkAddresses(good, 'peer'), good);
  for (const bad of ['', 'a b:1', 'host:99999', '[::1', '/run/socket'])
    t.throws(() => checkAddresses(['s1:1', bad], 'peer'), { code: 'ERR_PROTOCOL', message: /peer\[1\] is not/ }, bad);
});

test('an address and a region are of a device that a server may have', (t) => {
  const address = { provider: 'verbs', address: '10.9.0.1:7500', worker: 0 } as const;
  const region = { provider: 'verbs', kind: 'heap', segment: 1, tag: 2, bytes: 3, remoteAddress: '4', rkey: '5' };
  for (const device of [{}, { device: 1 }]) {
    t.deepEqual(checkFabricAddress({ ...address, ...device }, 'at'), { ...address, ...device });
    t.deepEqual(checkRegion({ ...region, ...device }, 'at'), { ...region, ...device } as never);
  }
  for (const device of [2, -1, '1']) {
    t.throws(() => checkFabricAddress({ ...address, device }, 'at'), { code: 'ERR_PROTOCOL', message: /at\.device/ });
    t.throws(() => checkRegion({ ...region, device }, 'at'), { code: 'ERR_PROTOCOL', message: /at\.device/ });
  }
});

test('a time that is added to stays a number that can be saved', (t) => {
  t.is(wallMs(Date.UTC(2026, 0), 'atMs'), Date.UTC(2026, 0));
  t.throws(() => wallMs(Number.MAX_SAFE_INTEGER, 'atMs'), { code: 'ERR_PROTOCOL' });
});
