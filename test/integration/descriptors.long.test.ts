/**
 * What a server holds at rest follows from the shards that it owns, whatever happened before: the memory of their
 * segments, in far fewer files, and of free memory no more than the bound of native/table/shrink.c. A shard that was
 * given away leaves nothing behind.
 */
import test from 'ava';
import { readdirSync, readlinkSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, FarkvError, type BufferValue, type Client } from '../../client/index.js';
import type { ClusterStatus, ShardStatus } from '../../server/status.js';
import { Cluster, type ServerProcess } from '../support/cluster.js';
import { LASTING } from '../support/owners.js';
import { operator, statusOf, statusWhen, whole } from '../support/status.js';

const KEYS = 400;
const VALUE_MOST = 60_000;
const MIB = 2 ** 20;
const VALUE = Buffer.alloc(VALUE_MOST, 'v');

/** Memory files of tables that this process has open, and the bytes of pages that they have. */
function filesOpen({ pid }: ServerProcess): { readonly files: number; readonly bytes: number } {
  const sizes = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      const path = `/proc/${pid}/fd/${fd}`;
      return /^\/memfd:farkv-(heap|index)/.test(readlinkSync(path)) ? [statSync(path).blocks * 512] : [];
    } catch {
      return []; // closed meanwhile
    }
  });
  return { files: sizes.length, bytes: sizes.reduce((sum, one) => sum + one, 0) };
}

const regionsOf = ({ regions }: ShardStatus, kind: 'index' | 'heap') =>
  regions.filter((r) => r.provider === 'shm' && r.kind === kind);
const segmentsOf = (s: ShardStatus): number =>
  [...regionsOf(s, 'index'), ...regionsOf(s, 'heap')].reduce((sum, r) => sum + r.count, 0);

/** Of a table at rest, as shrink.c has it. */
function withinBound(s: ShardStatus): boolean {
  if (s.memory === undefined) return false;
  const { free, live, prepared, overflow, quarantine, slack, index, indexFree } = s.memory;
  // Files of the index go back from its end only.
  const held = Math.max(0, (s.heldBytes ?? 0) - (index + indexFree));
  return quarantine === 0 && s.retiredBytes === 0 && free + held <= (live + prepared + overflow + slack) / 3 + MIB;
}
const heldBy = (shards: readonly ShardStatus[]): number =>
  shards.reduce((sum, s) => sum + (s.memoryBytes ?? 0) + (s.heldBytes ?? 0), 0);

/** Every server holds what its shards have, and its shards have no more than they may. Waits for it. */
async function atRest(cluster: Cluster): Promise<ClusterStatus> {
  return await statusWhen(cluster.server(0).address, (status) => {
    if (!whole(status) || status.moves.length > 0 || !status.shards.every(withinBound)) return false;
    return cluster.servers.every(
      (server) => filesOpen(server).bytes === heldBy(status.shards.filter((s) => s.owner === server.id)),
    );
  });
}

/** Values of many sizes, changed again and again, and some deleted. */
async function change(kv: Client<BufferValue, Buffer>, rounds: number): Promise<void> {
  for (let i = 0; i < rounds * KEYS; i++) {
    const key = `key-${(i * 7919) % KEYS}`;
    if (i % 7 === 0) await kv.delete(key);
    else await kv.put(key, VALUE.subarray(0, 1 + ((i * 104_729) % (i % 2 === 0 ? VALUE_MOST : VALUE_MOST / 20))));
  }
}

/** All shards at once. */
async function move(cluster: Cluster, to: string): Promise<void> {
  const { address } = cluster.server(0);
  const { shards } = await statusOf(address);
  await Promise.all(
    shards.filter((s) => s.owner !== to).map((s) => operator(address, 'shard-move', { shard: s.shard, to })),
  );
  await statusWhen(
    address,
    (status) => whole(status) && status.moves.length === 0 && status.shards.every((s) => s.owner === to),
  );
}

test.serial(
  'after moves back and forth and a pause, servers hold the segments of the shards that they own, and no more',
  async (t) => {
    const cluster = await Cluster.start(t, {
      servers: 2,
      shards: 4,
      memory: '256mb',
      args: ['--transport', 'shm', ...LASTING],
    });
    const kv = await connect({
      servers: cluster.addresses,
      transport: 'shm',
      strict: true,
      timeoutMs: 60_000,
      unavailableAfterMs: 60_000,
    });
    t.teardown(() => kv.close());
    await change(kv, 8);
    await move(cluster, 's1');
    const before = await atRest(cluster);
    t.deepEqual(filesOpen(cluster.server(1)), { files: 0, bytes: 0 });
    const going = { on: true };
    const changing = (async () => {
      while (going.on) {
        await change(kv, 1).catch((error: unknown) => {
          if (!(error instanceof FarkvError && error.code === 'ERR_INDETERMINATE')) throw error;
        });
      }
    })();
    const failed = changing.then(
      () => undefined,
      (error: unknown) => error,
    );
    for (const to of ['s2', 's1', 's2', 's1']) await move(cluster, to);
    process.kill(cluster.server(0).pid, 'SIGSTOP');
    await sleep(1000); // the pause itself
    process.kill(cluster.server(0).pid, 'SIGCONT');
    await statusWhen(cluster.server(1).address, whole);
    await move(cluster, 's2');
    await move(cluster, 's1');
    going.on = false;
    t.is(await failed, undefined);
    const after = await atRest(cluster);
    t.deepEqual(filesOpen(cluster.server(1)), { files: 0, bytes: 0 });
    const { files } = filesOpen(cluster.server(0));
    const segments = after.shards.reduce((sum, s) => sum + segmentsOf(s), 0);
    t.true(files < segments / 2, `${files} files for ${segments} segments`);
    const live = (status: ClusterStatus): number => status.shards.reduce((sum, s) => sum + (s.memory?.live ?? 0), 0);
    const heap = (status: ClusterStatus): number =>
      status.shards.flatMap((s) => regionsOf(s, 'heap')).reduce((sum, r) => sum + r.bytes, 0);
    t.log(
      `${segments} segments in ${files} files, ${Math.round(heap(after) / MIB)} MiB for ${Math.round(live(after) / MIB)} MiB; before: ${Math.round(heap(before) / MIB)} for ${Math.round(live(before) / MIB)}`,
    );
  },
);
