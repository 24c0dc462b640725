/**
 * The RDMA devices of this host as the kernel shows them under /sys/class/infiniband: ports, link state, MTU, GIDs and
 * their types. Reads files only; `root` is "/" but in tests.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { RdmaAddress } from '../../native/addon.js';
import { interfaceNameOf, rankGids, type Gid, type GidEntry, type PortFacts } from './gids.js';

export type Fabric = 'InfiniBand' | 'RoCE' | 'iWARP';

/** What the connection manager gives connections of a RoCE port (configfs; Linux's Documentation/ABI/testing/configfs-rdma_cm). */
export interface RoceDefaults {
  /** A type of GIDs. */
  readonly mode: string;
  /** The IP type of service, whose upper six bits are the DSCP; undefined: not to be read. */
  readonly typeOfService: number | undefined;
}

export interface Port {
  readonly port: number;
  /** As ibv_devinfo says it: ACTIVE, DOWN, INIT, ARMED. */
  readonly state: string;
  readonly physicalState: string;
  readonly linkLayer: string;
  readonly rate: string;
  /** Undefined: no RoCE port. */
  readonly roceDefaults: RoceDefaults | undefined;
  /** Those of connections first. */
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
  /** Where a server with this device listens if its settings name no address of it; undefined: unknown, or none. */
  readonly defaultAddress: string | undefined;
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

const ROCE_V2 = 'RoCE v2';

function roceDefaultsOf(root: string, device: string, port: string, types: readonly string[]): RoceDefaults {
  const dir = join(root, 'sys/kernel/config/rdma_cm', device, 'ports', port);
  const typeOfService = readLine(join(dir, 'default_roce_tos'));
  return {
    // Linux prefers RoCE v2 (cma.c, CMA_PREFERRED_ROCE_GID_TYPE).
    mode: readLine(join(dir, 'default_roce_mode')) ?? (types.includes(ROCE_V2) ? ROCE_V2 : (types[0] ?? ROCE_V2)),
    typeOfService: typeOfService === undefined ? undefined : Number(typeOfService),
  };
}

function gidsOf(dir: string): GidEntry[] {
  const gids: GidEntry[] = [];
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

/** The hardware address of an IPoIB interface has 20 bytes: the last 16 are its GID. */
function ipoibOf(root: string, names: readonly string[]): NonNullable<PortFacts['ipoib']> {
  return names.flatMap((name) => {
    const bytes = readLine(join(root, 'sys/class/net', name, 'address'))?.split(':') ?? [];
    const gid = bytes.slice(4).join('').replace(/.{4}(?=.)/g, '$&:'); // prettier-ignore
    return bytes.length === 20 ? [{ name, gid }] : [];
  });
}

function interfaceOf(root: string, name: string): NetworkInterface {
  const dir = join(root, 'sys/class/net', name);
  return {
    name,
    mtuBytes: Number(readLine(join(dir, 'mtu')) ?? 0),
    state: readLine(join(dir, 'operstate')) ?? 'unknown',
  };
}

function portOf(
  root: string,
  port: string,
  { device, isRnic, addresses }: Pick<PortFacts, 'device' | 'isRnic' | 'addresses'>,
): Port {
  const dir = join(root, 'sys/class/infiniband', device, 'ports', port);
  const afterColon = (text: string | undefined): string => text?.replace(/^\d+:\s*/, '') ?? 'unknown';
  const linkLayer = readLine(join(dir, 'link_layer')) ?? 'unknown';
  const gids = gidsOf(dir);
  const types = gids.flatMap((g) => g.type ?? []);
  // An iWARP device has an Ethernet port too, and a GID that is no address; the kernel gives its type as IB/RoCE v1.
  const roceDefaults =
    linkLayer === 'Ethernet' && types.length > 0 && !isRnic ? roceDefaultsOf(root, device, port, types) : undefined;
  const parent = list(join(root, 'sys/class/infiniband', device, 'device/net'));
  const softParent = readLine(join(root, 'sys/class/infiniband', device, 'parent'));
  const names = new Set([
    ...gids.flatMap((g) => g.networkInterface ?? []),
    ...parent,
    ...(softParent === undefined ? [] : [softParent]),
  ]);
  const own = addresses.filter((a) => a.device === device).map(interfaceNameOf);
  return {
    port: Number(port),
    state: afterColon(readLine(join(dir, 'state'))),
    physicalState: afterColon(readLine(join(dir, 'phys_state'))),
    linkLayer,
    rate: readLine(join(dir, 'rate')) ?? 'unknown',
    roceDefaults,
    gids: rankGids(gids, {
      device,
      isRnic,
      roceMode: roceDefaults?.mode,
      ipoib: linkLayer === 'InfiniBand' ? ipoibOf(root, [...new Set([...names, ...own])]) : undefined,
      addresses,
    }),
    networkInterfaces: [...names].map((n) => interfaceOf(root, n)),
  };
}

function uverbsOf(root: string, device: string): string | undefined {
  const dir = join(root, 'sys/class/infiniband_verbs');
  return list(dir).find((u) => readLine(join(dir, u, 'ibdev')) === device);
}

/** `addresses`: as the connection manager finds them; none: it could not be asked. */
export function findDevices(root: string, addresses: readonly RdmaAddress[] = []): Device[] {
  const dir = join(root, 'sys/class/infiniband');
  return list(dir).map((name) => {
    const isRnic = readLine(join(dir, name, 'node_type'))?.startsWith('4') === true;
    const ports = list(join(dir, name, 'ports')).map((p) => portOf(root, p, { device: name, isRnic, addresses }));
    const fabric: Fabric = isRnic ? 'iWARP' : ports.some((p) => p.linkLayer === 'Ethernet') ? 'RoCE' : 'InfiniBand';
    return {
      name,
      fabric,
      firmware: readLine(join(dir, name, 'fw_ver')) ?? '',
      uverbs: uverbsOf(root, name),
      defaultAddress: addresses.find(({ device }) => device === name)?.address,
      ports,
    };
  });
}
