/**
 * From what the host has to what is wrong with it: each problem with the command that mends it. Pure.
 * An `error` means that `--transport verbs` cannot work; a `warning` that it would work worse than it could.
 */
import { DEVICES_MAX } from '../../core/providers.js';
import type { RdmaDevice } from '../../native/addon.js';
import { REBUILD } from '../../native/package.js';
import { formatSize } from '../../core/size.js';
import type { Device } from './devices.js';
import { isLinkLocal } from './gids.js';
import { largestRegion, regionsMost, USUAL_SHARDS } from './regions.js';
import { hasHugePages, type System } from './system.js';

export interface Problem {
  readonly severity: 'error' | 'warning';
  readonly text: string;
  readonly mend: string;
}

export interface Report {
  /** Whether `--transport verbs` would work. */
  readonly ok: boolean;
  /** Why the addon has no verbs, or undefined when libibverbs and librdmacm were opened. */
  readonly librariesMissing: string | undefined;
  readonly devices: readonly Device[];
  /** The devices that libibverbs has, each opened for a moment. */
  readonly opened: readonly RdmaDevice[];
  readonly system: System;
  /** Memory that a server wants to register, for the judgement of the limit. */
  readonly memoryBytes: number;
  readonly problems: readonly Problem[];
}

function ofDevice(d: Device): Problem[] {
  const problems: Problem[] = [];
  if (d.uverbs === undefined) {
    problems.push({
      severity: 'error',
      text: `${d.name} has no user-space device (/dev/infiniband/uverbsN)`,
      mend: 'modprobe ib_uverbs',
    });
  }
  for (const p of d.ports) {
    const name = `${d.name} port ${p.port}`;
    const nic = p.networkInterfaces[0];
    if (p.state !== 'ACTIVE') {
      const mend =
        d.fabric === 'InfiniBand'
          ? 'check the cable, and that a subnet manager runs: systemctl start opensm'
          : `ip link set ${nic?.name ?? 'INTERFACE'} up`;
      problems.push({ severity: 'error', text: `${name} is ${p.state} (${p.physicalState})`, mend });
      continue;
    }
    if (d.fabric === 'RoCE' && !p.gids.some((g) => g.type === 'RoCE v2' && !isLinkLocal(g.gid))) {
      problems.push({
        severity: p.gids.some((g) => !isLinkLocal(g.gid)) ? 'warning' : 'error',
        text: `${name} has no routable RoCE v2 GID`,
        mend: `ip addr add ADDRESS/PREFIX dev ${nic?.name ?? 'INTERFACE'}`,
      });
    }
    for (const i of p.networkInterfaces) {
      if (d.fabric === 'RoCE' && i.mtuBytes > 0 && i.mtuBytes < 4200) {
        problems.push({
          severity: 'warning',
          text: `${i.name} has an MTU of ${i.mtuBytes}: RoCE packets carry ${i.mtuBytes >= 2200 ? 2048 : 1024} bytes instead of 4096`,
          mend: `ip link set ${i.name} mtu 4200  (and on every switch between)`,
        });
      }
    }
  }
  return problems;
}

/** A server locks its memory once for each device that it listens on, which is one unless others are named. */
function ofLockedMemory(s: System, memoryBytes: number, devices: number): Problem[] {
  const soft = s.memlockSoftBytes;
  const most = memoryBytes * Math.min(Math.max(devices, 1), DEVICES_MAX);
  if (s.mayLockAnything || soft === undefined || soft >= most) return [];
  const server = `a server with --memory ${formatSize(memoryBytes)}`;
  const locks =
    soft < memoryBytes
      ? `${server} registers as much`
      : `${server} that listens on two devices registers as much twice`;
  return [
    {
      severity: soft < memoryBytes ? 'error' : 'warning',
      text: `the limit of locked memory is ${formatSize(soft)}; ${locks}`,
      mend:
        s.memlockHardBytes === undefined || s.memlockHardBytes >= most
          ? 'ulimit -l unlimited'
          : 'LimitMEMLOCK=infinity in the systemd unit, or "* - memlock unlimited" in /etc/security/limits.conf and a new login',
    },
  ];
}

function ofSystem(s: System, memoryBytes: number, devices: number): Problem[] {
  const problems = ofLockedMemory(s, memoryBytes, devices);
  for (const [module, loaded] of Object.entries(s.modules)) {
    if (!loaded && devices > 0)
      problems.push({ severity: 'error', text: `kernel module ${module} is not loaded`, mend: `modprobe ${module}` });
  }
  if (!s.hasSys)
    problems.push({
      severity: 'warning',
      text: '/sys is not mounted: RDMA devices, kernel modules, huge pages and NUMA nodes are unknown here',
      mend: 'mount -t sysfs sysfs /sys, or ask on the host',
    });
  if (s.hasSys && !hasHugePages(s)) {
    const pages = Math.ceil(memoryBytes / (s.hugePages.sizeBytes || 2 ** 21));
    const setting =
      s.shmemHugePages === 'unknown'
        ? ''
        : `echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled  (transparent ones), or `;
    problems.push({
      severity: 'warning',
      text: 'the system has no huge pages for shared memory: regions will have small pages',
      mend: `${setting}sysctl -w vm.nr_hugepages=${pages}  (reserved ones)`,
    });
  }
  if (s.groupMemoryBytes !== undefined && s.groupMemoryBytes < 2 * memoryBytes) {
    const limit = formatSize(s.groupMemoryBytes);
    problems.push({
      severity: 'warning',
      text: `the control group of this process may have ${limit}: a server with --memory ${formatSize(memoryBytes)} can need up to twice as much as that, and would be killed`,
      mend: `a limit of ${formatSize(2 * memoryBytes)} (systemd: MemoryMax=; containers: their limit of memory), or a smaller --memory`,
    });
  }
  if (/[-,]/.test(s.numaNodes)) {
    problems.push({
      severity: 'warning',
      text: `NUMA nodes ${s.numaNodes}: a region lies on the node where the server's memory thread ran when it was made`,
      mend: 'one server per node: numactl --cpunodebind=N --membind=N farkv server ... (N: the node of the NIC, or of the clients)',
    });
  }
  for (const [key, value] of Object.entries(s.sysctls)) {
    if (key.endsWith('.rp_filter') && value === '1') {
      problems.push({
        severity: 'warning',
        text: `${key} is strict: with several interfaces in one subnet RoCE connections may time out`,
        mend: `sysctl -w ${key}=2`,
      });
    }
  }
  return problems;
}

/** What libibverbs makes of a device: one without its driver for users is in the kernel's list alone. */
function ofOpened(name: string, opened: readonly RdmaDevice[], memoryBytes: number): Problem[] {
  const device = opened.find((one) => one.name === name);
  if (device === undefined) {
    const text = `libibverbs does not have ${name}: its driver for users is not installed`;
    return [{ severity: 'error', text, mend: 'apt-get install ibverbs-providers, or the package of its vendor' }];
  }
  if (device.error !== undefined) {
    const mend =
      'access to /dev/infiniband/uverbs*: by the group of these files, or the devices of the container or unit';
    return [{ severity: 'error', text: `${name} cannot be opened: ${device.error}`, mend }];
  }
  const problems: Problem[] = [];
  const memory = formatSize(memoryBytes);
  if (device.regionBytesMax < largestRegion(memoryBytes)) {
    const text = `${name} registers at most ${formatSize(device.regionBytesMax)} as one region; a segment of a server with --memory ${memory} may have more`;
    problems.push({ severity: 'warning', text, mend: 'a smaller --memory, and more servers' });
  }
  const regions = regionsMost(memoryBytes, USUAL_SHARDS);
  if (device.regionsMax < regions) {
    problems.push({
      severity: 'warning',
      text: `${name} registers at most ${device.regionsMax} regions; a server with --memory ${memory} in ${USUAL_SHARDS} shards may need ${regions}, and changes fail without them`,
      mend: 'a smaller --memory, and more servers on other hosts; or fewer --shards when the cluster is made',
    });
  }
  return problems;
}

export function diagnose(
  facts: Pick<Report, 'librariesMissing' | 'devices' | 'opened' | 'system' | 'memoryBytes'>,
): Report {
  const problems: Problem[] = [];
  if (facts.librariesMissing !== undefined) {
    problems.push({
      severity: 'error',
      text: facts.librariesMissing,
      mend: facts.librariesMissing.startsWith('not in this build')
        ? `apt-get install libibverbs-dev librdmacm-dev ibverbs-providers, then ${REBUILD}`
        : 'apt-get install libibverbs1 librdmacm1 ibverbs-providers',
    });
  }
  if (facts.devices.length === 0) {
    problems.push({
      severity: 'error',
      text: facts.system.rdmaNamespaces === 'exclusive' ? 'no RDMA device in this network namespace' : 'no RDMA device',
      mend:
        facts.system.rdmaNamespaces === 'exclusive'
          ? 'rdma dev set DEVICE netns NAME moves one here; rdma system set netns shared, before others than the first namespace exist, has all see all'
          : "the kernel module of your NIC (of Linux, or its vendor's); to try without one, where the kernel has rdma_rxe: modprobe rdma_rxe && rdma link add rxe0 type rxe netdev INTERFACE",
    });
  }
  const perDevice = facts.devices.map((device) => [
    ...ofDevice(device),
    // Where the libraries or the device file are missing, that is the reason.
    ...(facts.librariesMissing === undefined && device.uverbs !== undefined
      ? ofOpened(device.name, facts.opened, facts.memoryBytes)
      : []),
  ]);
  // One good device is enough: what is wrong with the others is then only worth a warning.
  const someGood = perDevice.some((ps) => ps.every((p) => p.severity !== 'error'));
  problems.push(
    ...perDevice.flat().map((p) => (someGood && p.severity === 'error' ? { ...p, severity: 'warning' as const } : p)),
  );
  problems.push(...ofSystem(facts.system, facts.memoryBytes, facts.devices.length));
  return { ...facts, problems, ok: problems.every((p) => p.severity !== 'error') };
}
