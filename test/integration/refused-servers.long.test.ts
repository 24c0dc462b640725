/** Servers that do not start, or that a cluster refuses, each with what is wrong. */
import test, { type ExecutionContext } from 'ava';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cluster, farkv, freePorts, listens, ServerProcess } from '../support/cluster.js';
import { statusWhen, whole } from '../support/status.js';
import { tlsFile } from '../support/tls-files.js';

const SMALL = { servers: 3, level: 'cache', shards: 6, memory: '32mb', args: ['--lease-ms', '200'] } as const;

test.serial('too little memory for the shards is refused with what is needed', async (t) => {
  const { code, stderr } = await farkv(['server', '--listen', '127.0.0.1:0', '--memory', '16mb', '--shards', '5']);
  t.is(code, 2);
  t.regex(stderr, /--memory: 16\.0 MiB is too little .* 5 shards; at least 20\.0 MiB/);
});

test.serial('a directory that is in use, and a port that is in use, are refused by name', async (t) => {
  const cluster = await Cluster.start(t);
  const server = cluster.server(0);
  const second = await farkv([
    'server',
    '--data-dir',
    server.dataDir,
    '--listen',
    '127.0.0.1:0',
    '--peers',
    `s1=${server.peer}`,
  ]);
  t.is(second.code, 1);
  t.regex(second.stderr, /in use by another farkv server/);
  const third = await farkv(['server', '--listen', server.address]);
  t.is(third.code, 1);
  t.regex(
    third.stderr,
    new RegExp(`${server.address}: another program listens there, .*: stop it, or choose another --listen\\b`),
  );
  const fourth = await farkv(['server', '--listen', '127.0.0.1:0', '--peer-listen', server.peer]);
  t.is(fourth.code, 1);
  t.regex(
    fourth.stderr,
    new RegExp(`${server.peer}: another program listens there, .*: stop it, or choose another --peer-listen\\b`),
  );
});

/** Each line an object, of which the last says why the server ended. */
function lastOf(stderr: string): Readonly<Record<string, unknown>> {
  const lines = stderr.trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>).at(-1) ?? {};
}

test.serial('with --log-format json, why a server ends is an object as its other lines are', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  t.teardown(() => holder.close());
  const taken = `127.0.0.1:${(holder.address() as { readonly port: number }).port}`;
  const json = ['server', '--log-format', 'json', '--listen'];
  const event = 'server-failed';

  const port = await farkv([...json, taken]);
  t.is(port.code, 1);
  t.like(lastOf(port.stderr), { level: 'error', event, code: 'ERR_ADDRESS_IN_USE' });
  t.regex(String(lastOf(port.stderr).message), new RegExp(`^${taken}: another program listens there`));

  const memory = await farkv([...json, '127.0.0.1:0', '--memory', '16mb', '--shards', '5']);
  t.is(memory.code, 2);
  t.like(lastOf(memory.stderr), { level: 'error', event, code: 'ERR_CONFIG' });

  const env = { FARKV_LOG_FORMAT: 'json' };
  const size = await farkv(['server', '--memory', 'much'], { env });
  t.is(size.code, 2);
  t.like(lastOf(size.stderr), { level: 'error', event, code: 'ERR_CONFIG' });
  t.regex(String(lastOf(size.stderr).message), /^--memory: "much" is not a size/);

  const folder = await mkdtemp(join(tmpdir(), 'farkv-config-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const config = join(folder, 'farkv.yaml');
  await writeFile(config, 'log-format: json\nmemory: much\n');
  const inFile = await farkv(['server', '--config', config]);
  t.is(inFile.code, 2);
  t.like(lastOf(inFile.stderr), { level: 'error', event, code: 'ERR_CONFIG' });
  t.regex(String(lastOf(inFile.stderr).message), /^memory in .*farkv\.yaml: "much" is not a size/);

  const unknown = await farkv(['server', '--nonsense'], { env });
  t.is(unknown.code, 2);
  t.regex(unknown.stderr, /^farkv server: .*--nonsense/, 'as the document says');
});

test.serial('a data port in use is refused as well, and before a cluster is made that keeps its level', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  t.teardown(() => holder.close());
  const folder = await mkdtemp(join(tmpdir(), 'farkv-first-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const address = `127.0.0.1:${(holder.address() as { readonly port: number }).port}`;
  const words = ['server', '--listen', '127.0.0.1:0', '--data-dir', folder, '--fabric-listen', address];
  const { code, stderr } = await farkv(words);
  t.is(code, 1);
  t.regex(stderr, new RegExp(`${address}.*in use.*--fabric-listen`));
  const other = await farkv([...words, '--level', 'durable', '--shards', '8']);
  t.is(other.code, 1);
  t.regex(other.stderr, new RegExp(`${address}.*in use.*--fabric-listen`));

  const verbs = await farkv([...words, '--transport', 'verbs', '--insecure']);
  t.regex(verbs.stderr, /--transport: verbs is not available|no address of this machine leads to an RDMA device/);
  t.false(verbs.stderr.includes('leads the metadata group'));
});

/** A control port whose data port for this worker is held until the test ends; those of the workers before are free. */
async function portBefore(t: ExecutionContext, worker: number): Promise<{ control: number; held: number }> {
  for (;;) {
    const [control = 0] = await freePorts(1);
    const ports = Array.from({ length: worker + 1 }, (_, i) => control + 1000 + i);
    const holders = await Promise.all(ports.map(listens));
    const isMine = holders.every((holder) => holder !== undefined);
    const holder = isMine ? holders.pop() : undefined;
    for (const one of holders) one?.close();
    if (holder === undefined) continue; // Somebody listens there.
    t.teardown(() => holder.close());
    return { control, held: control + 1000 + worker };
  }
}

for (const worker of [0, 1])
  test.serial(`so is the default one of worker ${worker}, by the option and the port`, async (t) => {
    const { control, held } = await portBefore(t, worker);
    const listen = ['--listen', `127.0.0.1:${control}`, '--peer-listen', '127.0.0.1:0', '--transport', 'tcp'];
    const workers = ['--data-plane-threads', '2', '--memory', '32mb'];
    const { code, stdout, stderr } = await farkv(['server', ...listen, ...workers]);
    t.is(code, 1);
    t.is(stdout, '');
    t.regex(stderr, new RegExp(`data: .*127\\.0\\.0\\.1:${held}\\b.*in use.*other ports with --fabric-listen`));
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
    tlsFile('ca.pem'),
    '--tls-key',
    tlsFile('server-key.pem'),
  ]);
  t.is(code, 2);
  t.regex(stderr, /cannot be used/);
});

test.serial('servers with different peer tokens do not make a cluster', async (t) => {
  const cluster = await Cluster.start(t, {
    servers: 3,
    level: 'cache',
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

test.serial('servers that were given different lists refuse each other', async (t) => {
  const [p1, p2] = await freePorts(2);
  const server = (id: string, port: number, peers: string): ServerProcess => {
    const one = new ServerProcess(
      id,
      { address: '', peer: `127.0.0.1:${port}` },
      '',
      ['--id', id, '--listen', '127.0.0.1:0', '--peers', peers, '--memory', '32mb'],
      {},
    );
    t.teardown(() => one.kill());
    return one;
  };
  const a = server('a', p1!, `a=127.0.0.1:${p1!},b=127.0.0.1:${p2!}`);
  const b = server('b', p2!, `a=127.0.0.1:${p1!},b=127.0.0.1:${p2!},c=127.0.0.1:1`);
  a.launch();
  b.launch();
  t.is((await a.exit).code, 2);
  t.regex(a.stderr, /the list must be the same for every server/);
  t.true(b.running || (await b.exit).code === 2);
});

test.serial('a server with the data directory of another cluster is refused, and the cluster goes on', async (t) => {
  const cluster = await Cluster.start(t, SMALL);
  const a = await Cluster.start(t, SMALL);
  for (const s of a.servers) await s.stop();
  await cluster.server(2).stop();
  const stranger = new ServerProcess(
    's3',
    cluster.server(2),
    a.server(2).dataDir,
    cluster.server(2).args.map((arg) => (arg === cluster.server(2).dataDir ? a.server(2).dataDir : arg)),
    {},
  );
  t.teardown(() => stranger.kill());
  stranger.launch();
  t.deepEqual(await stranger.exit, { code: 1, signal: null });
  t.regex(stranger.stderr, /belongs to cluster [0-9a-f]{32}/);
  await cluster.server(2).start();
  t.is((await statusWhen(cluster.server(0).address, whole)).members.length, 3);
});

test.serial('a server that lost its data directory cannot come back under its old name', async (t) => {
  const cluster = await Cluster.start(t, SMALL);
  const lost = cluster.server(2);
  await lost.kill();
  await rm(lost.dataDir, { recursive: true });
  lost.launch();
  t.deepEqual(await lost.exit, { code: 1, signal: null });
  t.regex(lost.stderr, /s3 has been in this cluster with another data directory/);
  await statusWhen(
    cluster.server(0).address,
    (s) => s.leader !== undefined && s.members.find((m) => m.id === 's3')?.state === 'unreachable',
  );
});
