/** Which transports this server offers, where each listens, and under which addresses others find it. */
import type { DataPlaneOptions } from '../native/addon.js';
import { FarkvError } from '../core/errors.js';
import type { FabricAddress, Provider } from '../core/metadata/state.js';
import type { ServerSettings } from './config/settings.js';
import { formatHostPort, parseHostPort } from './config/units.js';
import { advertised } from './control/advertise.js';
import type { Log } from './log.js';

/** Those wanted that this build has. Throws ERR_UNSUPPORTED when one that was named, or with --strict any, is missing. */
export function availableTransports(settings: ServerSettings, built: readonly Provider[], log: Log): Provider[] {
  const missing = settings.transports.filter((p) => !built.includes(p));
  if (missing.length > 0) {
    const text = `${missing.join(', ')} is not available on this machine (this build has ${built.join(', ')})`;
    if (!settings.transportAuto || settings.strict) throw new FarkvError('ERR_UNSUPPORTED', `--transport: ${text}`);
    log.warn(text);
  }
  const found = settings.transports.filter((p) => built.includes(p));
  if (found.length === 0) throw new FarkvError('ERR_UNSUPPORTED', '--transport: none of them is available on this machine');
  return found;
}

type Bound = DataPlaneOptions['listen'][number];

/** Where each data-plane thread listens. */
export function listenList(settings: ServerSettings, transports: readonly Provider[], groups: number, sockets: readonly string[]): Bound[] {
  const list: Bound[] = [];
  for (let group = 0; group < groups; group++) {
    for (const provider of transports) {
      if (provider === 'shm') list.push({ provider, address: `unix:${sockets[group] ?? ''}`, group });
      else for (const { host, port } of settings.fabricListen) list.push({ provider, address: formatHostPort({ host, port: port === 0 ? 0 : port + group }), group });
    }
  }
  return list;
}

/** What the metadata says about them: bound addresses as others may use them. */
export function fabricAddresses(bound: readonly Bound[], settings: ServerSettings, host: string): FabricAddress[] {
  return bound.flatMap(({ provider, address, group }): FabricAddress[] =>
    provider === 'shm' ? [{ provider, address, group, host }] : advertised([parseHostPort(address)], settings.advertise).map((a) => ({ provider, address: a, group })),
  );
}
