import test from 'ava';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { connect } from '../../client/index.js';
import { ControlClient } from '../../net/control-client.js';
import type { ClientMap } from '../../core/protocol/index.js';
import { Cluster, CLI, farkv, freePorts, type ReadyLine } from '../support/cluster.js';
import { DEVICELESS } from '../support/deviceless.js';
import { patient } from '../support/sdk-clients.js';
import { statusOf } from '../support/status.js';
import { spawn } from 'node:child_process';

test.serial('a server says when it is ready, shows its state, and ends in order', async (t) => {
  const cluster = await Cluster.start(t, { shards: 3 });
  const server = cluster.server(0);
  const ready = server.readyLine!;
  t.like(ready, { id: 's1', control: [server.address], shards: [0, 1, 2], dataDir: server.dataDir, pid: server.pid });
  t.regex(ready.clusterId, /^[0-9a-f]{32}$/);
  t.deepEqual(new Set(ready.fabric.map((a) => a.provider)), new Set(DEVICELESS));

  const status = await statusOf(server.address);
  t.like(status, { clusterId: ready.clusterId, leader: 's1', answeredBy: 's1' });
  t.deepEqual(
    status.shards.map((s) => [s.shard, s.owner, s.state, s.epoch]),
    [0, 1, 2].map((n) => [n, 's1', 'serving', 1]),
  );
  t.true(
    status.shards.every((s) => s.regions.some((r) => r.kind === 'index') && s.regions.some((r) => r.kind === 'heap')),
  );
  for (const { memory, memoryBytes } of status.shards) {
    t.is(
      Object.values({ ...memory }).reduce((sum, part) => sum + part, 0),
      memoryBytes ?? 0,
    );
    t.true((memoryBytes ?? 0) > 0 && memory?.live === 0 && memory.free > 0);
  }
  const shown = await farkv(['status', '--connect', server.address]);
  t.is(shown.code, 0);
  t.regex(shown.stdout, /^s1 +up, leader +127/m);

  t.deepEqual(await server.stop(), { code: 0, signal: null });
  t.regex(server.stderr, /info stopping, once the shards are handed over and the leases of clients have run out/);
  t.is(server.stdout.split('\n').filter((l) => l !== '').length, 1);
  t.deepEqual(
    readdirSync(server.dataDir).sort(),
    ['identity.json', 'lock', 'raft'],
    'no socket and no mark of leases is left',
  );
});

test.serial('SIGHUP, SIGUSR1 and SIGUSR2 end no server and open no debugger', async (t) => {
  const cluster = await Cluster.start(t);
  const server = cluster.server(0);
  for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const) {
    server.signal(signal);
    await server.said(`info ${signal}: `);
  }
  t.is((await farkv(['status', '--connect', server.address])).code, 0);
  t.notRegex(server.stderr, /debugger/i);
  t.deepEqual(await server.stop(), { code: 0, signal: null });
});

test.serial('files and directories are for their owner only', async (t) => {
  const cluster = await Cluster.start(t);
  const { dataDir } = cluster.server(0);
  const walk = (path: string): string[] =>
    statSync(path).isDirectory() ? [path, ...readdirSync(path).flatMap((name) => walk(join(path, name)))] : [path];
  for (const path of walk(dataDir)) t.is(statSync(path).mode & 0o077, 0, path);
});

test.serial('secrets are in no status and in no log', async (t) => {
  const cluster = await Cluster.start(t, {
    args: [
      '--log-level',
      'debug',
      '--token',
      'open sesame',
      '--operator-token',
      'rule sesame',
      '--peer-token',
      'close sesame',
    ],
  });
  const server = cluster.server(0);
  const map = await new Promise<ClientMap>((resolve, reject) => {
    ControlClient.open({
      address: server.address,
      trust: undefined,
      timeoutMs: 10_000,
      hello: { role: 'client', token: 'open sesame' },
      frame: (frame) => frame.t === 'map' && resolve(frame.map),
    }).then((client) => t.teardown(() => client.close()), reject);
  });
  const rkeys = map.shards.flatMap((s) => s.regions.map((r) => r.rkey));
  t.true(rkeys.length > 0);
  const status = await farkv(['status', '--json', '--connect', server.address, '--token', 'rule sesame']);
  const table = await farkv(['status', '--connect', server.address, '--token', 'rule sesame']);
  t.is(status.code, 0);
  await server.stop();
  const shown = [status.stdout, table.stdout, server.stderr, server.stdout].join('\n');
  for (const secret of [
    ...rkeys,
    map.hashSeed,
    'open sesame',
    'rule sesame',
    'close sesame',
    'ticket',
    'rkey',
    'hashSeed',
  ])
    t.false(shown.includes(secret), secret);
});

test.serial('a restarted server keeps its cluster and gives its shards new epochs and incarnations', async (t) => {
  const cluster = await Cluster.start(t, { args: ['--lease-ms', '200'] });
  const server = cluster.server(0);
  const first = server.readyLine!;
  await server.kill();
  const second = await server.start();
  t.is(second.clusterId, first.clusterId);
  t.deepEqual(
    (await statusOf(server.address)).shards.map((s) => s.epoch),
    [2, 2, 2, 2],
  );
  await server.stop();
  await server.start();
  t.deepEqual(
    (await statusOf(server.address)).shards.map((s) => s.epoch),
    [3, 3, 3, 3],
  );
});

test.serial(
  'a server that was killed waits for the leases of its last run, one that ended in order does not',
  async (t) => {
    const cluster = await Cluster.start(t, { args: ['--lease-ms', '3000', '--log-level', 'debug'] });
    const server = cluster.server(0);
    const mark = join(server.dataDir, 'serving.json');
    t.true(existsSync(mark));
    await server.kill();
    t.true(existsSync(mark));
    // A shorter lease now does not shorten those that were granted.
    server.args = server.args.map((arg) => (arg === '3000' ? '100' : arg));
    const started = performance.now();
    await server.start();
    const waited = performance.now() - started;
    t.true(waited >= 3000, `served after ${waited} ms`);
    await server.stop();
    t.false(existsSync(mark));
  },
);

test.serial(
  'the wait is that of the owner where its own lease is shorter, and nobody reads what is over',
  async (t) => {
    const cluster = await Cluster.start(t, { args: ['--lease-ms', '60000', '--owner-lease-ms', '1500'] });
    const server = cluster.server(0);
    t.like(JSON.parse(readFileSync(join(server.dataDir, 'serving.json'), 'utf8')), { leaseMs: 1500 });
    const reader = await patient(t, server.address);
    await reader.put('key', 'old');
    t.is((await reader.get('key'))?.toString(), 'old');
    await server.kill();
    // Over shm it may read the memory of the dead process for as long as its lease lasts.
    const found: (string | undefined)[] = [];
    const write = { over: false };
    const reading = (async () => {
      for (let after = 0; after < 100; after += write.over ? 1 : 0) {
        const isAfter = write.over;
        const value = (await reader.get('key'))?.toString();
        if (isAfter) found.push(value);
        await turn();
      }
    })();
    const started = performance.now();
    await server.start();
    t.true(performance.now() - started >= 1500);
    const writer = await patient(t, server.address);
    await writer.put('key', 'new');
    write.over = true;
    await reading;
    t.deepEqual([...new Set(found)], ['new']);
  },
);

test.serial('without a data directory nothing is left behind', async (t) => {
  const child = spawn(process.execPath, [CLI, 'server', '--json', '--listen', '127.0.0.1:0', '--memory', '64mb'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  const ready = JSON.parse(line) as ReadyLine;
  t.true(existsSync(ready.dataDir));
  const sockets = ready.fabric.filter((a) => a.provider === 'shm').map((a) => a.address.replace('unix:', ''));
  t.true(sockets.length > 0 && sockets.every((path) => existsSync(path)));
  child.kill('SIGINT');
  const [code] = (await once(child, 'close')) as [number];
  t.is(code, 0);
  t.false(existsSync(ready.dataDir));
  t.false(sockets.some((path) => existsSync(path)));
});

test.serial('a server ends with the program that started it when it was told to', async (t) => {
  const cluster = await Cluster.start(t);
  const server = cluster.server(0);
  server.closeInput();
  t.deepEqual(await server.exit, { code: 0, signal: null });
});

test.serial('a name to listen on is looked up once, for clients, servers and data alike', async (t) => {
  const [port] = await freePorts(1);
  const args = ['server', '--json', '--memory', '64mb', '--http-listen', 'localhost:0', '--listen'];
  const child = spawn(process.execPath, [CLI, ...args, `localhost:${port!}`], { stdio: ['ignore', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  const ready = JSON.parse(String((await once(child.stdout.setEncoding('utf8'), 'data'))[0])) as ReadyLine;
  t.deepEqual(ready.control, [`127.0.0.1:${port!}`]);
  for (const { address } of ready.fabric.filter(({ provider }) => provider === 'tcp'))
    t.regex(address, /^127\.0\.0\.1:/);
  t.regex(ready.http[0] ?? '', /127\.0\.0\.1:/);
  const kv = await connect({ servers: `localhost:${port!}`, transport: 'tcp', timeoutMs: 120_000 });
  await kv.put('k', 'v');
  t.is(String(await kv.get('k')), 'v');
  await kv.close();
  const unknown = await farkv(['server', '--listen', `${'x'.repeat(64)}.invalid:7400`, '--insecure']);
  t.not(unknown.code, 0);
  t.regex(unknown.stderr, /--listen: x+\.invalid has no address .*: give an address of this machine/);
});

test.serial('an IPv6 address can be listened on beside an IPv4 one', async (t) => {
  const [port] = await freePorts(1);
  const child = spawn(
    process.execPath,
    [
      ...[CLI, 'server', '--json', '--listen', `127.0.0.1:${port!},[::1]:${port!}`, '--memory', '64mb'],
      // Ports that follow from --listen may be another test's.
      ...['--fabric-listen', '127.0.0.1:0,[::1]:0', '--peer-listen', '127.0.0.1:0'],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  t.teardown(() => child.kill('SIGKILL'));
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const line = await Promise.race([
    once(child.stdout.setEncoding('utf8'), 'data').then(([text]) => text as string),
    once(child, 'close').then(() => undefined),
  ]);
  if (line === undefined && stderr.includes('this machine does not have that address')) {
    t.log('this machine has no IPv6 loopback address: only the refusal could be seen');
    t.pass();
    return;
  }
  const ready = JSON.parse(line ?? stderr) as ReadyLine;
  t.deepEqual(ready.control, [`127.0.0.1:${port!}`, `[::1]:${port!}`]);
  t.true(ready.fabric.some((a) => a.provider === 'tcp' && a.address.startsWith('[::1]:')));
  t.is((await statusOf(`[::1]:${port!}`)).leader, 's1');
});
