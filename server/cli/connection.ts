/**
 * How commands that talk to a running server are told where it is: --connect, --token and TLS, with environment variables for
 * what one does not want to type.
 */
import { readFileSync } from 'node:fs';
import type { Argv } from 'yargs';
import { FarkvError } from '../../core/errors.js';
import { parseDuration } from '../config/units.js';

export interface ConnectionArguments {
  readonly connect: string;
  readonly token?: string;
  readonly 'token-file'?: string;
  readonly tls?: boolean;
  readonly 'tls-ca'?: string;
  readonly timeout: string;
}

export const DEFAULT_ADDRESS = '127.0.0.1:7400';

export function connectionOptions<T>(y: Argv<T>): Argv<T & ConnectionArguments> {
  return y
    .option('connect', {
      alias: 'c', type: 'string', default: process.env.FARKV_CONNECT ?? DEFAULT_ADDRESS, defaultDescription: `$FARKV_CONNECT or ${DEFAULT_ADDRESS}`,
      describe: 'Control addresses of servers, host:port, several with commas; one that answers is enough',
    })
    .option('token', { type: 'string', describe: 'Secret of the cluster. Default: $FARKV_TOKEN' })
    .option('token-file', { type: 'string', describe: 'File with the token (its first line). Default: $FARKV_TOKEN_FILE' })
    .option('tls', { type: 'boolean', describe: 'Connect over TLS, and trust the authorities of the system. Default: $FARKV_TLS' })
    .option('tls-ca', { type: 'string', describe: 'PEM certificates of the authorities to trust instead; implies --tls. Default: $FARKV_TLS_CA' })
    .option('timeout', { type: 'string', default: '5s', describe: 'How long to wait for an answer: 500ms, 2s; at most 1h' }) as unknown as Argv<T & ConnectionArguments>;
}

export interface Connection {
  readonly addresses: readonly string[];
  readonly token?: string;
  /** undefined: no TLS. Without `ca`, the authorities of the system. */
  readonly tls?: { readonly ca?: Buffer };
  readonly timeoutMs: number;
}

function fileOf(option: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new FarkvError('ERR_CONFIG', `${option}: ${path} cannot be read: ${(cause as NodeJS.ErrnoException).code ?? 'error'}`, { cause });
  }
}

/** Throws ERR_CONFIG. */
export function readConnection(args: ConnectionArguments, env: NodeJS.ProcessEnv = process.env): Connection {
  let timeoutMs: number;
  try {
    timeoutMs = parseDuration(args.timeout);
  } catch (cause) {
    throw new FarkvError('ERR_CONFIG', `--timeout: ${(cause as Error).message}`, { cause });
  }
  if (timeoutMs < 1 || timeoutMs > 3_600_000) throw new FarkvError('ERR_CONFIG', '--timeout: must be from 1ms to 1h');
  const addresses = args.connect.split(',').map((a) => a.trim()).filter((a) => a !== '');
  if (addresses.length === 0) throw new FarkvError('ERR_CONFIG', '--connect is empty');
  const tokenFile = args['token-file'] ?? (args.token === undefined && env.FARKV_TOKEN === undefined ? env.FARKV_TOKEN_FILE : undefined);
  const token = args.token ?? (tokenFile === undefined ? env.FARKV_TOKEN : fileOf('--token-file', tokenFile).toString('utf8').split(/\r?\n/)[0]?.trim());
  const ca = args['tls-ca'] ?? env.FARKV_TLS_CA;
  const tls = args.tls ?? (ca !== undefined || ['1', 'true'].includes(env.FARKV_TLS ?? ''));
  return {
    addresses, timeoutMs,
    ...(token === undefined || token === '' ? {} : { token }),
    ...(tls ? { tls: ca === undefined ? {} : { ca: fileOf('--tls-ca', ca) } } : {}),
  };
}
