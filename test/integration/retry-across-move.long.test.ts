/**
 * A change whose first attempt reached the old owner of a shard and was not answered, and whose retry reaches the new
 * one: real servers, with the way between one client and their data planes in the test's hands. It is made once,
 * whatever its client is told; and what was changed since stays.
 */
import test, { type ExecutionContext } from 'ava';
import { FarkvError } from '../../client/index.js';
import { Cluster, farkv } from '../support/cluster.js';
import { ADVERTISED, Middle } from '../support/middle.js';
import { patientClient } from '../support/patient-client.js';
import { statusOf } from '../support/status.js';

/** How a change ended: what it said, or the code of its error. */
function ended(change: Promise<unknown>): Promise<unknown> {
  return change.catch((error: unknown) => {
    if (error instanceof FarkvError) return error.code;
    throw error;
  });
}

async function refusedAsUnknown(cluster: Cluster, server: number): Promise<number> {
  const { members } = await statusOf(cluster.server(server).address);
  const workers = members.find((m) => m.id === cluster.server(server).id)?.node?.dataPlane?.workers ?? [];
  return workers.reduce((sum, g) => sum + (g.refused.ERR_INDETERMINATE ?? 0), 0);
}

async function move(t: ExecutionContext, cluster: Cluster, shard: number, to: number): Promise<void> {
  const { code, stdout, stderr } = await farkv([
    'shard',
    'move',
    String(shard),
    cluster.server(to).id,
    '--wait',
    '5m',
    '--timeout',
    '2m',
    '--connect',
    cluster.addresses.join(','),
  ]);
  t.is(code, 0, stdout + stderr);
}

for (const back of [false, true]) {
  const where = back ? 'to another server and back' : 'to another server';
  test.serial(
    `a change that the old owner made and could not answer is not made again when its shard has moved ${where} before it is retried`,
    async (t) => {
      const cluster = await Cluster.start(t, {
        servers: 2,
        shards: 2,
        args: ['--lease-ms', '300', '--transport', 'shm,tcp', ...ADVERTISED],
      });
      const middles = [await Middle.before(t, cluster.server(0)), await Middle.before(t, cluster.server(1))] as const;
      // One that is cut off, and one that sees and changes the same by another way.
      const [cut, direct] = [await patientClient(t, cluster, 'tcp'), await patientClient(t, cluster, 'shm')];
      const shard = cut.shardOf('put');
      const from = cluster.servers.findIndex((s) => s.readyLine?.shards.includes(shard));
      const to = 1 - from;
      const key = (name: string): string => {
        for (let i = 0; ; i++) if (cut.shardOf(`${name}-${i}`) === shard) return `${name}-${i}`;
      };
      const [put, swap, del] = [key('put'), key('swap'), key('delete')];
      await direct.putMany([put, swap, del].map((k) => ({ key: k, value: 'before' })));
      const { version } = (await cut.getEntry(swap))!;

      const atFirst = await Promise.all([refusedAsUnknown(cluster, 0), refusedAsUnknown(cluster, 1)]);
      middles[from]!.passage = 'unanswered';
      const changes = [
        ended(cut.put(put, 'changed')),
        ended(cut.compareAndSwap(swap, version, 'changed')),
        ended(cut.delete(del)),
      ];
      for (const k of [put, swap]) while (String(await direct.get(k)) !== 'changed');
      while ((await direct.get(del)) !== undefined);
      for (const middle of middles) middle.passage = 'closed';

      await move(t, cluster, shard, to);
      if (back) await move(t, cluster, shard, from);
      // It came along; and then everything is changed again, so that a second write would be seen.
      t.is(String(await direct.get(put)), 'changed');
      t.is(String(await direct.get(swap)), 'changed');
      for (const k of [put, swap, del]) await direct.put(k, 'later');
      for (const middle of middles) middle.passage = 'open';

      t.deepEqual(await Promise.all(changes), ['ERR_INDETERMINATE', 'ERR_INDETERMINATE', 'ERR_INDETERMINATE']);
      t.deepEqual((await direct.getMany([put, swap, del])).map(String), ['later', 'later', 'later']);
      // It was the owner that said so, of each: none of them was given up by the client.
      const owner = back ? from : to;
      t.is((await refusedAsUnknown(cluster, owner)) - atFirst[owner]!, 3);
      // The client goes on as ever.
      await cut.put(put, 'last');
      t.is(String(await cut.get(put)), 'last');
    },
  );
}

test.serial(
  'a change that the old owner made and could not answer is answered by it when its shard stayed',
  async (t) => {
    const cluster = await Cluster.start(t, {
      servers: 2,
      shards: 2,
      args: ['--lease-ms', '300', '--transport', 'shm,tcp', ...ADVERTISED],
    });
    const middle = [await Middle.before(t, cluster.server(0)), await Middle.before(t, cluster.server(1))] as const;
    const [cut, direct] = [await patientClient(t, cluster, 'tcp'), await patientClient(t, cluster, 'shm')];
    const from = cluster.servers.findIndex((s) => s.readyLine?.shards.includes(cut.shardOf('swap')));
    await direct.put('swap', 'before');
    const { version } = (await cut.getEntry('swap'))!;
    middle[from]!.passage = 'unanswered';
    const swapped = cut.compareAndSwap('swap', version, 'changed');
    while (String(await direct.get('swap')) !== 'changed');
    const made = (await direct.getEntry('swap'))!.version;
    await direct.put('swap', 'later');
    middle[from]!.passage = 'closed';
    middle[from]!.passage = 'open';
    t.deepEqual(await swapped, { swapped: true, version: made });
    t.is(String(await cut.get('swap')), 'later');
  },
);
