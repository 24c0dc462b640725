/** Which transports this server offers, where each listens, and under which addresses others find it. */
import type { RdmaAddress } from '../native/addon.js';
import type { DataPlaneOptions } from '../native/data-plane.js';
import { FarkvError } from '../core/errors.js';
import { bare, encrypted, inTheClear, isEncrypted } from '../core/metadata/data-address.js';
import type { FabricAddress } from '../core/metadata/state.js';
import { isSameHost, needsDevice, type Provider } from '../core/providers.js';
import { VERBS_PORT_OFFSET, type ServerSettings } from './config/settings.js';
import { formatHostPort, parseHostPort, type HostPort } from './config/units.js';
import { advertised } from './control/advertise.js';
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

type Bound = DataPlaneOptions['listen'][number];

/** Whether tcp's data is encrypted: as soon as the control port is, unless --insecure-data. */
// mutation: encryption/data-in-the-clear
const encrypts = (settings: ServerSettings): boolean => settings.tls !== undefined && !settings.insecureData;

/**
 * Where verbs listens. A completion queue belongs to one device, so all are addresses of one: of that which was named,
 * else of that which --fabric-listen leads to, else of the first. Of its addresses those in --fabric-listen, or, when
 * it names none of them (loopback, a wildcard), the first; `found` is in the order of interfaces.
 */
export function rdmaListen(settings: ServerSettings, found: readonly RdmaAddress[]): HostPort[] {
  const { fabricListen, rdmaDevice } = settings;
  const asked = (a: RdmaAddress): HostPort[] => fabricListen.filter((l) => l.host === a.address);
  const device = rdmaDevice ?? found.find((a) => asked(a).length > 0)?.device ?? found[0]?.device;
  const own = found.filter((a) => a.device === device);
  const [first] = own;
  if (first === undefined) {
    const there = [...new Set(found.map((a) => `${a.device} (${a.address})`))].join(', ');
    throw new FarkvError(
      'ERR_CONFIG',
      rdmaDevice === undefined
        ? 'verbs: no address of this machine leads to an RDMA device'
        : `--rdma-device: no address leads to ${rdmaDevice}; there is ${there === '' ? 'none' : there}`,
    );
  }
  const listen = own.flatMap(asked);
  const chosen = listen.length > 0 ? listen : [{ host: first.address, port: fabricListen[0]?.port ?? 0 }];
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
  rdma: () => readonly RdmaAddress[] = () => [],
): Bound[] {
  const list: Bound[] = [];
  const onDevice = transports.some(needsDevice) ? rdmaListen(settings, rdma()) : [];
  for (let worker = 0; worker < workers; worker++) {
    for (const provider of transports) {
      if (isSameHost(provider)) list.push({ provider, address: `unix:${sockets[worker] ?? ''}`, worker });
      else
        for (const { host, port } of needsDevice(provider) ? onDevice : settings.fabricListen) {
          const first = needsDevice(provider) ? port + VERBS_PORT_OFFSET : port;
          const address = formatHostPort({ host, port: port === 0 ? 0 : first + worker });
          list.push({
            provider,
            address: needsDevice(provider) || !encrypts(settings) ? address : encrypted(address),
            worker,
          });
        }
    }
  }
  return list;
}

/** What the metadata says about them: bound addresses as others may use them. */
export function fabricAddresses(bound: readonly Bound[], settings: ServerSettings, host: string): FabricAddress[] {
  return bound.flatMap(({ provider, address, worker }): FabricAddress[] =>
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
        })),
  );
}
