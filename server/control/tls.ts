/**
 * The files that settings name for TLS: this server's certificate and key, and the authorities that it trusts in other
 * servers.
 */
import { readFileSync } from 'node:fs';
import { createSecureContext, type TlsOptions } from 'node:tls';
import { FarkvError } from '../../core/errors.js';
import { TLS_MIN, type Trust } from '../../net/tls.js';
import type { TlsFiles } from '../config/settings.js';

/** Throws ERR_CONFIG when the files do not fit together. */
export function serverTls(files: TlsFiles): TlsOptions {
  const options = { cert: readFileSync(files.cert), key: readFileSync(files.key), minVersion: TLS_MIN } as const;
  try {
    createSecureContext(options);
  } catch (cause) {
    throw new FarkvError(
      'ERR_CONFIG',
      `the TLS certificate ${files.cert} and key ${files.key} cannot be used: ${(cause as Error).message}`,
      { cause },
    );
  }
  return options;
}

/** The authorities in the file, else the system's. */
export function trustOf(caFile: string | undefined): Trust {
  return caFile === undefined ? {} : { ca: readFileSync(caFile) };
}
