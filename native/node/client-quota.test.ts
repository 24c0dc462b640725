/** What an owner allows a client, and what both are told where it ends a connection. */
import test from 'ava';
import { setImmediate as turn } from 'node:timers/promises';
import { addon } from '../addon.js';
import type { EndedConnection } from '../data-plane.js';
import { DEVICELESS } from '../../test/support/deviceless.js';
import { Driver, Plane, SECRET } from '../../test/support/native-pair.js';

/** One more ends the oldest. */
const CONNECTIONS = 4;

for (const provider of DEVICELESS) {
  test(`${provider}: a client leaves no more requests at an owner than that allows`, async (t) => {
    const plane = await Plane.start({ provider, clientQuota: 2, memoryBytes: 64 << 20 });
    const client = Driver.to(plane, { maxOutstanding: 2000 });
    t.is((await client.put('warm', 'up')).status, 'OK');
    // While the value comes, the changes of its key wait at the owner.
    const large = client.put('k', Buffer.alloc(16 << 20), 60_000);
    const small = Array.from({ length: 1000 }, (_, i) => client.put('k', String(i), 60_000));
    t.is((await large).status, 'OK');
    for (const put of small) t.is((await put).status, 'OK');
    const { workers } = await plane.native.stats();
    // One that has waited for a second is asked to come later; of those that are too many each would be.
    const refused = workers[0]?.refused.ERR_BUSY ?? 0;
    t.true(refused < 100, `${refused} were refused`);
    client.close();
    await plane.close();
  });

  test(`${provider}: an owner that ends a connection says why, and its client learns it`, async (t) => {
    const plane = await Plane.start({ provider });
    const ended: EndedConnection[] = [];
    plane.native.onEnded = (end) => {
      ended.push(end);
    };
    const issuedMs = Date.now();
    const ticket = addon.makeTicket(
      { number: 0, secret: SECRET },
      { client: 77n, issuedMs, expiresMs: issuedMs + 3_600_000, tenant: 0, flags: 3 },
    );
    const clients = Array.from({ length: CONNECTIONS + 1 }, () => Driver.to(plane, { ticket }));
    const told = (): boolean =>
      clients.some(({ events }) => events.some((event) => event.type === 'connected' && event.ended === 'surplus'));
    // Each is connected anew when another one has taken its place.
    const end = Date.now() + 60_000;
    while (!told() || ended.length === 0) {
      t.true(Date.now() < end);
      await turn();
    }
    t.like(ended[0], { client: 77n, worker: 0, provider, why: 'surplus' });
    for (const client of clients) client.close();
    await plane.close();
  });
}
