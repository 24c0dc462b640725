/** `farkv clients`: an operator finds a client at any server, and ends it by its id. */
import test from 'ava';
import { connect } from '../../client/index.js';
import type { ClientsReport } from '../../server/cli/commands/clients.js';
import { Cluster, farkv } from '../support/cluster.js';

const TOKENS = {
  token: 'of clients',
  'operator-token': 'of operators',
  'monitor-token': 'of monitors',
  'peer-token': 'of servers',
  tenants: 'a,shards=1,token=of a',
} as const;

test.serial(
  'clients of all servers are listed to operators alone, by tenant, and each can be revoked by its id',
  async (t) => {
    const args = Object.entries(TOKENS).flatMap(([name, value]) => [`--${name}`, value]);
    const cluster = await Cluster.start(t, { servers: 2, shards: 1, memory: '32mb', args });
    const run = (token: string, ...words: string[]) =>
      farkv([...words, '--connect', cluster.addresses[0] ?? '', '--token', token]);
    const listed = async (...words: string[]): Promise<ClientsReport> => {
      const { code, stdout, stderr } = await run(TOKENS['operator-token'], 'clients', '--json', ...words);
      t.is(code, 0, stderr);
      return JSON.parse(stdout) as ClientsReport;
    };
    let lost = (): void => undefined;
    const gone = new Promise<void>((resolve) => (lost = resolve));
    const clients = await Promise.all(
      cluster.addresses.map((server, i) =>
        connect({
          servers: [server],
          token: i === 0 ? TOKENS.token : 'of a',
          onEvent: (event) => {
            if (i === 1 && event.type === 'control' && !event.connected) lost();
          },
        }),
      ),
    );
    t.teardown(() => Promise.all(clients.map((client) => client.close())));

    const all = await listed();
    t.deepEqual(
      all.clients.map((one) => [one.server, one.tenant, one.access, one.tls]),
      [
        ['s1', '', 'writer', false],
        ['s2', 'a', 'writer', false],
      ],
    );
    t.deepEqual([all.count, all.missing], [2, []]);
    const few = await listed('--limit', '1');
    t.deepEqual([few.clients.length, few.count], [1, 2]);
    const [ofTenant, ...others] = (await listed('--tenant', 'a')).clients;
    t.deepEqual([ofTenant, others], [all.clients[1], []]);

    t.is((await run(TOKENS['monitor-token'], 'clients')).code, 77);
    t.is((await run(TOKENS.token, 'clients')).code, 77);
    const shown = await run(TOKENS['operator-token'], 'clients', '--limit', '1');
    t.regex(shown.stdout, /^CLIENT +TENANT +ROLE +NAME +ADDRESS +TLS +SERVER +SINCE\n[0-9a-f]{16} .*\n1 more: /);

    const id = ofTenant?.id ?? '';
    t.is((await run(TOKENS['operator-token'], 'revoke', '--client', id)).code, 0);
    await gone;
    await clients[1]!.put('k', 'v');
    const after = (await listed()).clients.map((one) => one.id);
    t.true(after.includes(all.clients[0]!.id));
    t.false(after.includes(id));
  },
);
