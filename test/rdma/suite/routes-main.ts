/**
 * Which address and device connections take, where nothing names a device to clients: a server at each address of each
 * device, and a cluster of two servers with a device each. A process of its own, since the other suites name theirs.
 */
import assert from 'node:assert/strict';
import { addon } from '../../../native/addon.js';
import { farkv, type ServerProcess } from '../../support/cluster.js';
import { runParts, type Part } from './parts.js';

const found = addon.rdmaAddresses();
const devices = [...new Set(found.map(({ device }) => device))];
const KEYS = 64;
/** Of a PUT, taken in by a READ of the client's memory. */
const LARGE = 1 << 20;

const dataAddresses = (server: ServerProcess): string[] => (server.readyLine?.fabric ?? []).map((at) => at.address);

const eachAddress = (device: string): Part => [
  `${device}: a server that listens at an address is reached there, and farkv doctor names its GID`,
  async ({ cluster: start, client: connectTo }) => {
    const of = found.filter((a) => a.device === device);
    const doctor = await farkv(['doctor']);
    for (const { address, iwarp } of of) {
      const host = address.includes(':') ? `[${address}]` : address;
      const cluster = await start({ servers: 1, shards: 1, args: ['--fabric-listen', `${host}:0`] });
      const [listens] = dataAddresses(cluster.server(0));
      assert.equal(listens?.slice(0, listens.lastIndexOf(':')), host);
      const client = await connectTo(cluster);
      await client.put('key', host);
      assert.equal(String(await client.get('key')), host);
      // iWARP has no GIDs that a connection chooses from.
      if (!iwarp) assert.match(doctor.stdout, new RegExp(`GID \\d+ .* for connections of ${address}$`, 'm'));
      console.log(`   ${listens}`);
      await client.close();
      await cluster.remove();
    }
  },
];

const twoDevices: Part = [
  'two servers of one cluster, each with a device of its own: clients reach each over the device of its route',
  async ({ cluster: start, client: connectTo }) => {
    const [first, second] = devices;
    assert.ok(first !== undefined && second !== undefined, `one device only: ${devices.join()}`);
    const cluster = await start({ servers: 1, shards: 2, level: 'cache' });
    const client = await connectTo(cluster);
    const valueOf = (key: string): Buffer => Buffer.alloc(key.endsWith('0') ? LARGE : 100, key);
    const keys = Array.from({ length: KEYS }, (_, i) => `key ${i}`);
    for (const key of keys) await client.put(key, valueOf(key));
    const joiner = await cluster.joiner('s2', [
      ...['--transport', 'verbs', '--rdma-device', second, '--insecure'],
      ...['--election-ms', '3000', '--data-plane-threads', '1'],
    ]);
    await joiner.start();
    for (const [server, device] of [
      [cluster.server(0), first],
      [joiner, second],
    ] as const) {
      const own = found.filter((a) => a.device === device);
      const listens = dataAddresses(server);
      assert.ok(listens.length === 1 && own.some((a) => listens[0]?.includes(a.address)), listens.join());
    }
    const moved = await farkv(['shard', 'move', '0', 's2', '--timeout', '5m', '--connect', cluster.server(0).address]);
    assert.equal(moved.code, 0, moved.stderr);
    // The one that was there before, too.
    for (const one of [client, await connectTo(cluster)]) {
      for (const key of keys) assert.deepEqual(await one.get(key), valueOf(key), key);
      for (const key of keys) await one.put(key, valueOf(key));
      const taken = one.transports().map(({ server, provider }) => `${server} ${String(provider)}`);
      assert.deepEqual(taken.sort(), ['s1 verbs', 's2 verbs']);
    }
  },
];

delete process.env.FARKV_RDMA_DEVICE;
let passed = true;
for (const device of devices) passed = (await runParts([eachAddress(device)], device, [])) && passed;
passed = (await runParts([twoDevices], devices[0] ?? '', [])) && passed;
process.exit(passed ? 0 : 1);
