/** TLS of the control plane: version 1.3 only, at the listener and towards other servers. */
import { readFileSync } from 'node:fs';
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls, createSecureContext, type ConnectionOptions, type TlsOptions } from 'node:tls';
import { FarkvError } from '../../core/errors.js';
import { parseHostPort } from '../config/units.js';
import type { TlsFiles } from '../config/settings.js';

/** Throws ERR_CONFIG when the files do not fit together. */
export function serverTls(files: TlsFiles): TlsOptions {
  const options = { cert: readFileSync(files.cert), key: readFileSync(files.key), minVersion: 'TLSv1.3' } as const;
  try {
    createSecureContext(options);
  } catch (cause) {
    throw new FarkvError('ERR_CONFIG', `the TLS certificate ${files.cert} and key ${files.key} cannot be used: ${(cause as Error).message}`, { cause });
  }
  return options;
}

/** Trust in servers: the given authorities, else the system's. */
export interface Trust {
  readonly ca?: Buffer;
}

export function trustOf(caFile: string | undefined): Trust {
  return caFile === undefined ? {} : { ca: readFileSync(caFile) };
}

/** Dials; with `trust`, over TLS, and the certificate must be one for the address's host. The socket is not connected yet. */
export function dial(address: string, trust: Trust | undefined): Socket {
  const { host, port } = parseHostPort(address);
  if (trust === undefined) return connectPlain({ host, port });
  const options: ConnectionOptions = { host, port, minVersion: 'TLSv1.3', ...trust, ...(isIP(host) === 0 ? { servername: host } : {}) };
  return connectTls(options);
}

/** The event after which a dialed socket can be written to. */
export function connectEvent(trust: Trust | undefined): 'connect' | 'secureConnect' {
  return trust === undefined ? 'connect' : 'secureConnect';
}
