/** What a server writes of who did what, as lines of JSON; and that no secret is in them. */
import test from 'ava';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cluster, farkv } from '../support/cluster.js';

test.serial('changes, joins, failed logins and exchanged files are told with who, and no secret is', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'farkv-audit-'));
  t.teardown(() => rmSync(directory, { recursive: true }));
  const secrets = join(directory, 'secrets');
  t.is((await farkv(['secrets', 'init', secrets, '--one-identity-for-all-servers'])).code, 0);
  const args = ['--secrets', secrets, '--log-format', 'json', '--log-level', 'debug'];
  const cluster = await Cluster.start(t, { memory: '32mb', args });
  const server = cluster.server(0);
  const run = (...words: string[]) =>
    farkv([...words, '--connect', server.address, '--tls-ca', join(secrets, 'ca.crt')]);
  const certificate = (role: string) => [
    ...['--tls-cert', join(secrets, `${role}.crt`), '--tls-key', join(secrets, `${role}.key`)],
  ];
  const told = async (event: string, ...what: RegExp[]): Promise<void> => {
    const line = (): string | undefined =>
      server.stderr.split('\n').find((one) => one.includes(`"event":"${event}"`) && what.every((w) => w.test(one)));
    await server.waitUntil(() => line() !== undefined, `${event} ${what.join(' ')}`);
    t.regex((JSON.parse(line() ?? '') as { readonly time: string }).time, /^\d{4}-.*Z$/);
  };

  const made = await run('join-token', 'create', ...certificate('operator'));
  t.is(made.code, 0, made.stderr);
  await told('join-token-add', /"role":"operator","name":"operator","address":"127\.0\.0\.1/, /"result":"ok"/);
  t.not((await run('drain', 's1', ...certificate('operator'))).code, 0);
  await told('drain', /"id":"s1","draining":true,"result":"ERR_BUSY"/);
  t.is((await run('drain', 's1', ...certificate('monitor'))).code, 77);
  await told('drain', /"role":"monitor"/, /"result":"ERR_UNAUTHORIZED"/);
  t.is((await run('revoke', '--tenant', '', '--token-file', join(secrets, 'operator-token'))).code, 0);
  await told('tickets-revoke', /"role":"operator","name":"operator-token"/, /"tenant":"","result":"ok"/);
  t.is((await run('get', 'k', '--token', 'a-wrong-guess')).code, 77);
  await told('login-failed', /"as":"client"/, /"address":"127\.0\.0\.1/);

  const token = join(directory, 'join-token');
  writeFileSync(token, made.stdout, { mode: 0o600 });
  const s2 = await cluster.joiner('s2', [...args, '--join-token-file', token]);
  await s2.start();
  await told('join', /"role":"peer","name":"\*"/, /"server":"s2"/, /"joinToken":"[0-9a-f]{8}","result":"ok"/);

  const before = readFileSync(join(secrets, 'token'), 'utf8');
  writeFileSync(join(secrets, 'token'), `another-token-of-clients\n${before}`);
  while (!server.stderr.includes('"event":"credentials-changed"'))
    await run('get', 'k', '--token', 'another-token-of-clients');
  t.is((await run('put', 'k', 'a-value-of-somebody', '--token', 'another-token-of-clients')).code, 0);

  const secret = [
    made.stdout.trim(),
    'a-wrong-guess',
    'another-token-of-clients',
    'a-value-of-somebody',
    ...readdirSync(secrets)
      .filter((name) => !name.endsWith('.crt'))
      .flatMap((name) => readFileSync(join(secrets, name), 'utf8').split('\n'))
      .filter((line) => line.length > 20 && !line.startsWith('-----')),
  ];
  for (const one of cluster.servers)
    for (const text of secret) t.false(one.stderr.includes(text), `a line of ${one.id} has a secret`);
});
