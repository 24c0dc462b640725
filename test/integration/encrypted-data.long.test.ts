/** Data over tcp between real processes, with somebody on the way who hears every byte. */
import test, { type ExecutionContext } from 'ava';
import { readFileSync } from 'node:fs';
import { connect as dial } from 'node:net';
import { createServer } from 'node:tls';
import { connect, type BufferValue, type Client } from '../../client/index.js';
import { bare } from '../../core/metadata/data-address.js';
import { Cluster, freePorts, succeeds } from '../support/cluster.js';
import { TLS_OPTIONS, tlsFile, tlsTrust } from '../support/tls-files.js';
import { tapWire, type WireTap } from '../support/wire-tap.js';

const KEY = 'a key that nobody shall hear';
const VALUE = 'and a value that nobody shall hear either; '.repeat(50);

async function client(t: ExecutionContext, cluster: Cluster, tls = true): Promise<Client<BufferValue, Buffer>> {
  const kv = await connect({
    servers: cluster.addresses,
    transport: 'tcp',
    strict: true,
    ...(tls ? { tls: tlsTrust() } : {}),
  });
  t.teardown(() => kv.close());
  return kv;
}

/** Clients are told of 127.0.0.2, where the tap is; the server listens at 127.0.0.1. */
async function overTap(t: ExecutionContext, args: readonly string[]): Promise<readonly [Cluster, WireTap]> {
  const [port = 0] = await freePorts(1);
  const cluster = await Cluster.start(t, {
    shards: 1,
    memory: '32mb',
    args: [...args, '--fabric-listen', `127.0.0.1:${port}`, '--advertise', '127.0.0.2'],
  });
  return [cluster, await tapWire(t, '127.0.0.2', '127.0.0.1', port)];
}

async function talk(t: ExecutionContext, cluster: Cluster, tls: boolean): Promise<void> {
  const kv = await client(t, cluster, tls);
  await kv.put(KEY, VALUE);
  for (let i = 0; i < 10; i++) t.is((await kv.get(KEY))?.toString(), VALUE);
  t.like(kv.transports()[0], { provider: 'tcp', connected: true });
}

for (const [title, args, tls, hidden] of [
  ['with TLS nothing of keys and values can be heard', TLS_OPTIONS, true, true],
  [
    'with --insecure-data they are heard, and a client by TLS takes that',
    [...TLS_OPTIONS, '--insecure-data'],
    true,
    false,
  ],
  ['without TLS they are heard', [], false, false],
] as const)
  test.serial(title, async (t) => {
    const [cluster, tap] = await overTap(t, args);
    await talk(t, cluster, tls);
    const heard = tap.heard();
    t.true(heard.length > 5 * VALUE.length);
    t.is(heard.includes(KEY), !hidden);
    t.is(heard.includes(VALUE.slice(0, 16)), !hidden);
    // FKvT, with which each hello of the clear wire begins; FK, the data plane's own hello, whose ticket is behind it.
    t.is(heard.includes('FKvT'), !hidden);
  });

test.serial('a connection that was heard and is played again reaches nothing', async (t) => {
  const [cluster, tap] = await overTap(t, TLS_OPTIONS);
  await talk(t, cluster, true);
  const [fabric] = cluster.server(0).readyLine?.fabric.filter((f) => f.provider === 'tcp') ?? [];
  t.regex(fabric?.address ?? '', /^tls:/);
  const port = Number(bare(fabric?.address ?? '').split(':')[1]);
  for (const bytes of tap.sent()) {
    const replay = dial({ host: '127.0.0.1', port });
    const answer: Buffer[] = [];
    replay.on('data', (some: Buffer) => answer.push(some));
    replay.on('error', () => undefined);
    replay.write(bytes);
    await new Promise((resolve) => replay.once('close', resolve));
    // A handshake that its sender cannot finish; nothing of the client's.
    t.true(Buffer.concat(answer).length < 1000);
    t.false(Buffer.concat(answer).includes(VALUE.slice(0, 16)));
  }
  await talk(t, cluster, true);
});

test.serial('a server that has a certificate and not the key hears nothing', async (t) => {
  const [port = 0] = await freePorts(1);
  const cluster = await Cluster.start(t, {
    shards: 1,
    memory: '32mb',
    args: [...TLS_OPTIONS, '--fabric-listen', `127.0.0.1:${port}`, '--advertise', '127.0.0.2'],
  });
  const [cert, key] = ['server.pem', 'server-key.pem'].map((name) => readFileSync(tlsFile(name)));
  let heard = 0;
  const rogue = createServer({ cert, key, minVersion: 'TLSv1.3' }, (socket) => {
    socket.on('error', () => undefined).on('data', (bytes: Buffer) => (heard += bytes.length));
  });
  const came = new Promise((resolve) => {
    rogue.on('secureConnection', (socket) => socket.once('close', resolve));
    rogue.on('tlsClientError', resolve);
  });
  rogue.listen(port, '127.0.0.2');
  t.teardown(() => rogue.close());
  const connecting = connect({
    servers: cluster.addresses,
    transport: 'tcp',
    strict: true,
    tls: tlsTrust(),
    connectTimeoutMs: 3000,
  });
  await came;
  await t.throwsAsync(connecting);
  t.is(heard, 0);
});

test.serial('values move between servers encrypted, and stay', async (t) => {
  const cluster = await Cluster.start(t, {
    servers: 2,
    shards: 4,
    memory: '32mb',
    args: [...TLS_OPTIONS, '--transport', 'tcp', '--token', 'c', '--operator-token', 'o', '--peer-token', 'p'],
  });
  const kv = await connect({ servers: cluster.addresses, transport: 'tcp', token: 'c', tls: tlsTrust() });
  t.teardown(() => kv.close());
  for (let i = 0; i < 200; i++) await kv.put(`k${i}`, `v${i}`);
  await succeeds(t, cluster, 'drain', 's2', '--token', 'o', '--tls-ca', tlsFile('ca.pem'));
  for (let i = 0; i < 200; i++) t.is((await kv.get(`k${i}`))?.toString(), `v${i}`);
});
