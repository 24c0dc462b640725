/** Clusters with the certificates of `farkv secrets init`: who may do what, and their exchange while clients work. */
import test, { type ExecutionContext } from 'ava';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as dialTls } from 'node:tls';
import { connect } from '../../client/index.js';
import { ControlClient } from '../../net/control-client.js';
import { Cluster, farkv } from '../support/cluster.js';
import { madeSecrets } from '../support/made-secrets.js';
import { PATIENT } from '../support/sdk-clients.js';

interface Secured {
  readonly cluster: Cluster;
  readonly secrets: string;
  readonly run: (...words: string[]) => ReturnType<typeof farkv>;
}

async function secured(t: ExecutionContext, servers: number, ...init: string[]): Promise<Secured> {
  const secrets = await madeSecrets(t, '--cluster', 'prod', ...init);
  const cluster = await Cluster.start(t, { servers, shards: servers, memory: '32mb', args: ['--secrets', secrets] });
  const run = (...words: string[]) => farkv([...words, '--connect', cluster.addresses.join(','), '--timeout', '1m']);
  return { cluster, secrets, run };
}

test.serial('certificates of one directory make a cluster, and each opens its role without a token', async (t) => {
  const { cluster, secrets, run } = await secured(t, 2, '--server', 's1', '--server', 's2');
  const as = (role: string, ...words: string[]) =>
    run(
      ...words,
      ...['--tls-ca', join(secrets, 'ca.crt')],
      ...['--tls-cert', join(secrets, `${role}.crt`), '--tls-key', join(secrets, `${role}.key`)],
    );
  const written = await run('put', 'k', 'v', '--secrets', secrets);
  t.is(written.code, 0, written.stderr);
  t.is((await as('reader', 'get', 'k')).stdout, 'v\n');
  t.is((await as('reader', 'put', 'k', 'w')).code, 77);
  t.is((await run('status', '--secrets', secrets)).code, 0);
  t.is((await as('monitor', 'status')).code, 0);
  t.is((await as('monitor', 'drain', 's1')).code, 77);
  for (const role of ['writer', 'server-s1']) t.is((await as(role, 'status')).code, 77, role);
  for (const role of ['operator', 'server-s1']) t.is((await as(role, 'get', 'k')).code, 77, role);
  t.is((await farkv(['get', 'k', '--connect', cluster.server(0).address, '--timeout', '1s'])).code, 69, 'without TLS');

  // A server is nobody but whom its certificate names.
  const pair = (role: string) => ({
    ca: readFileSync(join(secrets, 'ca.crt')),
    cert: readFileSync(join(secrets, `${role}.crt`)),
    key: readFileSync(join(secrets, `${role}.key`)),
  });
  const comes = (role: string, from: string) =>
    ControlClient.open({
      address: cluster.server(0).peer,
      trust: { value: pair(role) },
      timeoutMs: 60_000,
      hello: { role: 'peer', from, instance: '0a'.repeat(8), clusterId: '', join: true },
    });
  t.false(existsSync(join(secrets, 'peer-token')), 'what opens every name');
  const joiner = await comes('server-s2', 's2');
  t.is(joiner.welcome.instance, undefined);
  joiner.close();
  await t.throwsAsync(comes('server-s2', 's9'), { code: 'ERR_UNAUTHORIZED', message: /one of s2, not of s9/ });
  await t.throwsAsync(comes('operator', 's2'), { code: 'ERR_UNAUTHORIZED', message: /servers come as peer/ });
  const wrong = await farkv([
    ...['server', '--id', 's3', '--listen', '127.0.0.1:0', '--tls-ca', join(secrets, 'ca.crt')],
    ...['--tls-cert', join(secrets, 'server-s1.crt'), '--tls-key', join(secrets, 'server-s1.key')],
  ]);
  t.is(wrong.code, 2);
  t.regex(wrong.stderr, /certificate of peer s1, not of server s3/);
});

/** The serial number of the certificate that this port shows. */
async function shownAt(address: string, directory: string): Promise<string> {
  const [host, port] = address.split(':');
  const socket = dialTls({
    host: host!,
    port: Number(port),
    ca: readFileSync(join(directory, 'ca.crt')),
    checkServerIdentity: () => undefined,
  });
  await once(socket, 'secureConnect');
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

test.serial('authority and certificates are exchanged while clients work: no call fails', async (t) => {
  const { cluster, secrets, run } = await secured(t, 3, '--one-identity-for-all-servers');
  const files = {
    caFile: join(secrets, 'ca.crt'),
    certFile: join(secrets, 'writer.crt'),
    keyFile: join(secrets, 'writer.key'),
  };
  const come = async () => {
    const kv = await connect({ servers: cluster.addresses, tls: files, ...PATIENT });
    t.teardown(() => kv.close());
    return kv;
  };
  const work = async (kv: Awaited<ReturnType<typeof come>>, name: string, count: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      await kv.put(`${name}-${i % 50}`, `${i}`);
      if ((await kv.get(`${name}-${i % 50}`))?.toString() !== `${i}`) throw new Error('another value');
    }
  };
  const first = await come();
  const load = { over: false };
  const lasting = (async () => {
    while (!load.over) await work(first, 'first', 100);
  })();

  const ports = cluster.servers.flatMap((s) => [s.address, s.peer]);
  const before = mkdtempSync(join(tmpdir(), 'farkv-before-'));
  t.teardown(() => rmSync(before, { recursive: true }));
  for (const name of ['writer.crt', 'writer.key', 'ca.crt']) copyFileSync(join(secrets, name), join(before, name));
  const succeeds = async (...words: string[]): Promise<void> => {
    const { code, stderr } = await farkv(words);
    t.is(code, 0, stderr);
  };
  await succeeds('secrets', 'renew', secrets, '--authority');
  await work(await come(), 'both authorities', 100);
  await succeeds('secrets', 'renew', secrets);
  const serial = new X509Certificate(readFileSync(join(secrets, 'server.crt'))).serialNumber;
  // Both ports of each server look again with the connections that come.
  for (const port of ports) while ((await shownAt(port, secrets)) !== serial);
  await work(await come(), 'the next certificates', 100);

  // Only the next authority is trusted from here on.
  const [newest = ''] = readFileSync(files.caFile, 'utf8').split(/(?<=-----END CERTIFICATE-----\n)/);
  writeFileSync(files.caFile, newest);
  const old = (address: string) =>
    farkv([
      ...['get', 'first-0', '--connect', address, '--tls-ca', files.caFile, '--timeout', '1m'],
      ...['--tls-cert', join(before, 'writer.crt'), '--tls-key', join(before, 'writer.key')],
    ]);
  for (const { address } of cluster.servers) while ((await old(address)).code !== 77);
  await work(await come(), 'the next authority', 100);
  load.over = true;
  await t.notThrowsAsync(lasting);
  // Servers go on among themselves: one that starts again is taken in by the others.
  await cluster.server(1).stop();
  await cluster.server(1).start();
  t.is((await run('status', '--secrets', secrets)).code, 0);
});
