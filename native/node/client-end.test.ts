/** How a NativeClient ends, and what a callback may do: close it, or throw. Against a data plane in this process. */
import test from 'ava';
import { PENDING_BASE } from '../native-client.js';
import { Driver, Plane } from '../../test/support/native-pair.js';

test('close ends what is outstanding, which may be drained once more; later calls answer ERR_CLOSED', async (t) => {
  const plane = await Plane.start({ closed: true });
  const client = Driver.to(plane);
  const outcomes = [client.get('a'), client.put('b', 'v')];
  client.close();
  for (const outcome of outcomes) t.is((await outcome).status, 'ERR_CLOSED');
  client.native.close();
  t.is((await client.get('a')).status, 'ERR_CLOSED');
  t.is((await client.put('a', 'v')).status, 'ERR_CLOSED');
  t.is(client.native.getSync(0, 'a', Buffer.alloc(1), 0, 10), -18);
  t.is(client.native.flush(), 0);
  t.is(client.native.drain(Buffer.alloc(10)), 0);
  t.is(client.native.shardOf(0, 'a'), -18);
  client.native.cancel(1);
  t.throws(() => client.native.setOwners([]), { code: 'ERR_CLOSED' });
  t.throws(() => client.native.getMany(0, ['a'], Buffer.alloc(1), 0, new Uint32Array(8), 1), { code: 'ERR_CLOSED' });
  t.deepEqual(client.native.stats().owners, []);
  await plane.close();
});

test('a value that was finished before close can still be drained after it', async (t) => {
  const plane = await Plane.start({ provider: 'tcp' });
  const client = Driver.to(plane, { polling: 'always' });
  await client.put('a', 'kept');
  const answer = client.native.get(0, 'a', undefined, 0, 10_000);
  const outcome = client.adopt(answer - PENDING_BASE);
  while (client.native.flush() === 0);
  client.close();
  t.is((await outcome).value.toString(), 'kept');
  await plane.close();
});

test('close may be called from inside onReady and onEvent', async (t) => {
  const plane = await Plane.start();
  const fromReady = Driver.to(plane, { onReady: () => fromReady.close() });
  const put = fromReady.put('a', 'v');
  t.is((await put).status, 'OK');
  const closed = new Promise<void>((resolve) => {
    const fromEvent = Driver.to(plane, {
      onEvent: () => {
        fromEvent.close();
        resolve();
      },
    });
    void fromEvent.put('a', 'v');
  });
  await closed;
  await plane.close();
  t.pass();
});

test.serial('an exception in a callback is an uncaught exception of the program, and the client goes on', async (t) => {
  const plane = await Plane.start();
  const caught: unknown[] = [];
  const catcher = (error: unknown): unknown => caught.push(error);
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', catcher);
  let throws = true;
  const client: Driver = Driver.to(plane, {
    onReady: () => {
      client.drain();
      if (throws) throw new Error('from onReady');
    },
  });
  await client.put('a', 'v');
  while (caught.length === 0) await new Promise(setImmediate);
  throws = false;
  t.is((caught[0] as Error).message, 'from onReady');
  t.is((await client.put('a', 'w')).status, 'OK');
  process.off('uncaughtException', catcher);
  for (const other of others) process.on('uncaughtException', other);
  client.close();
  await plane.close();
});
