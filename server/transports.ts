/** Which transports this server offers, where each listens, and under which addresses others find it. */
import { createServer, type Server } from 'node:net';
import type { RdmaAddress } from '../native/addon.js';
import type { Listening } from '../native/data-plane.js';
import { FarkvError } from '../core/errors.js';
import { bare, encrypted, inTheClear, isEncrypted } from '../core/metadata/data-address.js';
import { ofDevice, type FabricAddress } from '../core/metadata/state.js';
import { DEVICES_MAX, isSameHost, needsDevice, type Provider } from '../core/providers.js';
import { DATA_PORT_OFFSET, VERBS_PORT_OFFSET, type ServerSettings } from './config/settings.js';
import { formatHostPort, parseHostPort, type HostPort } from './config/units.js';
import { advertised } from './control/advertise.js';
import { listenAt } from './control/listener.js';
import type { Log } from './log.js';

/**
 * Those wanted that this build has. Throws ERR_UNSUPPORTED when one that was named, or with --strict any, is missing.
 */
export function availableTransports(settings: ServerSettings, built: readonly Provider[], log: Log): Provider[] {
  const missing = settings.transports.filter((p) => !built.includes(p));
  if (missing.length > 0) {
    const text = `${missing.join(', ')} is not available on this machine (this build has ${built.join(', ')})`;
    if (!settings.transportAuto || settings.strict) throw new FarkvError('ERR_UNSUPPORTED', `--transport: ${text}`);
    log.warn(text, { event: 'transport-missing', transport: missing.join() });
  }
  const found = settings.transports.filter((p) => built.includes(p));
  if (found.length === 0)
    throw new FarkvError('ERR_UNSUPPORTED', '--transport: none of them is available on this machine');
  return found;
}

/** Whether tcp's data is encrypted: as soon as the control port is, unless --insecure-data. */
// mutation: encryption/data-in-the-clear
const encrypts = (settings: ServerSettings): boolean => settings.tls !== undefined && !settings.insecureData;

/** A device is named by its position among those that this server listens on. */
interface DeviceAddress extends HostPort {
  readonly device: number;
}

/**
 * The devices that verbs listens on: those which were named, else those which --fabric-listen leads to, else the first;
 * `found` is in the order of interfaces. A device that was named and is not there is left out, for a server that has lost
 * one of its devices shall start on the others. Throws ERR_CONFIG when none is there, or with --strict any is not.
 */
export function rdmaDevices(settings: ServerSettings, found: readonly RdmaAddress[], log?: Log): string[] {
  const { fabricListen, strict } = settings;
  const ledTo = fabricListen.flatMap(({ host }) => found.filter((a) => a.address === host));
  const wanted = settings.rdmaDevices ?? [
    ...new Set((ledTo.length > 0 ? ledTo : found.slice(0, 1)).map((a) => a.device)),
  ];
  const isThere = (device: string): boolean => found.some((a) => a.device === device);
  const devices = wanted.filter(isThere);
  const missing = wanted.filter((device) => !isThere(device)).join(', ');
  if (devices.length === 0 || (strict && missing !== '')) {
    const there = [...new Set(found.map((a) => `${a.device} (${a.address})`))].join(', ');
    throw new FarkvError(
      'ERR_CONFIG',
      settings.rdmaDevices === undefined
        ? 'verbs: no address of this machine leads to an RDMA device; farkv doctor says what is missing'
        : `--rdma-device: no address leads to ${missing}; there is ${there === '' ? 'none' : there}`,
    );
  }
  const surplus = devices.splice(DEVICES_MAX).join(', ');
  if (surplus !== '') {
    const text = `--fabric-listen: its addresses lead to more than ${DEVICES_MAX} RDMA devices, and this server does not listen on ${surplus}: name those it shall have with --rdma-device`;
    if (strict) throw new FarkvError('ERR_CONFIG', text);
    log?.warn(text, { event: 'transport-missing', transport: 'verbs' });
  }
  if (missing !== '')
    log?.warn(`--rdma-device: no address leads to ${missing}; this server listens on ${devices.join(', ')}`, {
      event: 'transport-missing',
      transport: 'verbs',
    });
  return devices;
}

/** What a start listens over. */
export interface Attempt {
  readonly transports: readonly Provider[];
  /** RDMA devices, the preferred one first. */
  readonly devices: readonly string[];
}

/**
 * What is tried, in order, where an RDMA device does not work: all, each device alone, and, unless verbs was asked for,
 * none. With --strict all or nothing.
 */
export function attempts(
  settings: ServerSettings,
  transports: readonly Provider[],
  found: readonly RdmaAddress[],
  log?: Log,
): Attempt[] {
  if (!transports.some(needsDevice)) return [{ transports, devices: [] }];
  const devices = rdmaDevices(settings, found, log);
  const all = [{ transports, devices }];
  if (settings.strict) return all;
  const alone = devices.length > 1 ? devices.map((device) => ({ transports, devices: [device] })) : [];
  const none = { transports: transports.filter((p) => !needsDevice(p)), devices: [] };
  return [...all, ...alone, ...(settings.transportAuto ? [none] : [])];
}

/**
 * Where verbs listens on these devices: at those of a device's addresses that are in --fabric-listen, or, when it names
 * none of them (loopback, a wildcard), at the first. Throws ERR_CONFIG where others could come without a token.
 */
export function rdmaListen(
  settings: ServerSettings,
  devices: readonly string[],
  found: readonly RdmaAddress[],
): DeviceAddress[] {
  const { fabricListen } = settings;
  const chosen = devices.flatMap((name, device): DeviceAddress[] => {
    const own = found.filter((a) => a.device === name);
    const asked = own.flatMap((a) => fabricListen.filter((l) => l.host === a.address));
    const first = own.slice(0, 1).map((a) => ({ host: a.address, port: fabricListen[0]?.port ?? 0 }));
    return (asked.length > 0 ? asked : first).map(({ host, port }) => ({ host, port, device }));
  });
  if (settings.access.writer === undefined && settings.access.cluster === undefined && !settings.insecure) {
    throw new FarkvError(
      'ERR_CONFIG',
      `verbs would listen on ${chosen.map(formatHostPort).join(', ')}, which other machines can reach, without a token: give --token-file, certificates of farkv secrets, or --insecure`,
    );
  }
  return chosen;
}

/**
 * Where each data-plane thread listens. Verbs has ports of its own: over iWARP a port is one of the kernel's TCP, which
 * tcp's listener would have taken.
 */
export function listenList(
  settings: ServerSettings,
  transports: readonly Provider[],
  workers: number,
  sockets: readonly string[],
  devices: readonly string[] = [],
  found: readonly RdmaAddress[] = [],
): Listening[] {
  const list: Listening[] = [];
  const onDevice = transports.some(needsDevice) ? rdmaListen(settings, devices, found) : [];
  const onMachine = settings.fabricListen.map((at): DeviceAddress => ({ ...at, device: 0 }));
  for (let worker = 0; worker < workers; worker++) {
    for (const provider of transports) {
      if (isSameHost(provider)) list.push({ provider, address: `unix:${sockets[worker] ?? ''}`, worker });
      else
        for (const { host, port, device } of needsDevice(provider) ? onDevice : onMachine) {
          const first = needsDevice(provider) ? port + VERBS_PORT_OFFSET : port;
          const address = formatHostPort({ host, port: port === 0 ? 0 : first + worker });
          list.push({
            provider,
            address: needsDevice(provider) || !encrypts(settings) ? address : encrypted(address),
            worker,
            ...(device === 0 ? {} : { device }),
          });
        }
    }
  }
  return list;
}

export const portTaken = (what: string, cause: unknown): FarkvError =>
  new FarkvError(
    'ERR_ADDRESS_IN_USE',
    `data: ${what}: stop the program that listens there, or choose other ports with --fabric-listen (by default the control port + ${DATA_PORT_OFFSET})`,
    { cause },
  );

/**
 * Before this server may make a cluster, which keeps the level and the shards that it is made with: what keeps it from
 * listening for data ends the start now, when those can still be changed too. Throws as openDataPlane.
 */
export async function tryListening(
  settings: ServerSettings,
  transports: readonly Provider[],
  rdmaAddresses: () => readonly RdmaAddress[],
): Promise<void> {
  const found = transports.some(needsDevice) ? rdmaAddresses() : [];
  const workers = Math.min(settings.dataPlaneThreads, Math.ceil(settings.shards / Math.max(1, settings.peers.length)));
  const [first] = attempts(settings, transports, found);
  if (first === undefined) return;
  const all = listenList(settings, first.transports, Math.max(1, workers), [], first.devices, found);
  const servers: Server[] = [];
  try {
    for (const { address } of all.filter(({ provider }) => provider === 'tcp')) {
      const at = parseHostPort(bare(address));
      const server = createServer((socket) => socket.destroy());
      servers.push(server);
      try {
        await listenAt(server, at, '--fabric-listen', { ipv6Only: true });
      } catch (error) {
        const isTaken = (error as FarkvError).code === 'ERR_ADDRESS_IN_USE';
        throw isTaken ? portTaken(`cannot listen on ${formatHostPort(at)}: Address already in use`, error) : error;
      }
    }
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

/** What the metadata says about them: bound addresses as others may use them. */
export function fabricAddresses(bound: readonly Listening[], settings: ServerSettings, host: string): FabricAddress[] {
  return bound.flatMap(({ provider, address, worker, device }): FabricAddress[] =>
    isSameHost(provider)
      ? [{ provider, address, worker, host }]
      : // What --advertise names leads to the machine, and not by all means to its RDMA device.
        advertised([parseHostPort(bare(address))], needsDevice(provider) ? [] : settings.advertise).map((a) => ({
          provider,
          address: needsDevice(provider)
            ? a
            : isEncrypted(address)
              ? encrypted(a)
              : settings.tls === undefined
                ? a
                : inTheClear(a),
          worker,
          ...ofDevice({ device }),
        })),
  );
}
