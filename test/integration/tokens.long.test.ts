/** Tokens of a live cluster are exchanged: by files, without a restart. */
import test from 'ava';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type FarkvError } from '../../client/index.js';
import type { ClusterStatus } from '../../server/status.js';
import { Cluster } from '../support/cluster.js';
import { served, statusWhen, whole } from '../support/status.js';

test.serial('the tokens of servers and operators are exchanged while clients work: no call fails', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-tokens-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const file = (role: string, ...lines: string[]): string => {
    writeFileSync(join(directory, role), `${lines.join('\n')}\n`, { mode: 0o600 });
    return join(directory, role);
  };
  const roles = ['operator', 'peer'] as const;
  const cluster = await Cluster.start(t, {
    servers: 3,
    shards: 3,
    memory: '32mb',
    args: [
      ...roles.flatMap((role) => [`--${role}-token-file`, file(role, `old of ${role}`)]),
      ...['--token-file', file('client', 'of clients'), '--log-format', 'json'],
    ],
  });
  const [s1] = cluster.servers;
  await statusWhen(s1!.address, whole, { token: 'old of operator' });
  const kv = await connect({ servers: cluster.addresses, token: 'of clients', timeoutMs: 60_000 });
  t.teardown(() => kv.close());
  const load = { over: false };
  const working = (async () => {
    for (let i = 0; !load.over; i++) {
      await kv.put(`k${i % 50}`, `${i}`);
      if ((await kv.get(`k${i % 50}`))?.toString() !== `${i}`) throw new Error('another value');
    }
  })();
  const everywhere = async (what: (stderr: string) => boolean, name: string): Promise<void> => {
    for (const one of cluster.servers) await one.waitUntil(() => what(one.stderr), `${one.id}: ${name}`);
  };
  const count = (stderr: string, text: string): number => stderr.split(text).length - 1;
  const isPeer = (line: string): boolean => line.includes('"event":"credential-ended","role":"peer"');

  // Each server looks at the file by itself: links of servers are let in with the old token until the last line goes.
  for (const role of roles) file(role, `old of ${role}`, `new of ${role}`);
  await everywhere(
    (stderr) => count(stderr, `"event":"credentials-changed","file":"${join(directory, 'peer')}"`) > 0,
    'changed',
  );
  for (const role of roles) file(role, `new of ${role}`);
  // Each server has dialed each other one. A connection is ended by the end that looks first, which says so.
  const ended = (): number =>
    cluster.servers.reduce((sum, one) => sum + one.stderr.split('\n').filter(isPeer).length, 0);
  await Promise.race(cluster.servers.map((one) => one.waitUntil(() => ended() >= 6, 'links ended')));
  // A file is looked at when somebody logs in, and once per second at most.
  const isRefused = (error: unknown): boolean => (error as FarkvError).code === 'ERR_UNAUTHORIZED';
  for (let isIn = false; !isIn;)
    isIn = await statusWhen(s1!.address, whole, { token: 'new of operator' }).then(
      () => true,
      (error: unknown) => (isRefused(error) ? false : Promise.reject(error as Error)),
    );
  load.over = true;
  await t.notThrowsAsync(working);
});

test.serial(
  'a client of a server that is cut off from the others by its token gets the map from another one',
  async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'farkv-tokens-'));
    t.teardown(() => rmSync(directory, { recursive: true }));
    const file = (name: string, token: string): string => {
      writeFileSync(join(directory, name), `${token}\n`, { mode: 0o600 });
      return join(directory, name);
    };
    const common = file('peer', 'of servers');
    const args = ['--peer-token-file', common, '--token-file', file('client', 'of clients')];
    args.push('--operator-token-file', file('operator', 'of operators'));
    const cluster = await Cluster.start(t, { servers: 3, shards: 6, memory: '32mb', args, absent: [0, 1, 2] });
    const [s1, , s3] = cluster.servers;
    s3!.args = s3!.args.map((arg) => (arg === common ? file('peer of s3', 'of servers') : arg));
    await Promise.all(cluster.servers.map((server) => server.start()));
    const access = { token: 'of operators' };
    const owners = ({ shards }: ClusterStatus): unknown[] => shards.map(({ owner }) => owner);
    await statusWhen(s1!.address, (status) => whole(status) && owners(status).includes('s3'), access);

    const servers = [...cluster.addresses].reverse();
    const settings = { servers, token: 'of clients', unavailableAfterMs: 500 };
    const kv = await connect(settings);
    t.teardown(() => kv.close());
    const keys = Array.from({ length: 60 }, (_, i) => `k${i}`);
    for (const key of keys) await kv.put(key, key);
    file('peer of s3', 'of nobody');
    await statusWhen(s1!.address, (status) => served(status) && !owners(status).includes('s3'), access);

    // Each failed round may make the client leave a server; there are three.
    const readsAll = async (client: typeof kv): Promise<boolean> => {
      for (const until = performance.now() + 30_000; performance.now() < until;) {
        const answers = await Promise.allSettled(keys.map((key) => client.get(key)));
        if (answers.every((answer, i) => answer.status === 'fulfilled' && answer.value?.toString() === keys[i]))
          return true;
        // Calls that fail at once leave the connections no turn of the event loop.
        await new Promise((resolve) => setImmediate(resolve));
      }
      return false;
    };
    t.true(await readsAll(kv), 'a client that was there before');
    const late = await connect(settings);
    t.teardown(() => late.close());
    t.true(await readsAll(late), 'a client that came later');
  },
);
