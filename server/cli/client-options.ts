/**
 * The options that every command shares which talks to a cluster as a client: where it is, the token, TLS, the
 * transport. Each is also read from the environment (FARKV_CONNECT, FARKV_TOKEN, ...), so that scripts need not repeat
 * them.
 *
 * This file imports neither the SDK nor the addon, so that --help works without them.
 */
import type { Argv } from 'yargs';
import type { BufferValue, Client } from '../../client/index.js';
import type { ConnectOptions } from '../../client/options.js';
import { parseClusterAddress, parseServerAddress } from '../../core/address.js';
import { FarkvError } from '../../core/errors.js';
import { POLLING, type Polling } from '../../core/polling.js';
import { TRANSPORT_CHOICES, type TransportChoice } from '../../core/providers.js';
import type { CertificateRole } from '../../core/role-name.js';
import { fileReason, PEM_BYTES_MAX, readRegular } from '../../net/regular-file.js';
import type { Trust } from '../../net/tls.js';
import { checkPrivate, readSecretFile } from '../config/secret-file.js';
import { integer, text, within } from '../config/option-values.js';
import {
  certificateFiles,
  directoryProblem,
  tokenFiles,
  type CertificateFiles,
  type TokenOption,
} from '../config/secrets-directory.js';
import { parseDuration } from '../config/units.js';
import { printError } from './output.js';

export interface ClientArguments {
  readonly connect: string;
  readonly token: string | undefined;
  readonly tokenFile: string | undefined;
  readonly tls: boolean;
  readonly tlsCa: string | undefined;
  readonly tlsCert: string | undefined;
  readonly tlsKey: string | undefined;
  readonly secrets: string | undefined;
  readonly transport: TransportChoice;
  readonly strict: boolean;
  readonly polling: Polling;
  readonly namespace: string;
  readonly timeout: string;
  readonly verbose: boolean;
}

/** A variable that is set to nothing counts as not set. */
function environment(name: string): string | undefined {
  const value = process.env[name];
  return value === '' ? undefined : value;
}

function transportOf(text: string | undefined): TransportChoice {
  const found = TRANSPORT_CHOICES.find((transport) => transport === (text ?? 'auto'));
  if (found === undefined)
    throw new FarkvError(
      'ERR_CONFIG',
      `FARKV_TRANSPORT=${text ?? ''}: one of ${TRANSPORT_CHOICES.join(', ')} is expected`,
    );
  return found;
}

/** As text, and read by `integerOf`: yargs would take an empty word, as of a variable that is not set, for 0. */
export const INTEGER_OPTION = { type: 'string', requiresArg: true } as const;
export const integerOption = (byDefault: number) =>
  ({ ...INTEGER_OPTION, default: String(byDefault), defaultDescription: String(byDefault) }) as const;

export function clientOptions<T>(y: Argv<T>): Argv<T & ClientArguments> {
  return y.options({
    connect: {
      alias: 'c',
      type: 'string',
      requiresArg: true,
      default: environment('FARKV_CONNECT') ?? '127.0.0.1:7400',
      defaultDescription: '127.0.0.1:7400',
      describe: 'Servers, host:port, several with commas; or a farkv:// address (FARKV_CONNECT)',
    },
    token: {
      type: 'string',
      requiresArg: true,
      describe:
        'Token (FARKV_TOKEN). Other users of this machine see it in the process list: prefer the variable or --token-file',
    },
    'token-file': {
      type: 'string',
      requiresArg: true,
      describe: 'File with the token, its first line; for its owner alone, mode 600 (FARKV_TOKEN_FILE)',
    },
    tls: { type: 'boolean', default: false, describe: "Use TLS towards the servers' control addresses" },
    'tls-ca': {
      type: 'string',
      requiresArg: true,
      describe: 'PEM certificates of authorities to trust; implies --tls (FARKV_TLS_CA)',
    },
    ...certificateOptions('writer or reader'),
    transport: {
      choices: TRANSPORT_CHOICES,
      default: transportOf(environment('FARKV_TRANSPORT')),
      describe: 'How to reach the tables (FARKV_TRANSPORT)',
    },
    strict: { type: 'boolean', default: false, describe: 'Do not fall back to another transport' },
    polling: {
      choices: POLLING,
      default: 'auto' as const,
      describe: 'Look for answers before sleeping: auto, as long as that helps',
    },
    namespace: { ...integerOption(0), alias: 'n', describe: 'Namespace, 0 to 65535' },
    timeout: {
      type: 'string',
      requiresArg: true,
      default: '5s',
      describe: 'Time to connect, and for each operation: 500ms, 5s, 1m; at most 1h',
    },
    verbose: {
      alias: 'v',
      type: 'boolean',
      default: false,
      describe: 'Say on standard error which transport is used, and why',
    },
  }) as unknown as Argv<T & ClientArguments>;
}

/** Options before the address, and that, which means one cluster and one tenant of it, before the environment. */
export function tokenOf(args: Pick<ClientArguments, 'connect' | 'token' | 'tokenFile'>): string | undefined {
  const given = args.token ?? (args.tokenFile === undefined ? tokenInAddress(args.connect) : undefined);
  if (given !== undefined) return given;
  const file = args.tokenFile ?? environment('FARKV_TOKEN_FILE');
  if (file === undefined) return environment('FARKV_TOKEN');
  return readSecretFile(file, '--token-file')[0];
}

/** What is wrong with an address says who connects. */
function tokenInAddress(connect: string): string | undefined {
  try {
    return parseClusterAddress(connect, parseServerAddress).token;
  } catch {
    return undefined;
  }
}

const TOKEN_OF: Readonly<Record<CertificateRole, TokenOption>> = {
  writer: 'token',
  reader: 'reader-token',
  operator: 'operator-token',
  monitor: 'monitor-token',
  peer: 'peer-token',
};

/**
 * The token to show: as `tokenOf`; else, where --secrets has tokens and no certificate of these roles, as a server's does,
 * that of the first role. An address that has a token means that one.
 */
export function tokenFor(
  args: Pick<ClientArguments, 'connect' | 'token' | 'tokenFile' | 'tlsCert' | 'secrets'>,
  roles: readonly CertificateRole[],
): string | undefined {
  const given = tokenOf(args);
  const directory = args.secrets ?? environment('FARKV_SECRETS');
  if (given !== undefined || args.connect.includes('@') || directory === undefined) return given;
  if ((args.tlsCert ?? environment('FARKV_TLS_CERT')) !== undefined) return undefined;
  if (certificateFiles(directory, roles).cert !== undefined) return undefined;
  const files = tokenFiles(directory);
  const [file] = roles.flatMap((role) => files.get(TOKEN_OF[role]) ?? []);
  return file === undefined ? undefined : readSecretFile(file, '--secrets')[0];
}

function checkReadable(option: string, path: string): void {
  try {
    readRegular(path, PEM_BYTES_MAX);
  } catch (cause) {
    throw new FarkvError('ERR_CONFIG', `${option}: ${path} cannot be read: ${fileReason(cause)}`, { cause });
  }
}

/** The options by which a command shows a certificate. */
export function certificateOptions(role: string) {
  const one = { type: 'string', requiresArg: true } as const;
  return {
    'tls-cert': { ...one, describe: `PEM certificate to show (${role}); implies --tls (FARKV_TLS_CERT)` },
    'tls-key': { ...one, describe: 'PEM private key of --tls-cert; for its owner alone, mode 600 (FARKV_TLS_KEY)' },
    secrets: {
      ...one,
      describe: `Directory of farkv secrets init: its authority is trusted, its certificate (${role}) shown, else its token (FARKV_SECRETS)`,
    },
  } as const;
}

/** Of --secrets: what is not there must not make a command go on without TLS. */
function madeFiles(given: string | undefined, roles: readonly CertificateRole[]): CertificateFiles {
  const directory = given ?? environment('FARKV_SECRETS');
  if (directory === undefined) return {};
  const option = given === undefined ? 'FARKV_SECRETS' : '--secrets';
  const problem = directoryProblem(directory);
  if (problem !== undefined) throw new FarkvError('ERR_CONFIG', `${option}: ${directory} ${problem}`);
  const files = certificateFiles(directory, roles);
  // Servers that have tokens alone take commands without TLS.
  if (files.ca === undefined && files.cert === undefined && tokenFiles(directory).size === 0)
    throw new FarkvError(
      'ERR_CONFIG',
      `${option}: ${directory} has neither an authority (ca.crt) nor a certificate (${roles.map((role) => `${role}.crt`).join(', ')}): farkv secrets init makes them`,
    );
  return files;
}

/**
 * How a command trusts servers and shows who it is; undefined: without TLS. `roles`: which certificate of --secrets, the
 * first that is there. Throws ERR_CONFIG.
 */
export function trustOf(
  args: Pick<ClientArguments, 'connect' | 'tls' | 'tlsCa' | 'tlsCert' | 'tlsKey' | 'secrets' | 'token' | 'tokenFile'>,
  roles: readonly CertificateRole[],
): Trust | undefined {
  const made = madeFiles(args.secrets, roles);
  const caFile = args.tlsCa ?? environment('FARKV_TLS_CA') ?? made.ca;
  const certFile = args.tlsCert ?? environment('FARKV_TLS_CERT');
  const keyFile = args.tlsKey ?? environment('FARKV_TLS_KEY');
  if ((certFile === undefined) !== (keyFile === undefined))
    throw new FarkvError('ERR_CONFIG', '--tls-cert and --tls-key are needed together');
  // Whoever names a token means its role: a certificate of another one would be refused beside it.
  const shown =
    certFile !== undefined && keyFile !== undefined
      ? { certFile, keyFile }
      : tokenOf(args) === undefined && made.cert !== undefined && made.key !== undefined
        ? { certFile: made.cert, keyFile: made.key }
        : {};
  for (const [option, path] of [
    ['--tls-ca', caFile],
    ['--tls-cert', shown.certFile],
    ['--tls-key', shown.keyFile],
  ] as const)
    if (path !== undefined) checkReadable(option, path);
  if (shown.keyFile !== undefined)
    checkPrivate(shown.keyFile, (what) => new FarkvError('ERR_CONFIG', `--tls-key: ${shown.keyFile} ${what}`));
  if (!args.tls && caFile === undefined && shown.certFile === undefined) return undefined;
  return { ...(caFile === undefined ? {} : { caFile }), ...shown };
}

/** Throws ERR_CONFIG. */
export function integerOf(name: string, given: string, least: number, most: number): number {
  try {
    return within(least, most, (value) => integer(text(value)))(given);
  } catch (cause) {
    throw new FarkvError('ERR_CONFIG', `--${name}: ${(cause as Error).message}`, { cause });
  }
}

export const namespaceOf = (given: string): number => integerOf('namespace', given, 0, 65_535);

export function durationOf(name: string, text: string): number {
  try {
    return parseDuration(text);
  } catch (cause) {
    throw new FarkvError(
      'ERR_CONFIG',
      `--${name} ${text}: ${cause instanceof Error ? cause.message : 'a duration is expected'}`,
      { cause },
    );
  }
}

/** After which an entry expires; undefined: never. A bare number is refused: it may be meant in seconds. */
export function ttlOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const bare = /^\s*\d+(\.\d+)?\s*$/u.test(text);
  if (bare && Number(text) > 0)
    throw new FarkvError('ERR_CONFIG', `--ttl ${text}: the unit is missing: ${text.trim()}s, or ${text.trim()}ms`);
  const ttlMs = durationOf('ttl', text);
  if (ttlMs > 0) return ttlMs;
  throw new FarkvError('ERR_CONFIG', '--ttl: must be at least 1ms; without it the entry never expires');
}

const TIMEOUT_MAX_MS = 3_600_000;

export function timeoutOf(args: Pick<ClientArguments, 'timeout'>): number {
  const timeoutMs = durationOf('timeout', args.timeout);
  if (timeoutMs < 1 || timeoutMs > TIMEOUT_MAX_MS)
    throw new FarkvError('ERR_CONFIG', '--timeout: must be from 1ms to 1h');
  return timeoutMs;
}

/** Connects as the options say; `more` is the command's own. */
export async function connectWith(
  args: ClientArguments,
  more: Partial<ConnectOptions> = {},
): Promise<Client<BufferValue, Buffer>> {
  const { connect } = await import('../../client/index.js');
  const tls = trustOf(args, ['writer', 'reader']);
  const token = tokenFor(args, ['writer', 'reader']);
  const timeoutMs = timeoutOf(args);
  const namespace = namespaceOf(args.namespace);
  const options: ConnectOptions = {
    servers: args.connect,
    ...(token === undefined ? {} : { token }),
    ...(tls === undefined ? {} : { tls }),
    ...(args.transport === 'auto' ? {} : { transport: args.transport }),
    ...(args.strict ? { strict: true } : {}),
    ...(args.polling === 'auto' ? {} : { polling: args.polling }),
    ...(namespace === 0 ? {} : { namespace }),
    timeoutMs,
    connectTimeoutMs: timeoutMs,
    ...more,
  };
  const client = await connect(options);
  if (args.verbose) {
    for (const { server, worker, provider, reason } of client.transports()) {
      printError(`${server} thread ${worker}: ${provider ?? 'not connected'} (${reason})\n`);
    }
  }
  return client;
}

/** Connects, does something, and disconnects whatever happened. */
export async function withClient<T>(
  args: ClientArguments,
  work: (client: Client<BufferValue, Buffer>) => Promise<T>,
  more: Partial<ConnectOptions> = {},
): Promise<T> {
  const client = await connectWith(args, more);
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}
