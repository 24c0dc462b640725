/**
 * Servers of durable values whose disk fails while they run, or when they start, with real processes: each error ends the
 * server with its message, or is reported where it may go on, and nothing that was acknowledged is lost.
 */
import test, { type ExecutionContext } from 'ava';
import { execFileSync } from 'node:child_process';
import type { LogStats } from '../../native/data-plane-stats.js';
import type { ClusterStatus } from '../../server/status.js';
import { Cluster, farkv, type Exit, type ServerProcess } from '../support/cluster.js';
import { MIB, open, writeLarge, writeSmall, wrong, Writing, type Values } from '../support/durable-writes.js';
import { FailingDisk } from '../support/failing-disk.js';
import { statusOf, statusWhen } from '../support/status.js';

const ONE = {
  servers: 1,
  shards: 2,
  memory: '128mb',
  level: 'durable',
  args: ['--lease-ms', '400', '--owner-lease-ms', '1000', '--data-plane-threads', '1'],
} as const;
const THREE = { ...ONE, servers: 3, shards: 6 } as const;
/** A log that is longer is made shorter by snapshots. */
const SNAPSHOT_MIB = 256;
const SO_IT_ENDS =
  'What this server has not acknowledged may be lost \\(with --sync the last that it acknowledged, too\\), so it ends: look at the disk, then start it again';

const logOf = (status: ClusterStatus): LogStats => status.members[0]!.node!.dataPlane!.workers[0]!.log!;
const kept = (status: ClusterStatus): boolean =>
  status.shards.every((s) => s.state === 'serving' && s.copies?.inSync === 2 && s.copies.copies.length === 2);

/** How the server ended while that was written; what was not acknowledged by then goes on with the next start. */
async function ended(server: ServerProcess, writing: Promise<void>): Promise<Exit> {
  const exit = await Promise.race([server.exit, writing]);
  if (exit === undefined) throw new Error('all was written');
  return exit;
}

interface Failing {
  readonly cluster: Cluster;
  readonly server: ServerProcess;
  readonly disk: FailingDisk;
  readonly values: Values;
  readonly client: Awaited<ReturnType<typeof open>>;
}

/** One server with some values, whose disk fails when it is told to. No file of its log is being made. */
async function one(t: ExecutionContext, ...how: Parameters<FailingDisk['launcher']>): Promise<Failing> {
  const cluster = await Cluster.start(t, { ...ONE, ready: false, absent: [0] });
  const server = cluster.server(0);
  const disk = new FailingDisk(cluster.directory);
  server.launcher = disk.launcher(...how);
  await server.start();
  const values: Values = new Map();
  const client = await open(t, cluster);
  await writeSmall(client, values, 50, 'small');
  await statusWhen(server.address, (s) => logOf(s).freeFiles === 2);
  return { cluster, server, disk, values, client };
}

for (const [operation, error, text] of [
  ['write', 'EIO', 'EIO, i/o error'],
  ['sync', 'EIO', 'EIO, i/o error'],
  ['write', 'ENOSPC', 'ENOSPC, no space left on device'],
  ['sync', 'EDQUOT', 'EDQUOT, disk quota exceeded'],
] as const)
  test.serial(`a ${operation} of the log that fails with ${error} ends its server, and nothing is lost`, async (t) => {
    const { server, disk, values, client } = await one(t, operation, error, '/values/0-');
    disk.fail();
    const writing = writeSmall(client, values, 20, 'meanwhile');
    t.is((await ended(server, writing)).code, 1);
    t.regex(server.stderr, new RegExp(`values/0-1: ${operation} failed: ${text}\\. ${SO_IT_ENDS}`));
    disk.repair();
    await server.start();
    await writing;
    t.deepEqual(await wrong(client, values), []);
  });

test.serial('a write beyond a limit of the process ends its server, and nothing is lost', async (t) => {
  const cluster = await Cluster.start(t, ONE);
  const server = cluster.server(0);
  const values: Values = new Map();
  const client = await open(t, cluster);
  await writeSmall(client, values, 50, 'small');
  // A file that is being made would fail first. And memory of tables is files, too: small values need no more of it.
  await statusWhen(server.address, (s) => logOf(s).freeFiles === 2);
  execFileSync('prlimit', ['--pid', String(server.pid), `--fsize=${MIB}`]);
  const writing = writeSmall(client, values, 400, 'meanwhile');
  t.is((await ended(server, writing)).code, 1);
  t.regex(server.stderr, new RegExp(`values/0-1: write failed: EFBIG, file too large\\. ${SO_IT_ENDS}`));
  await server.start();
  await writing;
  t.deepEqual(await wrong(client, values), []);
});

test.serial('where the disk of one server fails, the others go on, and it gets its copies back', async (t) => {
  const cluster = await Cluster.start(t, { ...THREE, ready: false, absent: [1] });
  const [first, failing] = [cluster.server(0), cluster.server(1)];
  const disk = new FailingDisk(cluster.directory);
  failing.launcher = disk.launcher('sync', 'EIO', '/values/0-');
  await Promise.all(cluster.servers.map((s) => (s === failing ? s.start() : s.ready())));
  await statusWhen(first.address, kept);
  const client = await open(t, cluster);
  const writing = new Writing(client);
  await writing.have(500);
  disk.fail();
  t.is((await failing.exit).code, 1);
  t.regex(failing.stderr, new RegExp(`values/0-\\d+: sync failed: EIO, i/o error\\. ${SO_IT_ENDS}`));
  await writing.have(1000);
  disk.repair();
  await failing.start();
  await statusWhen(first.address, kept);
  await writing.stop();
  t.deepEqual(await writing.missing(client), []);
});

test.serial('a disk that cannot be read is named at the start, and a later start reads it', async (t) => {
  const { server, disk, values, client } = await one(t, 'read', 'EIO', '/values/0-');
  await server.kill();
  disk.fail();
  server.launch();
  t.is((await server.exit).code, 1);
  t.regex(
    server.stderr,
    /values: .*0-1: cannot be read at 0: Input\/output error\. Put back what this server wrote there/,
  );
  disk.repair();
  await server.start();
  t.deepEqual(await wrong(client, values), []);
});

test.serial('a snapshot that cannot be written costs nothing but a longer log, and is reported', async (t) => {
  const { server, disk, values, client } = await one(t, 'write', 'EIO', '/values/snapshot-');
  disk.fail();
  await writeLarge(client, values, SNAPSHOT_MIB + 64, 'log');
  await server.said(
    /shard \d: no snapshot in \S+values: write snapshot-\S+ failed: EIO, i\/o error\. Nothing is lost; it is tried again in a minute, and the log grows until then/,
  );
  const { shards } = (await statusOf(server.address)).members[0]!.node!.dataPlane!;
  t.true(shards.some(({ snapshotErrno }) => snapshotErrno !== undefined && snapshotErrno > 0));
  const { code, stdout } = await farkv(['status', '--connect', server.address]);
  t.is(code, 1);
  t.regex(stdout, /^needs attention: .*snapshot/m);
  t.deepEqual(await wrong(client, values), []);
  await server.kill();
  disk.repair();
  await server.start();
  await statusWhen(server.address, (s) => logOf(s).bytes < SNAPSHOT_MIB * MIB);
  t.deepEqual(await wrong(client, values), []);
});

test.serial('a sync of the metadata that fails ends its server, and nothing is lost', async (t) => {
  const { server, disk, values, client } = await one(t, 'sync', 'EIO', '/raft/');
  disk.fail();
  const set = farkv(['replication', 'set', '--replicas', '2', '--connect', server.address]);
  t.is((await server.exit).signal, 'SIGABRT');
  t.regex(
    server.stderr,
    /farkv: fatal: writing [^\n]* in \S+raft failed: EIO: i\/o error, fdatasync\. The process ends, since its disk cannot be trusted: look at the disk, then start it again/,
  );
  disk.repair();
  await server.start();
  t.deepEqual(await wrong(client, values), []);
  await set;
});
