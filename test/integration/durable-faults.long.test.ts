/**
 * What becomes of durable values when their files are damaged, gone, or another's, and when the disk is full or cannot be
 * written: with real processes and real files. Each fault has its message, and nothing that was acknowledged is lost,
 * unless the only server with it has lost it; then an operator is asked. Not for: operations that fail
 * (failing-disk.long.test.ts).
 */
import test, { type ExecutionContext } from 'ava';
import { existsSync, renameSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { LogStats } from '../../native/data-plane-stats.js';
import type { ClusterStatus } from '../../server/status.js';
import { Cluster, farkv, succeeds, type ServerProcess } from '../support/cluster.js';
import { MIB, open, writeLarge, writeSmall, wrong, type Values } from '../support/durable-writes.js';
import { FileSystem, mayMount } from '../support/file-system.js';
import { statusOf, statusWhen } from '../support/status.js';
import {
  batchesOf,
  flipBit,
  logFiles,
  setFormat,
  snapshotFiles,
  snapshotParts,
  type SnapshotParts,
} from '../support/values-files.js';

const LEASES = ['--lease-ms', '400', '--owner-lease-ms', '1000'];
const ONE = {
  servers: 1,
  shards: 2,
  memory: '128mb',
  level: 'durable',
  args: [...LEASES, '--data-plane-threads', '1'],
} as const;
const THREE = { ...ONE, servers: 3, shards: 6 } as const;
const FILE_MIB = 64;
/** A log that is longer is made shorter by snapshots. */
const SNAPSHOT_MIB = 256;
const GO_ON =
  /Put back what this server wrote there\. Or, to go on without it, move \S+values away and start this server again: its copies are made anew of other servers', and shards without another copy wait for farkv shard reset/;

/** What a server says that cannot start. */
async function refusal(t: ExecutionContext, server: ServerProcess): Promise<string> {
  server.launch();
  t.is((await server.exit).code, 1, server.stderr);
  return server.stderr;
}

/** Starts a server one of whose files was damaged or taken away; `undo` brings that back. */
async function refused(t: ExecutionContext, server: ServerProcess, expected: RegExp, undo: () => void): Promise<void> {
  const said = await refusal(t, server);
  t.regex(said, expected);
  t.regex(said, GO_ON);
  undo();
}

/** Takes the file away; the answer brings it back. */
function without(path: string): () => void {
  const aside = join(path, '..', '..', `aside-${basename(path)}`);
  renameSync(path, aside);
  return () => renameSync(aside, path);
}

function flipped(path: string, offset: number): () => void {
  flipBit(path, offset);
  return () => flipBit(path, offset);
}

/** Done as the message says: shards without a copy wait for an operator, who gives them up. */
async function resetAll(t: ExecutionContext, cluster: Cluster): Promise<void> {
  const { address } = cluster.server(0);
  const reset = (...more: string[]): ReturnType<typeof farkv> =>
    farkv(['shard', 'reset', 'all', ...more, '--connect', address]);
  let asked = await reset();
  // Until nobody can rely on the last owner.
  for (; /may still rely|is not lost/.test(asked.stderr); asked = await reset()) t.is(asked.code, 1);
  t.regex(asked.stderr, /nothing was done.*--accept-loss/);
  t.is((await reset('--accept-loss')).code, 0);
  await statusWhen(address, (s) => s.shards.every(({ state }) => state === 'serving'));
}

const logOf = (status: ClusterStatus): LogStats => status.members[0]!.node!.dataPlane!.workers[0]!.log!;
const waits = (status: ClusterStatus, shard: number): boolean => status.shards[shard]?.copies?.gone === true;

test.serial(
  'a log that is damaged, incomplete or of another is refused, and goes on when it is as it was',
  async (t) => {
    const cluster = await Cluster.start(t, ONE);
    const server = cluster.server(0);
    const values: Values = new Map();
    const writer = await open(t, cluster);
    await writeLarge(writer, values, 2 * FILE_MIB + 16, 'log');
    await writeSmall(writer, values, 50, 'small');
    await writer.close();
    // Else the last file with batches could be the last of all.
    await statusWhen(server.address, (s) => logOf(s).freeFiles === 2);
    await server.kill();

    const [first, second, third] = logFiles(server.dataDir) as [string, string, string];
    const middle = batchesOf(first).at(-5)!;
    await refused(
      t,
      server,
      new RegExp(`cannot be gone on with: ${basename(first)}: damaged at ${middle.offset}\\.`),
      flipped(first, middle.offset + middle.bytes / 2),
    );
    // The head of a batch, and a section.
    await refused(
      t,
      server,
      new RegExp(`${basename(first)}: damaged at ${middle.offset}\\.`),
      flipped(first, middle.offset + 20),
    );
    // Behind it is a file whose batches count on.
    const last = batchesOf(first).at(-1)!;
    await refused(
      t,
      server,
      new RegExp(`${basename(first)}: damaged at ${last.offset}\\.`),
      flipped(first, last.offset + 70),
    );
    await refused(t, server, new RegExp(`${basename(second)}: damaged at 0\\.`), flipped(second, 30));
    await refused(
      t,
      server,
      new RegExp(`${basename(second)} is missing, with batch \\d+ and later ones\\.`),
      without(second),
    );
    await refused(
      t,
      server,
      new RegExp(`${basename(third)} is missing, with batch \\d+ and later ones\\.`),
      without(third),
    );
    const undo = logFiles(server.dataDir).map(without);
    await refused(t, server, /0-1 is missing, with all that was in the log\./, () => undo.forEach((one) => one()));
    setFormat(third, 2);
    await refused(
      t,
      server,
      new RegExp(
        `${basename(third)} has format 2, of a later version of farkv: start that one; this one reads up to 1\\.`,
      ),
      () => setFormat(third, 1),
    );

    // The directory of another cluster.
    const other = await Cluster.start(t, ONE);
    await other.server(0).kill();
    const mine = without(join(server.dataDir, 'values'));
    renameSync(join(other.server(0).dataDir, 'values'), join(server.dataDir, 'values'));
    await refused(t, server, /0-1 belongs to another cluster\./, () => {
      renameSync(join(server.dataDir, 'values'), join(other.server(0).dataDir, 'values'));
      mine();
    });

    await server.start();
    const client = await open(t, cluster);
    t.deepEqual(await wrong(client, values), []);

    // The last batch looks as if it had not been written to its end: only its own change is gone.
    await client.put('last', 'of all');
    await server.kill();
    const tail = logFiles(server.dataDir).findLast((path) => batchesOf(path).length > 0)!;
    const torn = batchesOf(tail).at(-1)!;
    flipBit(tail, torn.offset + 100);
    await server.start();
    t.regex(
      server.stderr,
      new RegExp(
        `warn \\S+${basename(tail)}: the last batch, at ${torn.offset}, was not written to its end and is cut off\\. That is how a log ends when its server is killed`,
      ),
    );
    t.deepEqual(await wrong(client, values), []);
    t.is(await client.get('last'), undefined);
  },
);

test.serial(
  'without the oldest file of its log a server has its shards wait, and serves them when they are given up',
  async (t) => {
    const cluster = await Cluster.start(t, ONE);
    const server = cluster.server(0);
    const values: Values = new Map();
    const client = await open(t, cluster);
    await writeSmall(client, values, 50, 'small');
    await writeLarge(client, values, 2 * FILE_MIB + 16, 'log');
    await server.kill();
    without(logFiles(server.dataDir)[0]!);
    await server.start();
    t.regex(
      server.stderr,
      /shard 0: the copy in \S+values cannot be used: records before \d+ of epoch 1 are gone\. .*or give the values up with farkv shard reset 0 --accept-loss/,
    );
    await statusWhen(server.address, (s) => waits(s, 0) && waits(s, 1));
    await resetAll(t, cluster);
    t.is(await client.get('small-1'), undefined);
    await client.put('small-1', 'again');
    await server.kill();
    await server.start();
    t.is((await client.get('small-1'))?.toString(), 'again');
  },
);

test.serial('without its log a server has its shards wait, and goes on when the log is back', async (t) => {
  const cluster = await Cluster.start(t, ONE);
  const server = cluster.server(0);
  const values: Values = new Map();
  const client = await open(t, cluster);
  await writeSmall(client, values, 50, 'small');
  await server.kill();
  const directory = join(server.dataDir, 'values');
  const back = without(directory);
  await server.start();
  await statusWhen(server.address, (s) => waits(s, 0) && waits(s, 1));
  await server.said(/shards? .* lost: .*farkv shard reset all/);
  const asked = await farkv(['get', 'small-0', '--timeout', '2s', '--connect', server.address]);
  t.is(asked.code, 69);
  t.regex(
    asked.stderr,
    /no shard has had a server that serves it for 2000 ms, though servers answer.*farkv status shows why/s,
  );
  await server.kill();
  renameSync(directory, `${directory}-empty`);
  back();
  await server.start();
  t.deepEqual(await wrong(client, values), []);

  await server.kill();
  without(directory);
  await server.start();
  await resetAll(t, cluster);
  t.is((await wrong(client, values)).length, values.size);
});

test.serial('a snapshot that is damaged or gone leaves its shard waiting, and a later start can read it', async (t) => {
  const cluster = await Cluster.start(t, ONE);
  const server = cluster.server(0);
  const values: Values = new Map();
  const client = await open(t, cluster);
  await writeSmall(client, values, 50, 'small');
  await writeLarge(client, values, SNAPSHOT_MIB + FILE_MIB, 'log');
  await statusWhen(server.address, (s) => {
    return logOf(s).bytes < SNAPSHOT_MIB * MIB && s.members[0]!.node!.values!.snapshots === 2;
  });
  const parts = (path: string): SnapshotParts => snapshotParts(path);
  const path = snapshotFiles(server.dataDir).find((one) => parts(one).chunks.length > 1)!;
  const shard = Number(/snapshot-(\d+)-/.exec(path)![1]);
  const { chunks, foot } = parts(path);
  await server.kill();
  const faults: readonly [damage: () => () => void, why: RegExp][] = [
    [() => flipped(path, 20), /: damaged at 0/],
    [() => flipped(path, chunks[1]!.offset + 50), new RegExp(`: damaged at ${chunks[1]!.offset}`)],
    [() => flipped(path, foot.offset + 40), new RegExp(`: damaged at ${foot.offset}`)],
    [() => without(path), /records? .*(are gone|and it has no snapshot)/],
  ];
  for (const [damage, why] of faults) {
    const undo = damage();
    await server.start();
    const line = server.stderr.split('\n').find((one) => one.includes('cannot be used')) ?? server.stderr;
    t.regex(line, new RegExp(`shard ${shard}: the copy in \\S+values cannot be used: .*${why.source}`));
    await statusWhen(server.address, (s) => waits(s, shard) && s.shards[1 - shard]?.state === 'serving');
    await server.kill();
    undo();
  }
  await server.start();
  t.deepEqual(await wrong(client, values), []);

  await server.kill();
  flipBit(path, foot.offset + 40);
  await server.start();
  await resetAll(t, cluster);
  const gone = (await wrong(client, values)).length;
  t.true(gone > 0 && gone < values.size, `${gone} of ${values.size}`);
});

test.serial('with other copies, what is damaged is made anew, and nothing is lost', async (t) => {
  const cluster = await Cluster.start(t, THREE);
  const { address } = cluster.server(0);
  const inSync =
    (n: number) =>
    (s: ClusterStatus): boolean =>
      s.shards.every(({ state, copies }) => state === 'serving' && copies?.inSync === n && copies.copies.length === n);
  await statusWhen(address, inSync(2));
  const values: Values = new Map();
  const client = await open(t, cluster);
  await writeSmall(client, values, 300, 'before');
  // Copies that join now have a snapshot with chunks.
  await succeeds(t, cluster, 'replication', 'set', '--level', 'durable', '--replicas', '3');
  await statusWhen(address, inSync(3));
  await writeSmall(client, values, 100, 'after');
  const all = async (what: (server: ServerProcess) => Promise<unknown>): Promise<void> => {
    await Promise.all(cluster.servers.map(what));
  };

  // What the metadata has of a server does not change while all are away.
  await all((s) => s.kill());
  const damages: { readonly server: ServerProcess; readonly said: RegExp }[] = [];
  for (const server of cluster.servers) {
    const joined = snapshotFiles(server.dataDir).filter((path) => snapshotParts(path).chunks.length > 0);
    const [path] = joined;
    if (path === undefined) continue;
    const { chunks, foot } = snapshotParts(path);
    const offset = [0, chunks[0]!.offset, foot.offset][damages.length]!;
    flipBit(path, offset + 30);
    damages.push({
      server,
      said: new RegExp(
        `cannot be used: ${basename(path)}: damaged at ${offset}\\. It is made anew of another server's`,
      ),
    });
    // Only one copy of each shard, so that another one is whole.
    if (damages.length === 1 && joined[1] !== undefined) without(joined[1]);
  }
  t.true(damages.length > 0);
  await all((s) => s.start());
  for (const { server, said } of damages) t.regex(server.stderr, said);
  await statusWhen(address, inSync(3));
  t.deepEqual(await wrong(client, values), []);

  // The end of a log, where it looks like a batch that was not written to its end: others have it.
  const [one, two] = [cluster.server(1), cluster.server(2)];
  await all((s) => s.kill());
  const tail = logFiles(one.dataDir).findLast((path) => batchesOf(path).length > 0)!;
  flipBit(tail, batchesOf(tail).at(-1)!.offset + 80);
  await all((s) => s.start());
  t.regex(one.stderr, /the last batch, at \d+, was not written to its end and is cut off/);
  await statusWhen(address, inSync(3));
  t.deepEqual(await wrong(client, values), []);

  // The middle of a log, twice.
  const damage = (server: ServerProcess): string => {
    const file = logFiles(server.dataDir).find((path) => batchesOf(path).length > 2)!;
    const { offset } = batchesOf(file)[0]!;
    flipBit(file, offset + 80);
    return `${basename(file)}: damaged at ${offset}\\.`;
  };
  await two.kill();
  const first = damage(two);
  await two.start();
  t.regex(
    two.stderr,
    new RegExp(`${first} Other servers have copies of all .*values\\.damaged, and copies are made anew`),
  );
  await statusWhen(address, inSync(3));
  t.deepEqual(await wrong(client, values), []);
  const { stdout } = await farkv(['status', '--connect', address]);
  t.regex(stdout, /^needs attention: s3 found the write-ahead log of its values damaged, and has put it aside/m);
  await writeSmall(client, values, 100, 'again');
  await two.kill();
  const second = damage(two);
  t.regex(
    await refusal(t, two),
    new RegExp(`${second} A damaged log was put aside before, as \\S+values\\.damaged.*Put back`),
  );

  // Another server's directory of the same cluster.
  without(join(two.dataDir, 'values'));
  await one.kill();
  renameSync(join(one.dataDir, 'values'), join(two.dataDir, 'values'));
  t.regex(await refusal(t, two), /0-\d+ belongs to another data directory\. Put back/);
  renameSync(join(two.dataDir, 'values'), join(one.dataDir, 'values'));
  await Promise.all([one.start(), two.start()]);
  await statusWhen(address, inSync(3));
  t.deepEqual(await wrong(client, values), []);
});

test.serial('after a loss of power a damaged log stays until the others are there', async (t) => {
  const cluster = await Cluster.start(t, THREE);
  const [zero, one, two] = cluster.servers as [ServerProcess, ServerProcess, ServerProcess];
  await statusWhen(zero.address, (s) => s.shards.every(({ copies }) => copies?.inSync === 2));
  const values: Values = new Map();
  const client = await open(t, cluster);
  await writeSmall(client, values, 300, 'small');
  await Promise.all(cluster.servers.map((s) => s.kill()));
  const undo = [one, two].map(({ dataDir }) => {
    const file = logFiles(dataDir).find((path) => batchesOf(path).length > 2)!;
    return flipped(file, batchesOf(file)[0]!.offset + 80);
  });
  const isAside = (server: ServerProcess): boolean => existsSync(join(server.dataDir, 'values.damaged'));

  // Both copies of some shards are damaged: each server waits for the other.
  cluster.servers.forEach((s) => s.launch());
  await zero.ready();
  await one.said(/damaged at \d+\. Waiting for s3 to be there/);
  await two.said(/damaged at \d+\. Waiting for s2 to be there/);
  await statusWhen(zero.address, (s) => s.shards.some(({ state }) => state !== 'serving'));
  t.false(isAside(one) || isAside(two));
  const waits = await farkv(['status', '--connect', zero.address]);
  t.is(waits.code, 1);
  t.regex(waits.stdout, /s2 found the write-ahead log of its values damaged, and waits for s3 to be there/);

  // One of them can be read again.
  await one.kill();
  undo[0]!();
  await one.start();
  await two.ready();
  t.regex(two.stderr, /is put aside as \S+values\.damaged/);
  t.deepEqual([isAside(one), isAside(two)], [false, true]);
  await statusWhen(zero.address, (s) =>
    s.shards.every(({ state, copies }) => state === 'serving' && copies?.inSync === 2),
  );
  t.deepEqual(await wrong(client, values), []);
});

const rooted = mayMount ? test.serial : test.serial.skip;

rooted('a full disk refuses changes, says so, and takes them again when there is space', async (t) => {
  const disk = new FileSystem(t, 512 * MIB);
  const cluster = await Cluster.start(t, { ...ONE, within: disk.path });
  const server = cluster.server(0);
  const values: Values = new Map();
  const client = await open(t, cluster);
  await writeSmall(client, values, 20, 'small');
  await statusWhen(server.address, (s) => logOf(s).freeFiles === 2);
  disk.fillUpTo(8 * MIB);
  const refused = await t.throwsAsync(async () => {
    for (;;) await writeLarge(client, values, 1, 'full');
  });
  t.like(refused, { code: 'ERR_TABLE_FULL' });
  t.regex(refused.message, /memory is full, .*or the disk of its values is full; what was there stays readable/);
  t.deepEqual(await wrong(client, values), []);
  t.true(logOf(await statusOf(server.address)).diskFull);
  const { stdout } = await farkv(['status', '--connect', server.address]);
  t.regex(
    stdout,
    /^needs attention: the disk of s1 is full, and changes are refused: free space on the file system of its --data-dir/m,
  );
  const put = await farkv(['put', 'key', 'value', '--connect', server.address]);
  t.is(put.code, 1);
  t.regex(put.stderr, /where farkv status shows a full disk, free space on it/);
  disk.empty();
  await statusWhen(server.address, (s) => !logOf(s).diskFull);
  await writeLarge(client, values, 4, 'again');
  await server.kill();
  await server.start();
  t.deepEqual(await wrong(client, values), []);
});

rooted(
  'a disk that cannot be written any more ends its server, and nothing that was acknowledged is lost',
  async (t) => {
    const disk = new FileSystem(t, 512 * MIB);
    const cluster = await Cluster.start(t, { ...ONE, within: disk.path });
    const server = cluster.server(0);
    const values: Values = new Map();
    const client = await open(t, cluster);
    await writeSmall(client, values, 100, 'small');
    disk.fail();
    const pending = client.put('late', 'value').catch((error: unknown) => error);
    t.is((await server.exit).code, 1);
    t.regex(
      server.stderr,
      /values\/0-(\d+|spare): (write|sync) failed: (EROFS, read-only file system|EIO, i\/o error)\. What this server has not acknowledged may be lost \(with --sync the last that it acknowledged, too\), so it ends: look at the disk, then start it again/,
    );
    t.regex(await refusal(t, server), /read-only file system/i);
    disk.repair();
    await server.start();
    t.deepEqual(await wrong(client, values), []);
    await pending;
  },
);
