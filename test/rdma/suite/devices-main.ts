/**
 * A server that listens on two devices: clients take the first that they have a route to, and go on over the other when
 * theirs is taken away. A process of its own, in which nothing opens a device (removal-main.ts says why); it makes a
 * second soft-RoCE device beside rxe0, and takes it away at the end.
 */
import assert from 'node:assert/strict';
import { fork, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { on, once } from 'node:events';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { farkv, type Cluster, type ClusterOptions } from '../../support/cluster.js';
import { runParts, type Part } from './parts.js';

const CLIENT = fileURLToPath(new URL('./devices-client.js', import.meta.url));
const FIRST = { device: 'rxe0', netdev: 'dummy0', address: '10.9.0.1' };
const SECOND = { device: 'rxe1', netdev: 'dummy2', address: '10.7.0.1' };
const DEVICES = [FIRST, SECOND];

function sh(command: string): string {
  const { status, stdout, stderr } = spawnSync('sh', ['-ec', command], { encoding: 'utf8' });
  assert.equal(status, 0, `${command}: ${stderr}`);
  return stdout;
}

/** Devices on which a process has a queue pair; the kernel names the thread that made it. */
function devicesOf(pid: number | undefined): string[] {
  const threads = new Set(readdirSync(`/proc/${pid}/task`).map(Number));
  const all = JSON.parse(sh('rdma -j resource show qp')) as readonly {
    readonly ifname: string;
    readonly pid?: number;
  }[];
  return [...new Set(all.filter((qp) => qp.pid !== undefined && threads.has(qp.pid)).map((qp) => qp.ifname))];
}

interface Ended {
  readonly connects: number;
  readonly providers: readonly string[];
}

class BusyClient {
  readonly process: ChildProcess;
  readonly #messages: AsyncIterator<unknown[]>;
  readonly #exit: Promise<unknown>;

  constructor(cluster: Cluster) {
    this.process = fork(CLIENT, cluster.addresses, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    this.#messages = on(this.process, 'message', { close: ['exit'] });
    this.#exit = once(this.process, 'exit');
  }

  async #heard(): Promise<unknown> {
    const next = await this.#messages.next();
    assert.ok(next.done !== true, 'the client ended by itself');
    return next.value[0];
  }

  /** All of its keys, so many times. */
  async goes(rounds: number): Promise<void> {
    for (let i = 0; i < rounds; i++) assert.equal(await this.#heard(), 'going');
  }

  async end(): Promise<Ended> {
    this.process.send('end');
    for (;;) {
      const said = await this.#heard();
      if (said === 'going') continue;
      await this.#exit;
      return said as Ended;
    }
  }
}

const verbsAddresses = (cluster: Cluster): string[] =>
  (cluster.server(0).readyLine?.fabric ?? []).map(({ address }) => address.slice(0, address.lastIndexOf(':')));

/** Nothing but `to` is forbidden: the rules come before the table of local addresses, where all of these are. */
async function withoutRoute<T>(to: string, run: () => Promise<T>): Promise<T> {
  sh('ip rule add pref 100 lookup local; ip rule del pref 0');
  sh(`ip rule add pref 1 to ${to} unreachable`);
  try {
    return await run();
  } finally {
    sh('ip rule del pref 1; ip rule add pref 0 lookup local; ip rule del pref 100');
  }
}

/** Until all processes that opened the device have ended it is not let go of: `run` ends them. */
async function losesFirst(run: () => Promise<void>): Promise<void> {
  const gone = once(spawn('rdma', ['link', 'delete', FIRST.device], { stdio: 'inherit' }), 'exit');
  await run();
  assert.deepEqual(await gone, [0, null]);
  sh(`rdma link add ${FIRST.device} type rxe netdev ${FIRST.netdev}`);
}

const routes: Part = [
  'a server with two devices: a client without a route to the first uses the second, any other the first',
  async ({ cluster: start }) => {
    const cluster = await start({ servers: 1, shards: 2, args: ['--rdma-device', SECOND.device] });
    assert.deepEqual(
      verbsAddresses(cluster),
      DEVICES.map((d) => d.address),
    );
    const status = await farkv(['status', '--json', '--connect', cluster.server(0).address, '--timeout', '1m']);
    for (const { address } of DEVICES) assert.ok(status.stdout.includes(`"${address}:`), status.stdout);
    const reaches = async (device: string): Promise<void> => {
      const client = new BusyClient(cluster);
      await client.goes(2);
      assert.deepEqual(devicesOf(client.process.pid), [device]);
      // An rkey of the other device ends a connection.
      assert.deepEqual(await client.end(), { connects: 1, providers: ['verbs'] });
    };
    await withoutRoute(FIRST.address, () => reaches(SECOND.device));
    await reaches(FIRST.device);
  },
];

const loss: Part = [
  'a server whose first device is taken away: its clients go on over the second, new ones come, and no value is lost',
  async ({ cluster: start }) => {
    const cluster = await start({ servers: 1, shards: 2, args: ['--rdma-device', SECOND.device] });
    const server = cluster.server(0);
    const client = new BusyClient(cluster);
    await client.goes(1);
    assert.deepEqual(devicesOf(client.process.pid), [FIRST.device]);
    await losesFirst(async () => {
      await server.said(/the device of verbs at 10\.9\.0\.1:\d+ is gone.* over verbs at 10\.7\.0\.1:\d+ until/);
      await client.goes(3);
      assert.ok(devicesOf(client.process.pid).includes(SECOND.device));
      const late = new BusyClient(cluster);
      await late.goes(2);
      assert.deepEqual(devicesOf(late.process.pid), [SECOND.device]);
      assert.ok(server.running);
      assert.deepEqual(await client.end(), { connects: 2, providers: ['verbs'] });
      await late.end();
      await server.kill();
    });
  },
];

/** What starts within `run` may have one object of the first device: too few for a queue. */
async function withFewOfFirst<T>(run: () => Promise<T>): Promise<T> {
  const [group, all] = ['/run/farkv-cgroup/few', '/run/farkv-cgroup'];
  sh(`mkdir -p ${all}; mount -t cgroup2 none ${all}; echo +rdma > ${all}/cgroup.subtree_control; mkdir ${group}
    echo "${FIRST.device} hca_object=1" > ${group}/rdma.max; echo ${process.pid} > ${group}/cgroup.procs`);
  try {
    return await run();
  } finally {
    sh(`echo ${process.pid} > ${all}/cgroup.procs`);
  }
}

const poor: Part = [
  'a server of which one device has nothing to give listens on the other',
  async ({ cluster: start }) => {
    const args = ['--rdma-device', SECOND.device];
    const cluster = await withFewOfFirst(() => start({ servers: 1, shards: 2, args }));
    await cluster.server(0).said(/verbs on rxe0, rxe1 cannot be offered: cannot listen on 10\.9\.0\.1/);
    await cluster.server(0).said(/verbs on rxe0 cannot be offered/);
    assert.deepEqual(verbsAddresses(cluster), [SECOND.address]);
    const client = new BusyClient(cluster);
    await client.goes(1);
    assert.deepEqual(devicesOf(client.process.pid), [SECOND.device]);
    await client.end();
  },
];

interface CopiesShown {
  readonly members: readonly {
    readonly node?: {
      readonly dataPlane?: {
        readonly shards: readonly { readonly copy?: { readonly peers?: readonly { readonly linked?: string }[] } }[];
      };
    };
  }[];
  readonly shards: readonly { readonly copies?: { readonly inSync: number } }[];
}

/** Each shard has two copies in sync, of which the owner has a link to the other's server. */
async function linked(cluster: Cluster): Promise<void> {
  for (;;) {
    const status = await farkv(['status', '--json', '--connect', cluster.server(0).address, '--timeout', '1m']);
    if (status.stdout === '') continue;
    const shown = JSON.parse(status.stdout) as CopiesShown;
    const peers = shown.members.flatMap((m) =>
      (m.node?.dataPlane?.shards ?? []).flatMap((s) => s.copy?.peers ?? []).map((peer) => peer.linked),
    );
    const isWhole = shown.shards.every((s) => s.copies?.inSync === 2);
    if (isWhole && peers.length === shown.shards.length && peers.every((over) => over === 'verbs')) return;
  }
}

const LINKED: ClusterOptions = {
  ...{ servers: 2, shards: 2, level: 'replicated' },
  args: ['--rdma-device', SECOND.device, '--owner-lease-ms', '6000'],
};

const links: Part = [
  'copies on servers with two devices: links go over the second where there is no route to the first',
  async ({ cluster: start }) => {
    await withoutRoute(FIRST.address, async () => {
      const cluster = await start(LINKED);
      await linked(cluster);
      for (const server of cluster.servers) assert.deepEqual(devicesOf(server.pid), [SECOND.device]);
      const client = new BusyClient(cluster);
      await client.goes(1);
      await client.end();
      for (const server of cluster.servers) await server.kill();
    });
  },
];

const linksGoOn: Part = [
  'copies on servers with two devices: links go on over the second when the first is taken away',
  async ({ cluster: start }) => {
    // A guest that is slow may take longer than an attempt has while there is a second.
    const cluster = await withoutRoute(SECOND.address, async () => {
      const started = await start(LINKED);
      await linked(started);
      return started;
    });
    for (const server of cluster.servers) assert.deepEqual(devicesOf(server.pid), [FIRST.device]);
    const client = new BusyClient(cluster);
    await client.goes(1);
    await losesFirst(async () => {
      for (const server of cluster.servers) await server.said(/the device of verbs at 10\.9\.0\.1:\d+ is gone/);
      await client.goes(2);
      // A shard may have failed over meanwhile: a backup waits for its owner for 250 ms.
      await linked(cluster);
      for (const server of cluster.servers) assert.ok(devicesOf(server.pid).includes(SECOND.device));
      await client.end();
      for (const server of cluster.servers) await server.kill();
    });
  },
];

delete process.env.FARKV_RDMA_DEVICE;
sh(`ip link add ${SECOND.netdev} type dummy
  ip link set ${SECOND.netdev} address 02:00:00:00:00:03 mtu 4200 up
  ip addr add ${SECOND.address}/24 dev ${SECOND.netdev}
  rdma link add ${SECOND.device} type rxe netdev ${SECOND.netdev}`);
const passed = await runParts([routes, poor, loss, links, linksGoOn], FIRST.device, process.argv.slice(2));
sh(`rdma link delete ${SECOND.device}; ip link del ${SECOND.netdev}`);
process.exit(passed ? 0 : 1);
