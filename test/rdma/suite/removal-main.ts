/**
 * A device is taken away (`rdma link delete`) while a server serves over it and clients READ. A process of its own, in
 * which nothing opens the device: soft-RoCE and soft-iWARP wait, unlike a NIC's driver, until every process has let go
 * of a removed device, and librdmacm does so only when its process ends. Argument: the device.
 */
import assert from 'node:assert/strict';
import { fork, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { runParts, type Part } from './parts.js';

const READER = fileURLToPath(new URL('./removal-reader.js', import.meta.url));
const KINDS = ['rxe', 'siw'] as const;

const removal: Part = [
  'a device that is taken away: calls fail with a code, the server says so and ends, and both work over the device that comes in its place',
  async ({ device, cluster: start }) => {
    const shown = spawnSync('rdma', ['link', 'show', `${device}/1`], { encoding: 'utf8' }).stdout;
    const netdev = /netdev (\S+)/.exec(shown)?.[1];
    const kind = KINDS.find((k) => device.startsWith(k));
    assert.ok(netdev !== undefined && kind !== undefined, `rdma link show ${device}/1: ${shown}`);
    const cluster = await start({ servers: 1, shards: 2 });
    const server = cluster.server(0);
    const reader = fork(READER, [server.address], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const heard = async (): Promise<unknown> => ((await once(reader, 'message')) as unknown[])[0];
    assert.equal(await heard(), 'reading');
    const failed = heard();
    const deleted = spawn('rdma', ['link', 'delete', device], { stdio: 'inherit' });
    const gone = once(deleted, 'exit');
    await server.said(/the device of verbs is gone/);
    assert.equal((await server.exit).code, 1);
    console.log(`   a GET under way: ${String(await failed)}`);
    await once(reader, 'exit');
    assert.deepEqual(await gone, [0, null]);
    assert.equal(
      spawnSync('rdma', ['link', 'add', device, 'type', kind, 'netdev', netdev], { stdio: 'inherit' }).status,
      0,
    );
    await server.start();
    const second = fork(READER, [server.address], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    assert.deepEqual(((await once(second, 'message')) as unknown[])[0], 'reading');
    second.kill('SIGKILL');
    await once(second, 'exit');
  },
];

const device = process.argv[2] ?? '';
process.env.FARKV_RDMA_DEVICE = device;
process.exit((await runParts([removal], device, [])) ? 0 : 1);
