/**
 * TLS of the control plane, for both ends: its version, whom a dialer trusts, and the errors that mean "not trusted".
 */
import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { FarkvError } from '../core/errors.js';

/** The oldest version that either end speaks. */
export const TLS_MIN = 'TLSv1.3';

/** How a dialer checks the other end, and shows who it is. */
export interface Trust {
  /** PEM; by default the system's authorities. */
  readonly ca?: string | Buffer | readonly (string | Buffer)[];
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** The name that the certificate must have; by default the address's host. */
  readonly servername?: string;
}

/** What node:tls needs to dial `host`. An IP address is checked against the certificate without a server name. */
export function dialerTls(host: string, { ca, servername, ...rest }: Trust): ConnectionOptions {
  const name = servername ?? (isIP(host) === 0 ? host : undefined);
  return {
    minVersion: TLS_MIN,
    ...rest,
    ...(ca === undefined ? {} : { ca: typeof ca === 'string' || Buffer.isBuffer(ca) ? ca : [...ca] }),
    ...(name === undefined ? {} : { servername: name }),
  };
}

function isUntrusted(error: unknown): boolean {
  return (
    error instanceof Error &&
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
