import test from 'ava';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect as connectTls } from 'node:tls';
import { once } from 'node:events';
import { Cluster, farkv } from '../support/cluster.js';
import { statusWhen, whole } from '../support/status.js';

const fixture = (name: string): string => fileURLToPath(new URL(`../../../test/fixtures/tls/${name}`, import.meta.url));
// git keeps no such mode, and a key that others may read is refused.
chmodSync(fixture('server-key.pem'), 0o600);
const TLS = [
  '--tls-cert',
  fixture('server.pem'),
  '--tls-key',
  fixture('server-key.pem'),
  '--tls-ca',
  fixture('ca.pem'),
];

test.serial('a token is asked for, and a wrong one is 77', async (t) => {
  const cluster = await Cluster.start(t, { memory: '32mb', env: { FARKV_OPERATOR_TOKEN: 'right' } });
  const status = (...args: string[]) => farkv(['status', '--connect', cluster.server(0).address, ...args]);
  t.is((await status('--token', 'right')).code, 0);
  const none = await status();
  t.is(none.code, 77);
  t.regex(none.stderr, /wants a token of an operator/);
  t.is((await status('--token', 'wrong')).code, 77);
  t.is((await farkv(['status', '--connect', cluster.server(0).address], { env: { FARKV_TOKEN: 'right' } })).code, 0);
});

test.serial('three servers with TLS and a token; only TLS 1.3 with a trusted authority is spoken', async (t) => {
  const cluster = await Cluster.start(t, {
    servers: 3,
    shards: 3,
    memory: '32mb',
    args: [...TLS, '--token', 'of clients', '--operator-token', 'right', '--peer-token', 'of servers'],
  });
  const { address } = cluster.server(1);
  await statusWhen(address, whole, { token: 'right', ca: readFileSync(fixture('ca.pem')) });

  t.is(
    (await farkv(['status', '--connect', address, '--token', 'right', '--tls-ca', fixture('stranger.pem')])).code,
    77,
  );
  for (const command of [['status'], ['get', 'a']]) {
    const without = await farkv([...command, '--connect', address, '--token', 'right', '--timeout', '1s']);
    t.is(without.code, 69, 'without TLS');
    t.regex(
      without.stderr,
      /closed the connection without an answer: does it want TLS\?|was closed without an answer: does it want TLS\?/,
    );
  }
  for (const other of ['of servers', 'of clients'])
    t.is((await farkv(['status', '--connect', address, '--token', other, '--tls-ca', fixture('ca.pem')])).code, 77);

  const old = connectTls({
    host: '127.0.0.1',
    port: Number(address.split(':')[1]),
    rejectUnauthorized: false,
    maxVersion: 'TLSv1.2',
  });
  t.teardown(() => old.destroy());
  await t.throwsAsync(once(old, 'secureConnect'), { message: /protocol version|reset|disconnected/i });
});

test.serial('secrets for all roles are made by one command, and each opens what it is for', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-secrets-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const secrets = join(directory, 'made');
  const made = await farkv(['secrets', 'init', secrets]);
  t.is(made.code, 0, made.stderr);
  t.is(statSync(secrets).mode & 0o777, 0o700);
  for (const name of readdirSync(secrets)) t.is(statSync(join(secrets, name)).mode & 0o777, 0o600, name);
  const again = await farkv(['secrets', 'init', secrets]);
  t.is(again.code, 2);
  t.regex(again.stderr, /token exists/);

  const cluster = await Cluster.start(t, { servers: 2, shards: 2, memory: '32mb', args: ['--secrets', secrets] });
  const as = (role: string, ...words: string[]) =>
    farkv([...words, '--connect', cluster.server(0).address, '--token-file', join(secrets, role)]);
  await statusWhen(cluster.server(0).address, whole, {
    token: readFileSync(join(secrets, 'operator-token'), 'utf8').trim(),
  });
  t.is((await as('token', 'put', 'k', 'v')).code, 0);
  t.is((await as('reader-token', 'get', 'k')).stdout, 'v\n');
  const changed = await as('reader-token', 'put', 'k', 'w');
  t.is(changed.code, 77, changed.stderr);
  t.is((await as('token', 'get', 'k')).stdout, 'v\n');
  t.is((await as('monitor-token', 'status')).code, 0);
  t.is((await as('monitor-token', 'drain', 's1')).code, 77);
  for (const role of ['token', 'reader-token', 'peer-token']) t.is((await as(role, 'status')).code, 77, role);
  for (const role of ['operator-token', 'monitor-token', 'peer-token'])
    t.is((await as(role, 'get', 'k')).code, 77, role);
  // Both are good while they are exchanged, without a restart.
  const old = readFileSync(join(secrets, 'token'), 'utf8');
  writeFileSync(join(secrets, 'token'), `the next one\n${old}`);
  writeFileSync(join(directory, 'old'), old, { mode: 0o600 });
  const withFile = async (file: string): Promise<number | null> =>
    (await farkv(['get', 'k', '--connect', cluster.server(0).address, '--token-file', file])).code;
  while ((await withFile(join(secrets, 'token'))) === 77);
  t.is(await withFile(join(directory, 'old')), 0);
});

test.serial('servers with different peer tokens do not make a cluster', async (t) => {
  const cluster = await Cluster.start(t, {
    servers: 3,
    shards: 3,
    memory: '32mb',
    args: ['--peer-token', 'one'],
    ready: false,
  });
  const odd = cluster.server(2);
  await odd.kill();
  odd.args = odd.args.map((arg) => (arg === 'one' ? 'another' : arg));
  odd.launch();
  t.is((await odd.exit).code, 77);
  t.regex(odd.stderr, /the token is not one of a server/);
});

test.serial('beyond loopback a server starts with a token or when it is told that it may', async (t) => {
  const refused = await farkv(['server', '--listen', '0.0.0.0:0']);
  t.is(refused.code, 2);
  t.regex(refused.stderr, /can be reached from other machines/);
  for (const args of [['--insecure'], ['--token', 'x']]) {
    const cluster = await Cluster.start(t, { memory: '32mb', args: ['--fabric-listen', '0.0.0.0:0', ...args] });
    const tcp = cluster.server(0).readyLine?.fabric.filter((a) => a.provider === 'tcp') ?? [];
    t.true(
      tcp.length > 0 && tcp.every((a) => !a.address.startsWith('0.0.0.0')),
      'the wildcard is told as addresses that can be dialed',
    );
    await cluster.remove();
  }
});

test.serial('a certificate and a key that do not belong together are refused at the start', async (t) => {
  const { code, stderr } = await farkv([
    'server',
    '--listen',
    '127.0.0.1:0',
    '--tls-cert',
    fixture('ca.pem'),
    '--tls-key',
    fixture('server-key.pem'),
  ]);
  t.is(code, 2);
  t.regex(stderr, /cannot be used/);
});
