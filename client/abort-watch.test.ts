import test from 'ava';
import { getEventListeners } from 'node:events';
import { setup } from '../test/support/keyspace.js';

test('a signal has one listener, however many clients and calls share it, and none once they have ended', async (t) => {
  const { signal } = new AbortController();
  const clients = Array.from({ length: 12 }, () => setup({ direct: false }));
  const gets = clients.flatMap(({ kv }) => ['a', 'b'].map((key) => kv.get(key, { signal })));
  t.is(getEventListeners(signal, 'abort').length, 1);
  const updates = clients.map(({ kv }) => kv.update('c', () => 'x', { signal }));
  for (const { settle } of clients) await settle();
  await Promise.all([...gets, ...updates]);
  t.is(getEventListeners(signal, 'abort').length, 0);
});

test('batches that wait for room, or for their turn, share that listener', async (t) => {
  const { signal } = new AbortController();
  const clients = Array.from({ length: 12 }, () => setup({ direct: false, maxQueued: 10_000, timeoutMs: 600_000 }));
  const keys = Array.from({ length: 2000 }, (_, i) => `k${i}`);
  const items = keys.map((key) => ({ key, value: 'v' }));
  const calls = clients.flatMap(({ kv }) => [
    kv.getMany(keys, { signal }),
    kv.getMany(keys, { signal }),
    kv.putMany(items, { signal }),
    kv.putMany(items, { signal }),
  ]);
  t.is(getEventListeners(signal, 'abort').length, 1);
  for (const { settle } of clients) {
    await settle();
    t.true(getEventListeners(signal, 'abort').length <= 1);
  }
  await Promise.all(calls);
  t.is(getEventListeners(signal, 'abort').length, 0);
});

test('a signal ends the calls of all clients that share it', async (t) => {
  const controller = new AbortController();
  const clients = Array.from({ length: 12 }, () => setup({ direct: false }));
  const never = () => new Promise<string>(() => undefined);
  const waits = clients.map(({ kv }) => kv.update('c', never, { signal: controller.signal }));
  for (const { settle } of clients) await settle();
  t.is(getEventListeners(controller.signal, 'abort').length, 1);
  controller.abort();
  for (const wait of waits) await t.throwsAsync(wait, { code: 'ERR_ABORTED' });
});
