/** The HTTP port of a server with a certificate: alone, and with the files of `farkv secrets init`, as in production. */
import test from 'ava';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { Cluster } from '../support/cluster.js';
import { ask, bearer } from '../support/http.js';
import { madeSecrets } from '../support/made-secrets.js';
import { TLS_OPTIONS, tlsFile } from '../support/tls-files.js';

const HTTP = ['--http-listen', '127.0.0.1:0'];

test('with a certificate the port speaks TLS alone', async (t) => {
  const cluster = await Cluster.start(t, { args: [...HTTP, ...TLS_OPTIONS], shards: 2 });
  const at = cluster.server(0).readyLine?.http[0] ?? '';
  const ca = readFileSync(tlsFile('ca.pem'));
  t.like(await ask(at, '/healthz', { ca }), { status: 200, text: 'ok\n' });
  t.is((await ask(at, '/metrics', { ca })).status, 200);
  await t.throwsAsync(ask(at, '/healthz'));
});

test('with the files of farkv secrets init a monitor reads by its certificate or its token, others do not', async (t) => {
  const secrets = await madeSecrets(t, '--server', 's1', '--host', 'localhost');
  const logJson = ['--log-format', 'json'];
  const cluster = await Cluster.start(t, { args: [...HTTP, '--secrets', secrets, ...logJson], shards: 2 });
  const server = cluster.server(0);
  const at = server.readyLine?.http[0] ?? '';
  const file = (name: string): string => join(secrets, name);
  // As docs/monitoring.md has it.
  const tls = { ca: readFileSync(file('ca.crt')), servername: 'localhost' };
  const certificate = (role: string) => ({
    ...tls,
    cert: readFileSync(file(`${role}.crt`)),
    key: readFileSync(file(`${role}.key`)),
  });
  const token = (role: string): string => readFileSync(file(role), 'utf8').trim();
  const metrics = async (options: Parameters<typeof ask>[2]): Promise<number> => {
    const { status, text } = await ask(at, '/metrics', options);
    t.is(/^farkv_build_info\{/m.test(text), status === 200, 'figures are for those who may look');
    return status;
  };

  t.like(await ask(at, '/healthz', tls), { status: 200, text: 'ok\n' });
  t.is(await metrics(tls), 401, 'neither token nor certificate');
  for (const role of ['monitor', 'operator']) {
    t.is(await metrics(certificate(role)), 200, `the certificate of ${role}`);
    t.is(await metrics({ ...tls, ...bearer(token(`${role}-token`)) }), 200, `the token of ${role}`);
  }
  for (const role of ['writer', 'reader', 'server-s1'])
    t.is(await metrics(certificate(role)), 401, `the certificate of ${role}`);
  for (const name of ['token', 'reader-token']) t.is(await metrics({ ...tls, ...bearer(token(name)) }), 401, name);
  t.is(await metrics({ ...certificate('monitor'), ...bearer(token('token')) }), 401, 'two that do not agree');

  // A token that is taken out ends what it opened, and opens nothing more. The certificate is good as before.
  const old = token('monitor-token');
  const [host = '', port = ''] = at.split(':');
  const asking = request({ host, port, path: '/events', agent: false, ...tls, ...bearer(old) }).end();
  const [page] = (await once(asking, 'response')) as [IncomingMessage];
  t.is(page.statusCode, 200);
  const ended = new Promise((resolve) => page.once('close', resolve));
  page.on('error', () => undefined).resume();
  writeFileSync(file('monitor-token'), 'the-next-token-of-monitors\n');
  await ended;
  t.is(await metrics({ ...tls, ...bearer(old) }), 401, 'the token that was taken out');
  t.is(await metrics({ ...tls, ...bearer('the-next-token-of-monitors') }), 200);
  t.is(await metrics(certificate('monitor')), 200);
  await server.said(/"event":"credentials-changed","file":"[^"]*monitor-token"/);
  t.regex(server.stderr, /"event":"login-failed","address":"127\.0\.0\.1:\d+","as":"admin"/);
});

test('credentials that others may read are told while nobody comes, and what was read before stays good', async (t) => {
  const secrets = await madeSecrets(t, '--server', 's1', '--host', 'localhost');
  const args = ['--secrets', secrets, '--log-format', 'json'];
  const server = (await Cluster.start(t, { args, shards: 2 })).server(0);
  for (const name of ['reader-token', 'server-s1.key']) {
    const file = join(secrets, name);
    chmodSync(file, 0o644);
    const why = `${file} can be read or changed by others \\(mode 644\\)`;
    await server.said(new RegExp(`${why}.*"event":"credentials-unusable"|"event":"credentials-unusable".*${why}`));
    t.notRegex(server.stderr, new RegExp(`credentials-changed.*${name}`));
    chmodSync(file, 0o600);
    await server.said(/"event":"credentials-changed"/);
  }
});
