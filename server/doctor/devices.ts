/**
 * The RDMA devices of this host as the kernel shows them under /sys/class/infiniband: ports, link state, MTU, GIDs and
 * their types. Reads files only; `root` is "/" but in tests.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

export type Fabric = 'InfiniBand' | 'RoCE' | 'iWARP';

export interface Gid {
  readonly index: number;
  readonly gid: string;
  /** `IB/RoCE v1`, `RoCE v2`; undefined where the kernel gives none (iWARP). */
  readonly type: string | undefined;
  readonly networkInterface: string | undefined;
}

export interface Port {
  readonly port: number;
  /** As ibv_devinfo says it: ACTIVE, DOWN, INIT, ARMED. */
  readonly state: string;
  readonly physicalState: string;
  readonly linkLayer: string;
  readonly rate: string;
  readonly gids: readonly Gid[];
  readonly networkInterfaces: readonly NetworkInterface[];
}

export interface NetworkInterface {
  readonly name: string;
  readonly mtuBytes: number;
  readonly state: string;
}

export interface Device {
  readonly name: string;
  readonly fabric: Fabric;
  readonly firmware: string;
  /** The user-space device of libibverbs, /dev/infiniband/uverbsN; undefined when ib_uverbs has made none. */
  readonly uverbs: string | undefined;
  readonly ports: readonly Port[];
}

/** One line of a small kernel file; undefined when it cannot be read (a GID slot that is not used answers EINVAL). */
export function readLine(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return undefined;
  }
}

export function list(path: string): string[] {
  try {
    return readdirSync(path).sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  } catch {
    return [];
  }
}

const unusedGid = /^0000(:0000){7}$/;

function gidsOf(dir: string): Gid[] {
  const gids: Gid[] = [];
  for (const index of list(join(dir, 'gids'))) {
    const gid = readLine(join(dir, 'gids', index));
    if (gid === undefined || unusedGid.test(gid)) continue;
    gids.push({
      index: Number(index),
      gid,
      type: readLine(join(dir, 'gid_attrs/types', index)),
      networkInterface: readLine(join(dir, 'gid_attrs/ndevs', index)),
    });
  }
  return gids;
}

function interfaceOf(root: string, name: string): NetworkInterface {
  const dir = join(root, 'sys/class/net', name);
  return {
    name,
    mtuBytes: Number(readLine(join(dir, 'mtu')) ?? 0),
    state: readLine(join(dir, 'operstate')) ?? 'unknown',
  };
}

function portOf(root: string, device: string, port: string): Port {
  const dir = join(root, 'sys/class/infiniband', device, 'ports', port);
  const afterColon = (text: string | undefined): string => text?.replace(/^\d+:\s*/, '') ?? 'unknown';
  const gids = gidsOf(dir);
  const parent = list(join(root, 'sys/class/infiniband', device, 'device/net'));
  const softParent = readLine(join(root, 'sys/class/infiniband', device, 'parent'));
  const names = new Set([
    ...gids.flatMap((g) => g.networkInterface ?? []),
    ...parent,
    ...(softParent === undefined ? [] : [softParent]),
  ]);
  return {
    port: Number(port),
    state: afterColon(readLine(join(dir, 'state'))),
    physicalState: afterColon(readLine(join(dir, 'phys_state'))),
    linkLayer: readLine(join(dir, 'link_layer')) ?? 'unknown',
    rate: readLine(join(dir, 'rate')) ?? 'unknown',
    gids,
    networkInterfaces: [...names].map((n) => interfaceOf(root, n)),
  };
}

function uverbsOf(root: string, device: string): string | undefined {
  const dir = join(root, 'sys/class/infiniband_verbs');
  return list(dir).find((u) => readLine(join(dir, u, 'ibdev')) === device);
}

export function findDevices(root: string): Device[] {
  const dir = join(root, 'sys/class/infiniband');
  return list(dir).map((name) => {
    const ports = list(join(dir, name, 'ports')).map((p) => portOf(root, name, p));
    const isRnic = readLine(join(dir, name, 'node_type'))?.startsWith('4') === true;
    const fabric: Fabric = isRnic ? 'iWARP' : ports.some((p) => p.linkLayer === 'Ethernet') ? 'RoCE' : 'InfiniBand';
    return { name, fabric, firmware: readLine(join(dir, name, 'fw_ver')) ?? '', uverbs: uverbsOf(root, name), ports };
  });
}
