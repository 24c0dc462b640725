import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test from 'ava';
import type { RdmaAddress, RdmaDevice } from '../../native/addon.js';
import { findDevices } from './devices.js';
import { diagnose, type Report } from './diagnose.js';
import { regionsMost, USUAL_SHARDS } from './regions.js';
import { renderReport } from './render.js';
import { readSystem } from './system.js';

/** A host's files as soft-RoCE shows them; `change` replaces some, undefined removes. */
function host(change: Record<string, string | undefined> = {}): string {
  const root = mkdtempSync(join(tmpdir(), 'farkv-doctor-'));
  const port = 'sys/class/infiniband/rxe0/ports/1';
  const files: Record<string, string | undefined> = {
    'sys/class/infiniband/rxe0/node_type': '1: CA\n',
    'sys/class/infiniband/rxe0/fw_ver': '\n',
    'sys/class/infiniband/rxe0/parent': 'eth0\n',
    [`${port}/state`]: '4: ACTIVE\n',
    [`${port}/phys_state`]: '5: LinkUp\n',
    [`${port}/link_layer`]: 'Ethernet\n',
    [`${port}/rate`]: '2.5 Gb/sec (1X SDR)\n',
    [`${port}/gids/0`]: 'fe80:0000:0000:0000:0000:00ff:fe00:0001\n',
    [`${port}/gids/1`]: '0000:0000:0000:0000:0000:ffff:0a09:0001\n',
    [`${port}/gids/2`]: '0000:0000:0000:0000:0000:0000:0000:0000\n',
    [`${port}/gid_attrs/types/0`]: 'RoCE v2\n',
    [`${port}/gid_attrs/types/1`]: 'RoCE v2\n',
    [`${port}/gid_attrs/ndevs/1`]: 'eth0\n',
    'sys/class/infiniband_verbs/uverbs0/ibdev': 'rxe0\n',
    'sys/class/net/eth0/mtu': '4200\n',
    'sys/class/net/eth0/operstate': 'up\n',
    'sys/module/ib_core/x': '',
    'sys/module/ib_uverbs/x': '',
    'sys/module/rdma_cm/x': '',
    'sys/module/rdma_ucm/x': '',
    'proc/self/limits':
      'Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         8388608              8388608              bytes\n',
    'proc/self/status': 'CapEff:\t000001ffffffffff\n',
    'proc/meminfo': 'HugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n',
    'sys/kernel/mm/transparent_hugepage/shmem_enabled': 'always within_size [advise] never deny force\n',
    'proc/sys/kernel/osrelease': '6.1.0-13-amd64\n',
    'proc/sys/net/ipv4/conf/eth0/rp_filter': '2\n',
    ...change,
  };
  for (const [path, text] of Object.entries(files)) {
    if (text === undefined) continue;
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

/** As libibverbs opens soft-RoCE. */
const RXE: RdmaDevice = { name: 'rxe0', regionBytesMax: 2 ** 64, regionsMax: 524_287, queuePairsMax: 65_536 };

function examine(
  change: Record<string, string | undefined>,
  librariesMissing?: string,
  opened: readonly RdmaDevice[] = [RXE],
  addresses: readonly RdmaAddress[] = [],
): Report {
  const root = host(change);
  try {
    const devices = findDevices(root, addresses);
    const interfaces = devices.flatMap((d) => d.ports.flatMap((p) => p.networkInterfaces.map((i) => i.name)));
    return diagnose({ librariesMissing, devices, opened, system: readSystem(root, interfaces), memoryBytes: 2 ** 30 });
  } finally {
    rmSync(root, { recursive: true });
  }
}

test('a host with an active RoCE v2 port is ok, and its GIDs are listed without the unused ones', (t) => {
  const r = examine({});
  t.true(r.ok);
  t.deepEqual(r.problems, []);
  t.is(r.devices[0]?.fabric, 'RoCE');
  t.deepEqual(
    r.devices[0]?.ports[0]?.gids.map((g) => g.index),
    [1, 0],
  );
  t.regex(renderReport(r), /ok: --transport verbs would work/);
});

test('the GID of each address is named, and what the kernel gives connections', (t) => {
  const port = 'sys/class/infiniband/rxe0/ports/1';
  const two = {
    [`${port}/gids/2`]: '0000:0000:0000:0000:0000:ffff:0a09:0001\n',
    [`${port}/gid_attrs/types/2`]: 'IB/RoCE v1\n',
    [`${port}/gids/3`]: 'fd00:0000:0000:0000:0000:0000:0000:0007\n',
    [`${port}/gid_attrs/types/3`]: 'RoCE v2\n',
  };
  const used = (change: Record<string, string>): (string | undefined)[] =>
    examine({ ...two, ...change }).devices[0]!.ports[0]!.gids.map((g) => g.connectionsOf);
  t.deepEqual(used({}), ['10.9.0.1', 'fd00::7', undefined, undefined]);
  const configured = {
    'sys/kernel/config/rdma_cm/rxe0/ports/1/default_roce_mode': 'IB/RoCE v1\n',
    'sys/kernel/config/rdma_cm/rxe0/ports/1/default_roce_tos': '106\n',
  };
  t.deepEqual(used(configured), ['10.9.0.1', undefined, undefined, undefined]);
  const text = renderReport(examine({ ...two, ...configured }));
  t.regex(text, /connections are IB\/RoCE v1, type of service 106/);
  t.regex(text, /GID 2 .* {2}for connections of 10\.9\.0\.1/);
  t.is(examine({ [`${port}/link_layer`]: 'InfiniBand\n' }).devices[0]!.ports[0]!.roceDefaults, undefined);
});

test('GIDs are printed with the reason for each that is not used, and the address of a server', (t) => {
  const addresses = [{ device: 'rxe0', networkInterface: 'eth0', address: '10.9.0.1', iwarp: false }];
  const text = renderReport(examine({}, undefined, [RXE], addresses));
  for (const lines of [
    `  a server with this device listens at 10.9.0.1, unless --listen or --fabric-listen names another of its addresses`,
    `    GID 1  0000:0000:0000:0000:0000:ffff:0a09:0001  RoCE v2  eth0  for connections of 10.9.0.1
    GID 0  fe80:0000:0000:0000:0000:00ff:fe00:0001  RoCE v2  link-local: farkv listens at no such address`,
  ])
    t.true(text.includes(`\n${lines}\n`), text);
});

test('the GID of an InfiniBand interface is found in its hardware address', (t) => {
  const port = 'sys/class/infiniband/rxe0/ports/1';
  const ib = {
    [`${port}/link_layer`]: 'InfiniBand\n',
    'sys/class/infiniband/rxe0/parent': undefined,
    'sys/class/infiniband/rxe0/device/net/ib0/x': '',
    'sys/class/net/ib0/address': '80:00:02:08:fe:80:00:00:00:00:00:00:00:00:00:ff:fe:00:00:01\n',
  };
  const addresses = [{ device: 'rxe0', networkInterface: 'ib0', address: '10.1.0.1', iwarp: false }];
  const { devices } = examine(ib, undefined, [RXE], addresses);
  const [first, second] = devices[0]?.ports[0]?.gids ?? [];
  t.deepEqual([first?.index, first?.connectionsOf, second?.connectionsOf], [0, '10.1.0.1', undefined]);
});

test('the GID of an iWARP device is of no address, and none of RoCE is for it', (t) => {
  // As soft-iWARP shows it.
  const [device] = examine({
    'sys/class/infiniband/rxe0/node_type': '4: RNIC\n',
    'sys/class/infiniband/rxe0/ports/1/gids/0': '0200:0000:0002:0000:0000:0000:0000:0000\n',
    'sys/class/infiniband/rxe0/ports/1/gids/1': undefined,
    'sys/class/infiniband/rxe0/ports/1/gid_attrs/types/0': 'IB/RoCE v1\n',
  }).devices;
  t.is(device?.fabric, 'iWARP');
  t.is(device?.ports[0]?.roceDefaults, undefined);
  t.deepEqual(
    device?.ports[0]?.gids.map(({ connectionsOf }) => connectionsOf),
    [undefined],
  );
});

test('a host without libraries and devices is not ok, and both are said', (t) => {
  const r = examine(
    { 'sys/class/infiniband/rxe0/node_type': undefined, 'sys/class/infiniband/rxe0/ports/1/state': '1: DOWN\n' },
    'libibverbs.so.1 is not installed',
  );
  t.false(r.ok);
  t.true(r.problems.some((p) => p.mend.includes('libibverbs1')));
  t.true(r.problems.some((p) => p.text.includes('is DOWN') && p.mend === 'ip link set eth0 up'));
});

test('a small limit of locked memory matters only without CAP_IPC_LOCK', (t) => {
  const r = examine({ 'proc/self/status': 'CapEff:\t0000000000000000\n' });
  t.false(r.ok);
  t.regex(r.problems[0]?.mend ?? '', /LimitMEMLOCK/);
  t.true(examine({}).ok);
});

test('with two devices a limit of locked memory that is too small for both is a warning', (t) => {
  const limit = 1.5 * 2 ** 30;
  const change = {
    'proc/self/status': 'CapEff:\t0000000000000000\n',
    'proc/self/limits': `Limit Soft Hard Units\nMax locked memory         ${limit}              ${limit}              bytes\n`,
  };
  t.deepEqual(examine(change).problems, []);
  const locked = examine({ ...change, 'sys/class/infiniband/rxe1/node_type': '1: CA\n' }).problems.find((p) =>
    p.text.startsWith('the limit of locked memory'),
  );
  t.is(locked?.severity, 'warning');
  t.regex(locked?.text ?? '', /is 1\.5 GiB.*on two devices registers as much twice/);
});

test('what would make RDMA slower is a warning with a command', (t) => {
  const r = examine({
    'sys/class/net/eth0/mtu': '1500\n',
    'proc/sys/net/ipv4/conf/eth0/rp_filter': '1\n',
    'sys/kernel/mm/transparent_hugepage/shmem_enabled': 'always within_size advise never [deny] force\n',
  });
  t.true(r.ok);
  t.deepEqual(
    r.problems.map((p) => p.severity),
    ['warning', 'warning', 'warning'],
  );
  t.true(r.problems.some((p) => p.mend === 'sysctl -w net.ipv4.conf.eth0.rp_filter=2'));
});

test('huge pages are there when some are reserved or the kernel makes them on request', (t) => {
  const never = {
    'sys/kernel/mm/transparent_hugepage/shmem_enabled': 'always within_size advise [never] deny force\n',
  };
  const deny = { 'sys/kernel/mm/transparent_hugepage/shmem_enabled': 'always within_size advise never [deny] force\n' };
  const made = { 'proc/sys/kernel/osrelease': '6.1.0-13-amd64\n' };
  const reserved = {
    'proc/meminfo': 'HugePages_Total:      64\nHugePages_Free:       64\nHugepagesize:       2048 kB\n',
  };
  t.deepEqual(examine({ ...never, ...made }).problems, []);
  t.deepEqual(examine({ ...deny, ...reserved }).problems, []);
  for (const none of [
    { ...deny, ...made },
    { ...never, 'proc/sys/kernel/osrelease': '5.15.0\n' },
  ]) {
    t.regex(examine(none).problems[0]?.mend ?? '', /shmem_enabled.*sysctl -w vm.nr_hugepages=512/);
  }
});

test('what segments need of huge pages is said where there are any', (t) => {
  const none = { 'sys/kernel/mm/transparent_hugepage/shmem_enabled': 'always within_size advise never [deny] force\n' };
  const rule = /^huge pages +--huge-pages auto: .* 2\.0 MiB.*; require: .* at least 4\.0 MiB per shard$/m;
  t.regex(renderReport(examine({})), rule);
  t.notRegex(renderReport(examine(none)), rule);
});

test('a build without verbs is mended by building it, and not by libraries', (t) => {
  const mend = (missing: string): string | undefined => examine({}, missing).problems[0]?.mend;
  t.regex(mend('not in this build: its headers were missing')!, /libibverbs-dev librdmacm-dev.*npx farkv build/);
  t.is(mend('libibverbs.so.1: cannot open'), 'apt-get install libibverbs1 librdmacm1 ibverbs-providers');
});

test('several NUMA nodes are said with the command that keeps a server on one', (t) => {
  t.regex(examine({ 'sys/devices/system/node/online': '0-1\n' }).problems[0]?.mend ?? '', /numactl --cpunodebind/);
  t.deepEqual(examine({ 'sys/devices/system/node/online': '0\n' }).problems, []);
});

test('a RoCE port with link-local GIDs only cannot be routed to', (t) => {
  const r = examine({ 'sys/class/infiniband/rxe0/ports/1/gids/1': undefined });
  t.false(r.ok);
  t.regex(r.problems[0]?.text ?? '', /no routable RoCE v2 GID/);
});

test('missing kernel modules are named with modprobe', (t) => {
  const r = examine({ 'sys/module/rdma_ucm/x': undefined });
  t.false(r.ok);
  t.is(r.problems[0]?.mend, 'modprobe rdma_ucm');
});

test('without /sys nothing is said of modules and huge pages but that', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'farkv-doctor-'));
  t.teardown(() => rmSync(root, { recursive: true }));
  const system = readSystem(root, []);
  const r = diagnose({ librariesMissing: undefined, devices: [], opened: [], system, memoryBytes: 2 ** 30 });
  const texts = r.problems.map(({ text }) => text).join('\n');
  t.regex(texts, /\/sys is not mounted/);
  t.notRegex(texts, /huge pages for shared memory/);
  t.regex(renderReport(r), /modules +ib_core unknown, ib_uverbs unknown/);
});

test('the least limit of the control groups counts, of either version', (t) => {
  const mib = (count: number): string => `${count * 2 ** 20}\n`;
  const two = {
    'proc/self/cgroup': '0::/system.slice/farkv.service\n',
    'sys/fs/cgroup/system.slice/farkv.service/memory.max': 'max\n',
    'sys/fs/cgroup/system.slice/memory.max': mib(1500),
    'sys/fs/cgroup/memory.max': mib(4000),
  };
  const one = {
    'proc/self/cgroup': '3:cpu:/x\n2:memory:/docker/c\n',
    'sys/fs/cgroup/memory/docker/c/memory.limit_in_bytes': mib(1500),
    'sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n',
  };
  for (const files of [two, one]) {
    const r = examine(files);
    t.is(r.system.groupMemoryBytes, 1500 * 2 ** 20);
    t.deepEqual(
      r.problems.map(({ severity }) => severity),
      ['warning'],
    );
    t.regex(r.problems[0]?.mend ?? '', /2\.0 GiB.*MemoryMax=/);
  }
  t.deepEqual(examine({ ...two, 'sys/fs/cgroup/system.slice/memory.max': mib(2048) }).problems, []);
  t.is(examine({}).system.groupMemoryBytes, undefined);
});

test('where devices are of one network namespace, a missing one may be in another', (t) => {
  const gone = { 'sys/class/infiniband/rxe0/node_type': undefined };
  const root = host({ 'sys/module/ib_core/parameters/netns_mode': 'N\n', ...gone });
  t.teardown(() => rmSync(root, { recursive: true }));
  const system = readSystem(root, []);
  t.is(system.rdmaNamespaces, 'exclusive');
  const { problems } = diagnose({ librariesMissing: undefined, devices: [], opened: [], system, memoryBytes: 2 ** 30 });
  t.regex(problems[0]?.text ?? '', /in this network namespace/);
  t.regex(problems[0]?.mend ?? '', /^rdma dev set/);
  t.is(examine({ 'sys/module/ib_core/parameters/netns_mode': 'Y\n' }).system.rdmaNamespaces, 'shared');
});

test('a device is opened: what it registers is shown, and what keeps a process from it is an error', (t) => {
  t.regex(renderReport(examine({})), /\n {2}registers 524287 regions of any size; 65536 queue pairs\n/);
  const first = (...opened: RdmaDevice[]): [string, string] => {
    const { ok, problems } = examine({}, undefined, opened);
    t.is(ok, problems[0]?.severity !== 'error');
    return [problems[0]?.severity ?? '', problems[0]?.text ?? ''];
  };
  t.deepEqual(first(), ['error', 'libibverbs does not have rxe0: its driver for users is not installed']);
  t.deepEqual(first({ ...RXE, error: 'Permission denied' }), ['error', 'rxe0 cannot be opened: Permission denied']);
  t.regex(first({ ...RXE, regionBytesMax: 2 ** 26 }).join(': '), /^warning: rxe0 registers at most 64\.0 MiB/);
  t.deepEqual(first({ ...RXE, regionBytesMax: 66 * 2 ** 20 }), ['', '']);
});

test('a device that registers fewer regions than a server with this memory may need is a warning', (t) => {
  const needed = regionsMost(2 ** 30, USUAL_SHARDS);
  const { ok, problems } = examine({}, undefined, [{ ...RXE, regionsMax: needed - 1 }]);
  t.true(ok);
  t.is(problems.length, 1);
  t.is(problems[0]?.severity, 'warning');
  t.regex(
    problems[0]?.text ?? '',
    new RegExp(`^rxe0 registers at most ${needed - 1} regions; .*--memory 1\\.0 GiB in 8 shards may need ${needed}, `),
  );
  t.regex(problems[0]?.mend ?? '', /smaller --memory.*--shards/);
  t.deepEqual(examine({}, undefined, [{ ...RXE, regionsMax: needed }]).problems, []);
});
