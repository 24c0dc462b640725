/**
 * The files that settings name for TLS: this server's certificate and key, and the authorities that sign those of other
 * servers, and of clients and operators where this server's own certificate has a role name (core/role-name.ts). Changed
 * files count for the connections that come next, without a restart.
 */
import { constants } from 'node:crypto';
import { createSecureContext, type TlsOptions } from 'node:tls';
import { FarkvError } from '../../core/errors.js';
import { authoritiesIn, checkPair } from '../../net/certificate.js';
import { PEM_BYTES_MAX, readRegular } from '../../net/regular-file.js';
import { TLS_ONLY, trustSource, type TrustSource } from '../../net/tls.js';
import { WatchedFiles, type Watched } from '../../net/watched-files.js';
import type { TlsFiles } from '../config/settings.js';
import { watchCredentials } from '../audit.js';
import { checkPrivate } from '../config/secret-file.js';
import type { Log } from '../log.js';

/** What a listener serves with now. Throws ERR_CONFIG when the files do not fit together. */
export function serverTls(files: TlsFiles, log: Log): Watched<TlsOptions> {
  const { cert, key, ca, cluster } = files;
  const read = (): TlsOptions => {
    checkKey(key);
    const pair = { cert: readRegular(cert, PEM_BYTES_MAX), key: readRegular(key, PEM_BYTES_MAX) };
    checkPair({ pem: pair.cert, name: cert }, { pem: pair.key, name: key });
    const options: TlsOptions = {
      ...TLS_ONLY,
      // A session that goes on is not verified again: a certificate would open after its time.
      secureOptions: constants.SSL_OP_NO_TICKET, // mutation: credentials/session-resumed
      ...pair,
      ...(ca === undefined ? {} : { ca: authoritiesIn(ca) }),
      // Whoever has no certificate may have a token: both are looked at with the hello (auth.ts).
      ...(cluster === undefined ? {} : { requestCert: true, rejectUnauthorized: false }),
    };
    createSecureContext(options);
    return options;
  };
  try {
    return new WatchedFiles([cert, key, ...(ca === undefined ? [] : [ca])], read, watchCredentials(log)(cert));
  } catch (cause) {
    throw new FarkvError('ERR_CONFIG', `the TLS files cannot be used: ${(cause as Error).message}`, { cause });
  }
}

/** How this server dials others: it trusts the authorities in its file, else the system's, and shows its role name. */
export function serverTrust({ cert, key, ca, cluster }: TlsFiles, log: Log): TrustSource {
  return trustSource(
    { ...(ca === undefined ? {} : { caFile: ca }), ...(cluster === undefined ? {} : { certFile: cert, keyFile: key }) },
    watchCredentials(log)(cert),
    () => checkKey(key),
  );
}

function checkKey(key: string): void {
  checkPrivate(key, (what) => new FarkvError('ERR_CONFIG', `${key} ${what}`));
}
