/**
 * TLS of the control plane, for both ends: its version and ciphers, whom a dialer trusts and what it shows, and the
 * errors that mean "not trusted".
 */
import { isIP } from 'node:net';
import { createSecureContext, type ConnectionOptions } from 'node:tls';
import { types } from 'node:util';
import { FarkvError } from '../core/errors.js';
import { authoritiesIn, checkPair, checkServer, roleNameOf } from './certificate.js';
import { PEM_BYTES_MAX, readRegular } from './regular-file.js';
import { WatchedFiles, type WatchOptions } from './watched-files.js';

/** What either end speaks, whatever the defaults of Node.js are made to be: all suites of TLS 1.3 that it has. */
export const TLS_ONLY = {
  minVersion: 'TLSv1.3',
  ciphers: 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256',
} as const;

/** How a dialer checks the other end, and shows who it is. */
export interface Trust {
  /** PEM; by default the system's authorities. */
  readonly ca?: string | Buffer | readonly (string | Buffer)[];
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** Files of the same, read again when they change: so a certificate is exchanged while its program runs. */
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  /** The name that the certificate must have; by default the address's host, or the role name of a server. */
  readonly servername?: string;
}

/** Trust whose files were read: what the next connection is dialed with. */
export interface TrustSource {
  readonly value: Trust;
}

const pem = (file: string | undefined): Buffer | undefined =>
  file === undefined ? undefined : readRegular(file, PEM_BYTES_MAX);

/**
 * Throws ERR_CONFIG when files cannot be read, certificate and key do not belong together, or a field is none. `checkKey`:
 * throws where the key's file must not be used.
 */
export function trustSource(given: Trust, watch?: WatchOptions, checkKey: () => void = () => undefined): TrustSource {
  // A copy: a connection is dialed with it much later.
  const trust: Trust = { ...given };
  const { caFile, certFile, keyFile, servername } = trust;
  for (const [name, text] of Object.entries({ caFile, certFile, keyFile, servername }))
    if (text !== undefined && typeof text !== 'string') throw new FarkvError('ERR_CONFIG', `tls: ${name} is a text`);
  for (const [text, file, name] of [
    [trust.ca, caFile, 'ca'],
    [trust.cert, certFile, 'cert'],
    [trust.key, keyFile, 'key'],
  ] as const) {
    if (text !== undefined && file !== undefined)
      throw new FarkvError('ERR_CONFIG', `tls: ${name} and ${name}File exclude each other`);
  }
  const read = (): Trust => {
    checkKey();
    const {
      cert = pem(certFile),
      key = pem(keyFile),
      ca = caFile === undefined ? undefined : authoritiesIn(caFile),
    } = trust;
    if ((cert === undefined) !== (key === undefined)) throw new Error('a certificate and its key are needed together');
    const own = cert !== undefined && key !== undefined ? { cert, key } : {};
    if (cert !== undefined && key !== undefined)
      checkPair({ pem: cert, name: certFile ?? 'cert' }, { pem: key, name: keyFile ?? 'key' });
    const trusted = typeof ca === 'string' || ca === undefined || types.isUint8Array(ca) ? ca : [...ca];
    createSecureContext({ ...own, ...(trusted === undefined ? {} : { ca: trusted }) });
    if (cert !== undefined) roleNameOf(cert);
    return {
      ...trust,
      ...(trusted === undefined ? {} : { ca: trusted }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    };
  };
  const files = [caFile, certFile, keyFile].filter((file) => file !== undefined);
  try {
    if (files.length === 0) return { value: read() };
    return new WatchedFiles(files, read, watch);
  } catch (cause) {
    throw new FarkvError('ERR_CONFIG', `tls: the files cannot be used: ${(cause as Error).message}`, { cause });
  }
}

/**
 * What node:tls needs to dial `host`, where server `id` is expected if that is known. An IP address is checked against
 * the certificate without a server name.
 */
export function dialerTls(host: string, { ca, cert, key, servername }: Trust, id?: string): ConnectionOptions {
  const name = servername ?? (isIP(host) === 0 ? host : undefined);
  const cluster = cert === undefined ? undefined : roleNameOf(cert)?.cluster;
  // Authorities of the system sign for hosts; nobody has asked them about roles. Whoever names a host means it.
  const byRole = ca !== undefined && servername === undefined;
  const expected = { byRole, ...(cluster === undefined ? {} : { cluster }), ...(id === undefined ? {} : { id }) };
  return {
    ...TLS_ONLY, // mutation: control/any-certificate
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(ca === undefined ? {} : { ca: typeof ca === 'string' || types.isUint8Array(ca) ? ca : [...ca] }),
    ...(name === undefined ? {} : { servername: name }),
    checkServerIdentity: (_, certificate) => checkServer(name ?? host, certificate, expected),
  };
}

function isUntrusted(error: unknown): boolean {
  return (
    types.isNativeError(error) &&
    'code' in error &&
    /^(CERT_|ERR_TLS_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/.test(String(error.code))
  );
}

/**
 * The error for a user, to whom a certificate that is not trusted is a refusal: ERR_UNAUTHORIZED. Servers among
 * themselves try again instead, since their certificates may be exchanged just now.
 */
export function asRefusal(error: FarkvError): FarkvError {
  return isUntrusted(error.cause) ? new FarkvError('ERR_UNAUTHORIZED', error.message, { cause: error.cause }) : error;
}
