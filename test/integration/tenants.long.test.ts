/**
 * Tenants with real servers: two tenants share nothing, whatever they send; operators see all; the domains of a
 * cluster are fixed.
 */
import test, { type ExecutionContext } from 'ava';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type BufferValue, type Client } from '../../client/index.js';
import { ControlClient } from '../../net/control-client.js';
import { Cluster, farkv } from '../support/cluster.js';
import { statusOf } from '../support/status.js';
import { clientOf, toldTo } from '../support/tenants.js';

/** Where each domain's shards are: the default one has those of --shards. */
const DOMAINS = { rest: [0, 1], a: [2, 3, 4], b: [5, 6] } as const;
const TOKEN = { rest: 'of the rest', a: 'of tenant a', b: 'of tenant b' } as const;
type Tenant = keyof typeof TOKEN;
const OPERATOR = { token: 'of operators' } as const;
const TENANTS = Object.keys(TOKEN) as Tenant[];
const TRUST = [
  '--token',
  TOKEN.rest,
  '--operator-token',
  OPERATOR.token,
  '--peer-token',
  'of servers',
  '--tenants',
  `b,shards=2,token=${TOKEN.b}`,
  '--tenants',
  `a,shards=3,token=${TOKEN.a},max-clients=100`,
];

const start = (t: ExecutionContext, servers: number, args: readonly string[] = TRUST): Promise<Cluster> =>
  Cluster.start(t, { servers, shards: DOMAINS.rest.length, args: ['--data-plane-threads', '1', ...args] });

async function clientsOf(
  t: ExecutionContext,
  cluster: Cluster,
  transport: 'shm' | 'tcp',
): Promise<Record<Tenant, Client<BufferValue, Buffer>>> {
  const patience = { timeoutMs: 60_000, connectTimeoutMs: 60_000, unavailableAfterMs: 60_000 };
  const open = async (tenant: Tenant) => {
    const client = await connect({
      servers: cluster.addresses,
      token: TOKEN[tenant],
      transport,
      strict: true,
      ...patience,
    });
    t.teardown(() => client.close());
    return client;
  };
  return { rest: await open('rest'), a: await open('a'), b: await open('b') };
}

for (const transport of ['shm', 'tcp'] as const) {
  test.serial(`${transport}: the same keys have a value of their own in each tenant`, async (t) => {
    const cluster = await start(t, 2);
    const clients = await clientsOf(t, cluster, transport);
    const keys = Array.from({ length: 40 }, (_, i) => `key-${i}`);
    const large = Object.fromEntries(TENANTS.map((tenant, i) => [tenant, Buffer.alloc(1 << 20, i + 1)])) as Record<
      Tenant,
      Buffer
    >;
    for (const tenant of TENANTS) {
      for (const key of keys) await clients[tenant].put(key, `${key} of ${tenant}`);
      await clients[tenant].put('large', large[tenant]);
    }
    t.true(await clients.a.delete('key-0'));
    for (const tenant of TENANTS) {
      for (const key of keys) {
        t.is(
          (await clients[tenant].get(key))?.toString(),
          tenant === 'a' && key === 'key-0' ? undefined : `${key} of ${tenant}`,
        );
        t.true((DOMAINS[tenant] as readonly number[]).includes(clients[tenant].shardOf(key)));
      }
      t.true((await clients[tenant].get('large'))?.equals(large[tenant]));
      const found: string[] = [];
      for await (const { key } of clients[tenant].scan()) found.push(String(key));
      t.deepEqual(
        [...new Set(found)].sort(),
        [...keys, 'large'].filter((key) => tenant !== 'a' || key !== 'key-0').sort(),
      );
    }
    const prepared = clients.a.key('key-1');
    t.is((await clients.b.get(prepared))?.toString(), 'key-1 of b', 'a key that was prepared for another domain');
  });

  test.serial(
    `${transport}: a tenant that knows where another's memory lies, and its rkeys, gets nothing`,
    async (t) => {
      const cluster = await start(t, 1);
      const { b } = await clientsOf(t, cluster, transport);
      await b.put('secret', 'of b');
      const { address } = cluster.server(0);
      const [toldA, toldB] = [await toldTo(address, TOKEN.a), await toldTo(address, TOKEN.b)];
      t.deepEqual(
        toldA.map.shards.map((s) => s.shard),
        [...DOMAINS.a],
      );
      t.deepEqual(
        toldB.map.shards.map((s) => s.shard),
        [...DOMAINS.b],
      );
      const rkeys = (told: typeof toldA) => told.map.shards.flatMap((s) => s.regions.map((r) => r.rkey));
      t.true(rkeys(toldB).length > 0);
      t.false(rkeys(toldB).some((rkey) => rkeys(toldA).includes(rkey)));

      const thief = clientOf(toldB, toldA.ticket, transport);
      t.teardown(() => thief.close());
      t.is((await thief.get('secret', 60_000)).status, 'ERR_UNAUTHORIZED');
      t.is((await thief.put('secret', 'of a', 60_000)).status, 'ERR_UNAUTHORIZED');
      t.is((await thief.put('secret', Buffer.alloc(1 << 20), 60_000)).status, 'ERR_UNAUTHORIZED');
      t.is((await thief.delete('secret', 60_000)).status, 'ERR_UNAUTHORIZED');
      t.is((await thief.compareAndSwap('secret', 0n, 'of a')).status, 'ERR_UNAUTHORIZED');
      t.is(
        (await thief.outcome(() => thief.native.scan(0, DOMAINS.b[0], 0n, 10, true, 60_000))).status,
        'ERR_UNAUTHORIZED',
      );
      t.is(thief.native.stats().getHits, 0);
      t.is((await b.get('secret'))?.toString(), 'of b');

      const owner = clientOf(toldB, toldB.ticket, transport);
      t.teardown(() => owner.close());
      const own = await owner.get('secret', 60_000);
      t.deepEqual([own.status, own.value.toString()], ['OK', 'of b'], 'the same with the right ticket');
    },
  );
}

test.serial("a shard that moves stays its domain's", async (t) => {
  const cluster = await start(t, 2);
  const { address } = cluster.server(0);
  const { a, b } = await clientsOf(t, cluster, 'tcp');
  const operator = ['--connect', address, '--token', OPERATOR.token];
  let key = 'key';
  for (let i = 0; a.shardOf(key) !== DOMAINS.a[0] || b.shardOf(key) !== DOMAINS.b[0]; i++) key = `key-${i}`;
  await a.put(key, 'of a');
  for (const shard of [DOMAINS.a[0], DOMAINS.b[0]]) {
    const owner = (await statusOf(address, OPERATOR)).shards[shard]?.owner;
    const moved = await farkv(['shard', 'move', String(shard), owner === 's1' ? 's2' : 's1', ...operator]);
    t.is(moved.code, 0, moved.stderr);
  }
  await b.put(key, 'of b');
  t.is((await a.get(key))?.toString(), 'of a', 'its next owner copied it under a ticket of its domain');
  await a.put(key, 'of a again');
  t.deepEqual([await a.get(key), await b.get(key)].map(String), ['of a again', 'of b']);
  const [toldA, toldB] = [await toldTo(address, TOKEN.a), await toldTo(address, TOKEN.b)];
  const thief = clientOf(toldB, toldA.ticket, 'tcp');
  t.teardown(() => thief.close());
  t.is((await thief.get(key, 60_000)).status, 'ERR_UNAUTHORIZED');
});

test.serial('operators see all domains, and a tenant is no operator', async (t) => {
  const cluster = await start(t, 1);
  const { address } = cluster.server(0);
  const status = await statusOf(address, OPERATOR);
  t.deepEqual(status.tenants, [
    { name: 'a', firstShard: 2, shards: 3 },
    { name: 'b', firstShard: 5, shards: 2 },
  ]);
  t.is(status.shards.length, 7);
  t.regex(
    (await farkv(['status', '--connect', address, '--token', OPERATOR.token])).stdout,
    /tenants and their shards: a 2 to 4, b 5 to 6; the others/,
  );
  for (const args of [['status'], ['drain', 's1']])
    t.is((await farkv([...args, '--connect', address, '--token', TOKEN.a])).code, 77);
  await toldTo(address, TOKEN.a, async (client: ControlClient) => {
    await t.throwsAsync(client.call('status', {}, 60_000), { code: 'ERR_UNAUTHORIZED' });
  });
  const put = await farkv(['put', 'k', 'v', '--connect', address, '--token', TOKEN.b]);
  t.is(put.code, 0, put.stderr);
  t.is((await farkv(['get', 'k', '--connect', address, '--token', TOKEN.a])).code, 3);
  t.is((await farkv(['get', 'k', '--connect', address, '--token', 'of nobody'])).code, 77);
});

test.serial(
  'the domains of a cluster outlive its servers, and a server that thinks of others does not start',
  async (t) => {
    const cluster = await start(t, 1);
    const server = cluster.server(0);
    const made = server.args;
    const { a } = await clientsOf(t, cluster, 'tcp');
    const shard = a.shardOf('key');
    await server.stop();
    for (const [from, to] of [
      ['a,shards=3', 'a,shards=4'],
      ['a,shards=3', 'c,shards=3'],
    ] as const) {
      server.args = made.map((arg) => arg.replace(from, to));
      server.launch();
      t.is((await server.exit).code, 2);
      t.regex(
        server.stderr,
        /--tenants differs from the tenants that the cluster was made with, which are fixed: a \(3 shards\), b \(2 shards\), not /,
      );
      t.false(server.stderr.includes(TOKEN.a));
    }
    server.args = made.slice(0, -4);
    server.launch();
    t.is((await server.exit).code, 2);
    t.regex(server.stderr, /b \(2 shards\), not none/);

    const file = join(tmpdir(), `farkv-token-${process.pid}`);
    await writeFile(file, 'another of tenant a\n', { mode: 0o600 });
    server.args = made.map((arg) => arg.replace(`token=${TOKEN.a}`, `token-file=${file}`));
    await server.start();
    const again = await connect({
      servers: cluster.addresses,
      token: 'another of tenant a',
      timeoutMs: 60_000,
      connectTimeoutMs: 60_000,
    });
    t.teardown(() => again.close());
    t.is(again.shardOf('key'), shard);
    await t.throwsAsync(connect({ servers: cluster.addresses, token: TOKEN.a }), { code: 'ERR_UNAUTHORIZED' });
  },
);

test.serial('a cluster that was made without tenants gets none later', async (t) => {
  const cluster = await start(t, 1, TRUST.slice(0, 6));
  const server = cluster.server(0);
  t.false('tenants' in (await statusOf(server.address, OPERATOR)));
  await server.stop();
  server.args = [...server.args, ...TRUST.slice(6)];
  server.launch();
  t.is((await server.exit).code, 2);
  t.regex(server.stderr, /fixed: none, not a \(3 shards\), b \(2 shards\)/);
});
