/**
 * How `farkv status` and the commands for operators are told where a server is: the part of client-options.ts that an
 * operator's connection needs, for it transports, namespaces and the like mean nothing.
 */
import type { Argv } from 'yargs';
import { DEFAULT_PORT, parseClusterAddress, parseServerAddress, type ClusterAddress } from '../../core/address.js';
import { FarkvError } from '../../core/errors.js';
import { trustSource, type TrustSource } from '../../net/tls.js';

import { certificateOptions, timeoutOf, tokenFor, trustOf, type ClientArguments } from './client-options.js';

export type ConnectionArguments = Pick<
  ClientArguments,
  'connect' | 'token' | 'tokenFile' | 'tls' | 'tlsCa' | 'tlsCert' | 'tlsKey' | 'secrets' | 'timeout'
>;

/** Whose certificate or token is shown: the first that is there. */
const ROLES = ['operator', 'monitor'] as const;
const DEFAULT_ADDRESS = `127.0.0.1:${DEFAULT_PORT}`;

/** `whose`: the role whose token is enough. */
export function connectionOptions<T>(y: Argv<T>, whose = 'an operator'): Argv<T & ConnectionArguments> {
  const environment = process.env.FARKV_CONNECT;
  return y.options({
    connect: {
      alias: 'c',
      type: 'string',
      requiresArg: true,
      default: environment === undefined || environment === '' ? DEFAULT_ADDRESS : environment,
      describe:
        'Servers, host:port, several with commas, or a farkv:// address: the first that answers is asked (FARKV_CONNECT)',
    },
    token: {
      type: 'string',
      requiresArg: true,
      describe: `Token of ${whose} (FARKV_TOKEN). Other users of this machine see it in the process list: prefer the variable or --token-file`,
    },
    'token-file': {
      type: 'string',
      requiresArg: true,
      describe: `File with the token of ${whose}, its first line; for its owner alone, mode 600 (FARKV_TOKEN_FILE)`,
    },
    tls: { type: 'boolean', default: false, describe: 'Use TLS, and trust the authorities of the system' },
    'tls-ca': {
      type: 'string',
      requiresArg: true,
      describe: 'PEM certificates of authorities to trust instead; implies --tls (FARKV_TLS_CA)',
    },
    ...certificateOptions('operator or monitor'),
    timeout: {
      type: 'string',
      requiresArg: true,
      default: '5s',
      describe: 'How long to wait for each server: 500ms, 5s; at most 1h',
    },
  }) as unknown as Argv<T & ConnectionArguments>;
}

export interface Connection {
  /** host:port each. */
  readonly addresses: readonly string[];
  readonly token?: string;
  /** undefined: no TLS. */
  readonly tls?: TrustSource;
  readonly timeoutMs: number;
}

/** Throws ERR_CONFIG. */
export function readConnection(args: ConnectionArguments): Connection {
  const timeoutMs = timeoutOf(args);
  const { servers: addresses, tls = args.tls } = readAddress(args.connect);
  const token = tokenFor(args, ROLES);
  const trust = trustOf({ ...args, tls, token }, ROLES);
  return {
    timeoutMs,
    addresses,
    ...(token === undefined || token === '' ? {} : { token }),
    ...(trust === undefined ? {} : { tls: trustSource(trust) }),
  };
}

/** Options behind the `?` of an address are for clients; here they say nothing. */
function readAddress(text: string): ClusterAddress {
  try {
    return parseClusterAddress(text, parseServerAddress);
  } catch (cause) {
    throw new FarkvError('ERR_ADDRESS_INVALID', `--connect: ${(cause as Error).message}`, { cause });
  }
}
