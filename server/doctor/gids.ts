/**
 * The GIDs of a port, those of connections first, with the reason for each that no connection has. farkv gives the
 * connection manager an IP address and no index of a GID (docs/rdma.md). What that makes of it, in Linux' cma.c,
 * cma_acquire_dev_by_src_ip() and cma_validate_port():
 *
 *   RoCE        the GID that is the address, of the type that is the port's default
 *   InfiniBand  the GID in the hardware address of the IPoIB interface that has the address
 *   iWARP       none: connections are TCP's
 */
import { SocketAddress } from 'node:net';
import type { RdmaAddress } from '../../native/addon.js';

export interface GidEntry {
  readonly index: number;
  readonly gid: string;
  /** `IB/RoCE v1`, `RoCE v2`; undefined where the kernel gives none (iWARP). */
  readonly type: string | undefined;
  readonly networkInterface: string | undefined;
}

export interface Gid extends GidEntry {
  /**
   * The IP address of whose connections it is the GID; undefined: of none. Over InfiniBand an interface's addresses
   * have one GID: all of them, with commas.
   */
  readonly connectionsOf: string | undefined;
  /** Why no connection has it; undefined: connections have it, or that could not be found out. */
  readonly unusedReason: string | undefined;
}

/** What decides which GIDs of a port connections have. */
export interface PortFacts {
  readonly device: string;
  readonly isRnic: boolean;
  /** Undefined: no RoCE port. */
  readonly roceMode: string | undefined;
  /** Of an InfiniBand port: the interfaces of its device, with the GID in the hardware address of each. */
  readonly ipoib: readonly { readonly name: string; readonly gid: string }[] | undefined;
  /** As the connection manager finds them; empty: it could not be asked. */
  readonly addresses: readonly RdmaAddress[];
}

type Use = Pick<Gid, 'connectionsOf' | 'unusedReason'>;

const UNKNOWN: Use = { connectionsOf: undefined, unusedReason: undefined };
const used = (connectionsOf: string): Use => ({ connectionsOf, unusedReason: undefined });
const unused = (unusedReason: string): Use => ({ connectionsOf: undefined, unusedReason });

/** FAB_RDMA_ADDRESSES_MAX (native/fabric/fabric.h): of so many, some may be missing. */
const ADDRESSES_MAX = 64;
const isWhole = (addresses: readonly RdmaAddress[]): boolean =>
  addresses.length > 0 && addresses.length < ADDRESSES_MAX;

/** An IPv4 address may have a label in the place of its interface: ib0:1. */
export const interfaceNameOf = ({ networkInterface }: RdmaAddress): string => networkInterface.replace(/:.*/, '');

/** fe80::/10. It is no address beyond its link, so farkv listens at none (native/fabric/verbs/addresses.c). */
export const isLinkLocal = (gid: string): boolean => /^fe[89ab]/.test(gid);

/** An IPv4 address is mapped: ::ffff:a.b.c.d. */
function addressOf(gid: string): string {
  const v4 = /^0000:0000:0000:0000:0000:ffff:(..)(..):(..)(..)$/.exec(gid);
  if (v4) return v4.slice(1).map((byte) => parseInt(byte, 16)).join('.'); // prettier-ignore
  return new SocketAddress({ address: gid, family: 'ipv6' }).address;
}

function ofRoce({ gid, type }: GidEntry, mode: string, { device, addresses }: PortFacts): Use {
  if (type !== mode) return unused(`${type?.replace('IB/', '') ?? 'unknown type'}: connections are ${mode}`);
  if (isLinkLocal(gid)) return unused('link-local: farkv listens at no such address');
  const address = addressOf(gid);
  const found = addresses.find((a) => a.address === address);
  if (found === undefined && isWhole(addresses)) return unused('no address of this host leads to it');
  if (found !== undefined && found.device !== device) return unused(`${address} leads to ${found.device}`);
  return used(address);
}

function ofInfiniBand(names: readonly string[], { device, addresses }: PortFacts): Use {
  if (names.length === 0) return unused('no IPoIB interface of this host has it');
  const own = addresses.filter((a) => a.device === device && names.includes(interfaceNameOf(a)));
  if (own.length > 0) return used(own.map((a) => a.address).join(', '));
  return isWhole(addresses) ? unused(`no address of ${names.join(', ')} leads to it`) : UNKNOWN;
}

function useOf(entry: GidEntry, port: PortFacts): Use {
  if (port.isRnic) return unused('iWARP: connections have IP addresses and no GID');
  if (port.roceMode !== undefined) return ofRoce(entry, port.roceMode, port);
  if (port.ipoib === undefined) return UNKNOWN;
  const names = port.ipoib.filter(({ gid }) => gid === entry.gid).map(({ name }) => name);
  return ofInfiniBand(names, port);
}

/** Connections' GIDs first, in the order of `addresses`: a server listens at the first by default (server/transports.ts). */
export function rankGids(entries: readonly GidEntry[], port: PortFacts): Gid[] {
  const rankOf = ({ connectionsOf, unusedReason }: Gid): number => {
    if (unusedReason !== undefined) return port.addresses.length + 1;
    const at = port.addresses.findIndex((a) => a.address === connectionsOf?.split(', ')[0]);
    return at < 0 ? port.addresses.length : at;
  };
  const gids = entries.map((entry): Gid => ({ ...entry, ...useOf(entry, port) }));
  return gids.sort((a, b) => rankOf(a) - rankOf(b) || a.index - b.index);
}
