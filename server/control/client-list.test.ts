import test from 'ava';
import { TENANTS, hello, opened, Raw, rig } from '../../test/support/control-rig.js';
import { checkOperatorCall } from '../operator-calls.js';
import { checkClientPage, CLIENTS_PAGE, clientPage, type ClientEntry } from './client-list.js';
import { idOf } from './tickets.js';

const entry = (number: number, tenant = ''): ClientEntry => ({
  number,
  id: idOf(BigInt(number)),
  access: 'writer',
  tenant,
  name: 'token',
  address: '127.0.0.1:1',
  sinceMs: number,
  tls: false,
});

test('pages follow each other, have an end, and no client twice', (t) => {
  const all = Array.from({ length: 2 * CLIENTS_PAGE + 3 }, (_, i) => entry(i + 1, i % 2 === 0 ? '' : 'a'));
  const walk = (tenant?: string): number[] => {
    const seen: number[] = [];
    for (let after: number | undefined = 0; after !== undefined;) {
      const page = clientPage(all, { after, ...(tenant === undefined ? {} : { tenant }) });
      t.deepEqual(checkClientPage(page, 'page'), page);
      t.true(page.clients.length <= CLIENTS_PAGE);
      seen.push(...page.clients.map((one) => one.number));
      after = page.next;
    }
    return seen;
  };
  t.deepEqual(
    walk(),
    all.map((one) => one.number),
  );
  t.deepEqual(
    walk('a'),
    all.filter((one) => one.tenant === 'a').map((one) => one.number),
  );
  t.is(clientPage(all, { tenant: 'a' }).count, CLIENTS_PAGE + 1);
  t.deepEqual(clientPage([], {}), { clients: [], count: 0 });
});

test('operators alone may ask', (t) => {
  t.deepEqual(checkOperatorCall('operator', 'clients', { tenant: 'a', other: 1 }), { tenant: 'a' });
  t.throws(() => checkOperatorCall('monitor', 'clients', {}), { code: 'ERR_UNAUTHORIZED' });
  t.throws(() => checkOperatorCall('operator', 'clients', { after: -1 }), { code: 'ERR_PROTOCOL' });
});

test('a client is listed from its login to its end, with what it was let in as', async (t) => {
  const { plane, port, setState } = await rig(t, { wallMs: () => 1234 });
  setState(TENANTS);
  const clients = () => plane.clientPage({}).clients;
  const tokens = ['secret', 'reading secret', 'secret of a'];
  const raw: Raw[] = [];
  for (const token of tokens) {
    const one = new Raw(t, port);
    raw.push(one);
    const [welcome] = await one.say(hello({ token })).got(1);
    const { id, ...rest } = clients().at(-1)!;
    t.is(id, idOf(opened(welcome!)!.client));
    const address = `127.0.0.1:${one.socket.localPort}`;
    const writer = token !== 'reading secret';
    t.deepEqual(rest, {
      number: raw.length,
      access: writer ? 'writer' : 'reader',
      tenant: token.endsWith('a') ? 'a' : '',
      name: 'token',
      address,
      sinceMs: 1234,
      tls: false,
    });
  }
  await new Raw(t, port).say(hello({ role: 'admin', token: "operator's secret" })).got(1);
  t.is(clients().length, 3, 'operators are no clients');
  raw[0]!.socket.destroy();
  while (clients().length > 2) await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(
    clients().map((one) => one.number),
    [2, 3],
  );
});
