import test, { type ExecutionContext } from 'ava';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  connect,
  FarkvError,
  type BufferValue,
  type Client,
  type ClientEvent,
  type ConnectOptions,
} from '../../client/index.js';
import { Cluster, freePorts } from '../support/cluster.js';
import { PATIENT } from '../support/sdk-clients.js';
import { statusOf } from '../support/status.js';

const CHILD = fileURLToPath(new URL('../support/sdk-child.js', import.meta.url));
const TLS = new URL('../../../test/fixtures/tls/', import.meta.url);
const LEASE = ['--lease-ms', '300'];
/** Nobody takes the shards of a dead owner in that time: it is back before. */
const STAY = [...LEASE, '--owner-lease-ms', '300000'];

async function connected(
  t: ExecutionContext,
  cluster: Cluster,
  transport: 'shm' | 'tcp',
  options: Partial<ConnectOptions> = {},
): Promise<Client<BufferValue, Buffer>> {
  const kv = await connect({ servers: cluster.addresses, transport, strict: true, ...PATIENT, ...options });
  t.teardown(() => kv.close());
  return kv;
}

const codeOf = (error: unknown): string => (error instanceof FarkvError ? error.code : String(error));

/** As a program would that expects the owner back; every other error is the test's. */
async function untilAvailable<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (codeOf(error) !== 'ERR_SHARD_UNAVAILABLE') throw error;
      await setImmediate();
    }
  }
}

/** For each server, keys whose shards it owns. */
async function keysOf(
  kv: Client<BufferValue, Buffer>,
  cluster: Cluster,
  count: number,
): Promise<Map<string, string[]>> {
  const { shards } = await statusOf(cluster.server(0).address);
  const keys = new Map<string, string[]>();
  for (let i = 0; [...keys.values()].filter((list) => list.length >= count).length < cluster.servers.length; i++) {
    const key = `key-${i}`;
    const owner = shards[kv.shardOf(key)]?.owner ?? '';
    keys.set(owner, [...(keys.get(owner) ?? []), key]);
  }
  return keys;
}

for (const transport of ['shm', 'tcp'] as const) {
  test(`${transport}: a dead server's shards answer with an error, the others go on, and it comes back`, async (t) => {
    const cluster = await Cluster.start(t, { servers: 3, level: 'cache', shards: 6, args: STAY });
    const kv = await connected(t, cluster, transport, { unavailableAfterMs: 500 });
    const keys = await keysOf(kv, cluster, 20);
    const all = [...keys.values()].flat();
    await kv.putMany(all.map((key) => ({ key, value: `${key} before` })));

    // One of the three leads the metadata; each is killed in turn, so the leader is among them.
    for (const server of cluster.servers) {
      await server.kill();
      const dead = new Set(keys.get(server.id));
      const living = all.filter((key) => !dead.has(key));
      for (const key of living) t.regex(String(await kv.get(key)), new RegExp(`^${key} `));
      await kv.putMany(living.map((key) => ({ key, value: `${key} while ${server.id} was dead` })));
      // Their time-out is minutes away: the error comes because the owner is known to be gone.
      const patient = { timeoutMs: 300_000 };
      for (const key of [...dead].slice(0, 3)) {
        const calls = [
          kv.get(key, patient),
          kv.getMany([key], patient),
          kv.put(key, 'x', patient),
          kv.delete(key, patient),
          kv.compareAndSwap(key, 0n, 'x', patient),
        ];
        for (const call of calls)
          await t.throwsAsync(
            call,
            { code: 'ERR_SHARD_UNAVAILABLE', message: new RegExp(`the owner of shard \\d, ${server.id}, `) },
            key,
          );
      }
      await server.start();
      for (const key of dead) {
        // Its memory is gone with it; what was read before must not come back. Until the client has heard of the new
        // start, it goes on refusing.
        t.is(await untilAvailable(() => kv.get(key)), undefined, key);
        await kv.put(key, `${key} again`);
      }
    }
    const values = await kv.getMany(all);
    t.deepEqual(
      values.filter((value) => value === undefined),
      [],
    );
  });

  test(`${transport}: a client that is told to wait for an owner that is gone waits until it is back`, async (t) => {
    const cluster = await Cluster.start(t, { servers: 3, level: 'cache', shards: 3, args: STAY });
    const kv = await connected(t, cluster, transport, { unavailableAfterMs: Number.POSITIVE_INFINITY });
    const keys = await keysOf(kv, cluster, 3);
    const [key = ''] = keys.get('s2') ?? [];
    await kv.put(key, 'before');
    await cluster.server(1).kill();
    // Its time is over before the owner is back, and the reason is told, once the client has noticed: what it sends
    // before is in doubt.
    while ((await kv.get(key, { timeoutMs: 50 }).then(() => 'ok', codeOf)) !== 'ERR_SHARD_UNAVAILABLE')
      await setImmediate();
    const waiting = [kv.get(key, { timeoutMs: 300_000 }), kv.put(`${key}-not-there`, 'x', { timeoutMs: 300_000 })];
    await cluster.server(1).start();
    t.is((await Promise.all(waiting))[0], undefined);
    await kv.put(key, 'after', { timeoutMs: 300_000 });
    t.is(String(await kv.get(key)), 'after');
  });

  test(`${transport}: a server killed in the middle of a load fails what was its own, and only that`, async (t) => {
    const cluster = await Cluster.start(t, { servers: 3, level: 'cache', shards: 6, args: STAY });
    const kv = await connected(t, cluster, transport);
    const keys = Array.from({ length: 20_000 }, (_, i) => `load-${i}`);
    const value = Buffer.alloc(500, 'v');
    const codes = new Map<string, string>();
    let stored = 0;
    let killed: Promise<unknown> | undefined;
    await Promise.all(
      keys.map(async (key) => {
        // Those of the dead server end because it is gone, not because a busy machine takes its time over 20,000 of
        // them.
        codes.set(key, await kv.put(key, value, { timeoutMs: 300_000 }).then(() => 'ok', codeOf));
        if (codes.get(key) === 'ok' && ++stored === 5000) killed = cluster.server(1).kill();
      }),
    );
    await killed;
    const kinds = new Set(codes.values());
    t.deepEqual(
      [...kinds].filter(
        (code) =>
          !['ok', 'ERR_TIMEOUT', 'ERR_INDETERMINATE', 'ERR_DISCONNECTED', 'ERR_SHARD_UNAVAILABLE'].includes(code),
      ),
      [],
    );
    const lost = keys.filter((key) => codes.get(key) !== 'ok');
    t.true(lost.length > 0 && lost.length < keys.length);
    await cluster.server(1).start();
    // Again, as a program would: whatever had failed goes through, and what was acknowledged by the living is there.
    await untilAvailable(() =>
      kv.putMany(
        lost.map((key) => ({ key, value })),
        { timeoutMs: 300_000 },
      ),
    );
    const missing = (await kv.getMany(keys)).filter((v) => v === undefined).length;
    t.true(missing < keys.length / 2, `${missing} of the killed server's keys were acknowledged before`);
    for (const v of await kv.getMany(lost)) t.true(v?.equals(value));
  });

  test(`${transport}: a client killed in the middle of a large PUT leaves the old value or the new one`, async (t) => {
    const cluster = await Cluster.start(t, { servers: 1, shards: 1, memory: '512mb', args: LEASE });
    const kv = await connected(t, cluster, transport);
    for (let round = 0; round < 3; round++) {
      const child = spawn(process.execPath, [CHILD, 'large', cluster.addresses.join(','), transport, '0'], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      await once(child.stdout, 'data');
      child.kill('SIGKILL');
      await once(child, 'close');
      const value = await kv.get('large', { timeoutMs: 30_000 });
      t.is(value?.length, 48 << 20);
      const [first] = value ?? [];
      t.true(value?.equals(Buffer.alloc(48 << 20, first)), 'one value, whole');
      await kv.put('small', `round ${round}`);
      t.is(String(await kv.get('small')), `round ${round}`);
    }
  });
}

test('TLS and a token, by the SDK', async (t) => {
  const file = (name: string) => fileURLToPath(new URL(name, TLS));
  // git keeps no such mode, and a key that others may read is refused.
  chmodSync(file('server-key.pem'), 0o600);
  const cluster = await Cluster.start(t, {
    servers: 1,
    args: [
      '--token',
      'sesame',
      '--tls-cert',
      file('server.pem'),
      '--tls-key',
      file('server-key.pem'),
      '--tls-ca',
      file('ca.pem'),
    ],
  });
  const ca = readFileSync(file('ca.pem'));
  const kv = await connect({ servers: cluster.addresses, token: 'sesame', tls: { ca } });
  await kv.put('a', 'x');
  t.is(String(await kv.get('a')), 'x');
  await kv.close();
  await t.throwsAsync(connect({ servers: cluster.addresses, token: 'sesame', tls: true }), {
    code: 'ERR_UNAUTHORIZED',
  });
  await t.throwsAsync(connect({ servers: cluster.addresses, token: 'wrong', tls: { ca } }), {
    code: 'ERR_UNAUTHORIZED',
  });
  await t.throwsAsync(connect({ servers: cluster.addresses, token: 'sesame', connectTimeoutMs: 1000 }), {
    instanceOf: FarkvError,
  });
});

/** The other cluster listens where the client's own did, its data plane too. */
for (const age of ['older', 'newer'] as const) {
  test(`a client whose cluster is gone is told so by every call: the next one's map is ${age}`, async (t) => {
    const [port] = await freePorts(1);
    const cluster = await Cluster.start(t, { args: [...LEASE, '--fabric-listen', `127.0.0.1:${port}`] });
    const server = cluster.server(0);
    const next = `${server.dataDir}-next`;
    // Each start changes the map.
    const restarts = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        await server.kill();
        await server.start();
      }
    };
    await restarts(age === 'newer' ? 3 : 0);
    await server.kill();
    renameSync(server.dataDir, next);
    await server.start();
    await restarts(age === 'older' ? 3 : 0);

    let mapEpoch = -1;
    const told = new Set<string>();
    const onEvent = (event: ClientEvent): void => {
      if (event.type === 'control') told.add(event.reason ?? '');
      else if (event.type === 'map') mapEpoch = event.mapEpoch;
    };
    const options = { transport: 'tcp', strict: true, unavailableAfterMs: 500, onEvent } as const;
    const kv = await connected(t, cluster, 'tcp', options);
    await kv.put('a', 'x');
    const own = mapEpoch;
    await server.kill();
    rmSync(server.dataDir, { recursive: true });
    renameSync(next, server.dataDir);
    await server.start();

    const calls = [() => kv.get('a'), () => kv.put('a', 'y'), () => kv.getMany(['a', 'b']), () => kv.scanPage()];
    while (![...told].some((reason) => reason.startsWith('this is cluster')))
      for (const call of calls) await t.throwsAsync(call, { instanceOf: FarkvError });
    const gone = {
      code: 'ERR_SHARD_UNAVAILABLE',
      message: /the cluster of this client, .*, is gone: .* Connect again/,
    };
    for (const call of calls) await t.throwsAsync(call, gone);
    t.is(mapEpoch, own);

    const other = await connected(t, cluster, 'tcp', options);
    t.is(await other.get('a'), undefined);
    t.is(mapEpoch > own, age === 'newer', `maps ${own} and ${mapEpoch}`);
  });
}
