import test from 'ava';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cluster, farkv } from '../support/cluster.js';
import { statusWhen, whole } from '../support/status.js';

test.serial('secrets for all roles are made by one command, and each opens what it is for', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-secrets-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const secrets = join(directory, 'made');
  const nobody = await farkv(['secrets', 'init', secrets]);
  t.is(nobody.code, 2);
  t.regex(nobody.stderr, /--server s1 --server s2.*whoever has it is every server/);
  t.false(existsSync(secrets));
  for (const [args, message] of [
    [['--server', 's1=999.1.2.3'], /--server s1=999\.1\.2\.3: "999\.1\.2\.3" is not an IPv4 address/],
    [['--server', 's1=höst'], /--server s1=höst: "höst" is not a host name/],
    [['--server', 's1=10.0.0.1,,db1'], /--server s1=10\.0\.0\.1,,db1: "" is not a host name/],
    [['--server', 's1='], /--server s1=: "" is not a host name/],
    [['--server', 's1', '--host', 'fe80::1%eth0'], /--host: "fe80::1%eth0": .* without a zone/],
  ] as const) {
    const refused = await farkv(['secrets', 'init', secrets, ...args]);
    t.is(refused.code, 2, refused.stderr);
    t.regex(refused.stderr, message);
    t.false(existsSync(secrets));
  }
  const made = await farkv(['secrets', 'init', secrets, '--tokens-only']);
  t.is(made.code, 0, made.stderr);
  t.is(statSync(secrets).mode & 0o777, 0o700);
  for (const name of readdirSync(secrets)) t.is(statSync(join(secrets, name)).mode & 0o777, 0o600, name);
  const again = await farkv(['secrets', 'init', secrets, '--server', 's1']);
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
  t.regex(
    changed.stderr,
    /ticket or token refused \(the token or certificate of this client is one of a reader: it may only read\)/,
  );
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
