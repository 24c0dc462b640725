/**
 * Calls of a NativeClient that are polled for: getSync, and GETs and PUTs that are alone. Against a data plane in this
 * process.
 */
import test from 'ava';
import { CompletionField } from '../native-client.js';
import { Driver, Plane } from '../../test/support/native-pair.js';

/**
 * Whether the call is answered before its flush returns. Now and then it is not: a machine may let the owner wait for
 * longer than is polled.
 */
async function answeredInside(client: Driver, call: () => Promise<void>): Promise<boolean> {
  for (let tries = 0; tries < 30; tries++) {
    const before = client.readyCalls;
    await call();
    if (client.readyCalls === before) return true;
  }
  return false;
}

test('getSync answers inside its call, and keeps its lease in a loop that never returns to the event loop', async (t) => {
  const plane = await Plane.start({ leaseMs: 100 });
  const client = Driver.to(plane);
  await client.put('k', 'value');
  const target = Buffer.alloc(100);
  const renewals = (): number => client.native.stats().leaseRenewals;
  let gets = 0;
  // How often a busy machine lets the owner renew is its own affair. The end is for a loop in which nothing is renewed.
  const end = process.hrtime.bigint() + 60_000_000_000n;
  while (renewals() < 10 && process.hrtime.bigint() < end) {
    gets++;
    if (client.native.getSync(0, 'k', target, 3, 5000) !== 5) {
      t.fail(`GET ${gets} answered ${String(client.native.info[CompletionField.Status])}`);
      break;
    }
  }
  t.is(target.toString('utf8', 3, 8), 'value');
  t.is(client.native.getSync(0, 'absent', target, 0, 5000), -1);
  t.is(client.native.getSync(0, 'k', Buffer.alloc(4), 0, 5000), -20);
  t.true(renewals() >= 10);
  client.close();
  await plane.close();
});

test('getSync obeys its time-out, and is not offered over tcp', async (t) => {
  const plane = await Plane.start({ closed: true });
  const client = Driver.to(plane);
  // Why the time was over is known once the owner has said so.
  while ((await client.get('k', 20)).status !== 'ERR_SHARD_UNAVAILABLE');
  while (client.native.getSync(0, 'k', Buffer.alloc(8), 0, 50) !== -8);
  client.close();
  await plane.close();
  const far = await Plane.start({ provider: 'tcp' });
  const other = Driver.to(far);
  await other.get('k');
  t.is(other.native.getSync(0, 'k', Buffer.alloc(8), 0, 50), -21);
  other.close();
  await far.close();
});

test('a put that is alone may be answered inside flush', async (t) => {
  const plane = await Plane.start({ polling: 'always' });
  const client = Driver.to(plane, { polling: 'always' });
  await client.put('a', 'connected');
  let version = 0n;
  t.true(
    await answeredInside(client, async () => {
      const put = await client.put('a', 'spun');
      t.is(put.status, 'OK');
      ({ version } = put);
    }),
  );
  t.is((await client.get('a')).version, version);
  client.close();
  await plane.close();
});

test('puts that are made in one turn go together, however long one alone would be polled for', async (t) => {
  const plane = await Plane.start({ polling: 'always' });
  const client = Driver.to(plane, { polling: 'always' });
  await client.put('a', 'connected');
  const puts = Array.from({ length: 64 }, (_, i) => client.put(`k${i}`, 'v'));
  for (const put of puts) {
    const { status, later } = await put;
    t.is(status, 'OK');
    t.true(later);
  }
  client.close();
  await plane.close();
});

test('a get that is alone may be answered inside flush', async (t) => {
  const plane = await Plane.start({ provider: 'tcp' });
  const client = Driver.to(plane, { polling: 'always' });
  await client.put('a', 'v');
  await client.get('a');
  t.true(await answeredInside(client, async () => void t.is((await client.get('a')).status, 'OK')));
  client.close();
  await plane.close();
});
