/**
 * From what an operator wrote to ServerSettings: flags before environment variables (FARKV_*) before the configuration
 * file before defaults. Every wrong value is an ERR_CONFIG that names the place it came from and what would be right.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse as parseYaml } from 'yaml';
import { FarkvError } from '../../core/errors.js';
import { raftIdOf } from '../../core/metadata/placement.js';
import { isSameHost, needsDevice, PROVIDERS, type Provider, type TransportChoice } from '../../core/providers.js';
import { unknownName } from '../../core/nearest.js';
import {
  camelName,
  envName,
  OPTION_NAMES,
  SERVER_OPTIONS,
  TOKEN_NAMES,
  type OptionName,
  type OptionValue,
  type PeerAddress,
} from './options.js';
import { checkPrivate, secretsOf, type SecretSource } from './secret-file.js';
import { FIXED, type AccessSettings, type Peer, type ServerSettings, type TlsFiles } from './settings.js';
import { tenantSettings } from './tenants.js';
import { formatHostPort, isLoopback, type HostPort } from './units.js';

const PEERS_MAX = 9;

export function configError(message: string, cause?: unknown): FarkvError {
  return new FarkvError('ERR_CONFIG', message, cause === undefined ? undefined : { cause });
}

interface Given {
  readonly value: unknown;
  /** "--memory", "FARKV_MEMORY", "memory in farkv.yaml". */
  readonly where: string;
}
type Sources = Map<OptionName, Given>;

function fileSource(path: string): Sources {
  let parsed: unknown;
  try {
    // YAML 1.2 contains JSON, so one parser reads both.
    parsed = parseYaml(readFileSync(path, 'utf8')) as unknown;
  } catch (cause) {
    throw configError(`--config: ${path} cannot be read: ${(cause as Error).message.split('\n')[0] ?? ''}`, cause);
  }
  if (parsed === null || parsed === undefined) return new Map();
  if (typeof parsed !== 'object' || Array.isArray(parsed))
    throw configError(`--config: ${path} is not a map of options to values`);
  const names = new Map<string, OptionName>(
    OPTION_NAMES.flatMap(
      (n) =>
        [
          [n, n],
          [camelName(n), n],
        ] as const,
    ),
  );
  const found: Sources = new Map();
  for (const [key, value] of Object.entries(parsed)) {
    const name = names.get(key);
    if (name === undefined) throw configError(`${path}: ${unknownName('key', key, OPTION_NAMES)}`);
    if (value !== null) found.set(name, { value: value as unknown, where: `${name} in ${path}` });
  }
  return found;
}

function envSource(env: NodeJS.ProcessEnv): Sources {
  const found: Sources = new Map();
  for (const name of OPTION_NAMES) {
    const value = env[envName(name)];
    if (value !== undefined && value !== '') found.set(name, { value, where: envName(name) });
  }
  return found;
}

/**
 * Options as a program or the command line gives them: by either spelling of the name; undefined counts as not given.
 */
export type GivenOptions = Readonly<Record<string, unknown>>;

function givenSource(given: GivenOptions, dashes: boolean): Sources {
  const names = new Map<string, OptionName>(
    OPTION_NAMES.flatMap(
      (n) =>
        [
          [n, n],
          [camelName(n), n],
        ] as const,
    ),
  );
  const found: Sources = new Map();
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || key === 'config') continue;
    const name = names.get(key);
    if (name === undefined)
      throw configError(
        unknownName('option', key, dashes ? OPTION_NAMES : OPTION_NAMES.map(camelName), dashes ? '--' : ''),
      );
    found.set(name, { value, where: dashes ? `--${name}` : camelName(name) });
  }
  return found;
}

function readable(path: string | undefined, where: string): string | undefined {
  if (path === undefined) return undefined;
  try {
    readFileSync(path);
  } catch (cause) {
    throw configError(`${where}: ${path} cannot be read: ${(cause as NodeJS.ErrnoException).code ?? 'error'}`, cause);
  }
  return path;
}

function groupPeers(list: readonly PeerAddress[]): Peer[] {
  const byId = new Map<string, string[]>();
  for (const { id, address } of list) byId.set(id, [...(byId.get(id) ?? []), address]);
  if (byId.size > PEERS_MAX) throw configError(`--peers: ${byId.size} servers; at most ${PEERS_MAX}`);
  const numbers = new Set([...byId.keys()].map(raftIdOf));
  if (numbers.size < byId.size) throw configError('--peers: two of these ids have the same number; change one of them');
  return [...byId].map(([id, addresses]) => ({ id, addresses })).sort((a, b) => (a.id < b.id ? -1 : 1));
}

function chooseTransports(
  names: readonly TransportChoice[],
  hasDevice: boolean,
): { readonly transports: readonly Provider[]; readonly auto: boolean } {
  if (!names.includes('auto')) return { transports: [...new Set(names.filter((n) => n !== 'auto'))], auto: false };
  if (names.length > 1) throw configError('--transport: auto cannot stand beside others');
  return { transports: PROVIDERS.filter((p) => hasDevice || !needsDevice(p)), auto: true };
}

export interface LoadOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Errors speak of flags (`--memory`) or of properties (`memory`). */
  readonly dashes: boolean;
  /** This machine has an RDMA device and this build the verbs transport. */
  readonly hasVerbs?: boolean;
}

/** `given.config` names the file. Throws ERR_CONFIG. */
export function loadSettings(given: GivenOptions, options: LoadOptions): ServerSettings {
  const configFile = given.config ?? options.env[envName('config')];
  const flags = givenSource(given, options.dashes);
  const sources: Sources = new Map([
    ...(typeof configFile === 'string' ? fileSource(configFile) : []),
    ...envSource(options.env),
    ...flags,
  ]);

  const where = (name: OptionName): string =>
    sources.get(name)?.where ?? (options.dashes ? `--${name}` : camelName(name));
  const read = <N extends OptionName>(name: N): OptionValue<N> | undefined => {
    const spec = SERVER_OPTIONS[name];
    const value = sources.get(name)?.value ?? ('default' in spec ? spec.default : undefined);
    if (value === undefined) return undefined;
    try {
      return spec.parse(value) as OptionValue<N>;
    } catch (cause) {
      throw configError(`${where(name)}: ${(cause as Error).message}`, cause);
    }
  };
  const need = <N extends OptionName>(name: N): OptionValue<N> => {
    const value = read(name);
    if (value === undefined) throw configError(`${where(name)} is needed`);
    return value;
  };

  const listen = need('listen');
  const fabricListen = read('fabric-listen') ?? listen.map((a): HostPort => ({ host: a.host, port: 0 }));
  const named = read('peers');
  const id =
    read('id') ??
    (named === undefined || named.every((p) => p.id === named[0]?.id) ? (named?.[0]?.id ?? 's1') : undefined);
  if (id === undefined)
    throw configError(`${where('id')} is needed with several --peers: which of them is this server?`);
  const join = read('join') ?? [];
  if (join.length > 0 && named !== undefined)
    throw configError(
      `${where('join')} and ${where('peers')} are both given: a server makes a cluster with others or comes to one`,
    );
  if (join.length > 0 && read('id') === undefined)
    throw configError(`${where('id')} is needed with ${where('join')}: a name that no other server of the cluster has`);
  const peers = groupPeers(named ?? [{ id, address: listen.map(formatHostPort)[0] ?? '' }]);
  if (!peers.some((p) => p.id === id))
    throw configError(`${where('peers')}: ${id} is not in it; every server, this one too, must be named`);

  const { transports, auto } = chooseTransports(need('transport'), options.hasVerbs === true);
  const tls = tlsFiles(read, where);
  const secrets = secretFiles(read('secrets'), where('secrets'));
  const sourceOf = (name: TokenOption): SecretSource | undefined => {
    const [plain, path] = [read(name), read(`${name}-file`)];
    if (plain !== undefined && path !== undefined)
      throw configError(`${where(name)} and ${where(`${name}-file`)} are both given; which one is meant?`);
    if (plain !== undefined) return { text: plain };
    const file = path ?? secrets.get(name);
    return file === undefined ? undefined : { file };
  };
  const tokens = {
    writer: sourceOf('token'),
    reader: sourceOf('reader-token'),
    operator: sourceOf('operator-token'),
    monitor: sourceOf('monitor-token'),
    peer: sourceOf('peer-token'),
  };
  const shards = read('shards') ?? 4 * peers.length;
  const tenants = trusted(
    () => tenantSettings(read('tenants') ?? [], shards, tokens.writer !== undefined),
    where('tenants'),
  );
  const access: AccessSettings = { ...defined(tokens), tenants };
  checkSecrets(access, where);
  if (tokens.peer === undefined && (peers.length > 1 || join.length > 0) && Object.values(tokens).some(Boolean)) {
    throw configError(
      `${where('peer-token-file')} is needed where several servers use tokens: a secret of the servers alone, since whoever has it can act as one of them`,
    );
  }
  const insecure = need('insecure');
  const overNetwork = transports.some((p) => !isSameHost(p));
  const exposed = [...listen, ...(overNetwork ? fabricListen : [])].find((a) => !isLoopback(a.host));
  if (exposed !== undefined && access.writer === undefined && !insecure) {
    throw configError(
      `${formatHostPort(exposed)} can be reached from other machines, and there is no token${tls === undefined ? '' : ' (TLS hides what is said, and lets anybody in)'}: whoever connects could read and change everything. ` +
        'Give --token-file and --operator-token-file (and --tls-cert, --tls-key), listen on 127.0.0.1, or say --insecure',
    );
  }
  const dataDir = read('data-dir');
  const rdmaDevice = read('rdma-device');
  return {
    id,
    listen,
    fabricListen,
    peers,
    join,
    transports,
    insecure,
    advertise: read('advertise') ?? [],
    transportAuto: auto,
    strict: need('strict'),
    memoryBytes: need('memory'),
    shards,
    tenants,
    ...(dataDir === undefined ? {} : { dataDir }),
    ...(rdmaDevice === undefined ? {} : { rdmaDevice }),
    access,
    ...(tls === undefined ? {} : { tls }),
    ...FIXED,
    leaseMs: need('lease-ms'),
    dataPlaneThreads: need('data-plane-threads'),
    maxClients: need('max-clients'),
    clientQuota: need('client-quota'),
    spinUs: need('spin-us'),
    tcpBusyPollUs: need('tcp-busy-poll-us'),
    hugePages: need('huge-pages'),
    maxConnections: need('max-connections'),
    tickMs: Math.max(10, Math.floor(need('election-ms') / 10)),
    electionMs: need('election-ms'),
    ownerLeaseMs: need('owner-lease-ms'),
    voters: Math.max(read('voters') ?? 3, peers.length),
    logLevel: need('log-level'),
  };
}

type TokenOption = (typeof TOKEN_NAMES)[number];

/** The token files of a directory by their options. */
function secretFiles(directory: string | undefined, where: string): ReadonlyMap<TokenOption, string> {
  if (directory === undefined) return new Map();
  const files = TOKEN_NAMES.map((name) => [name, join(directory, name)] as const).filter(([, path]) =>
    existsSync(path),
  );
  if (files.length === 0)
    throw configError(`${where}: ${directory} has no token: farkv secrets init makes one for each role`);
  return new Map(files);
}

function defined<T extends object>(values: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}

/** Every token opens one thing. Throws ERR_CONFIG, also for files that cannot be used. */
function checkSecrets({ tenants, ...roles }: AccessSettings, where: (name: OptionName) => string): void {
  const all: (readonly [SecretSource | undefined, string])[] = [
    [roles.writer, where('token-file')],
    [roles.reader, where('reader-token-file')],
    [roles.operator, where('operator-token-file')],
    [roles.monitor, where('monitor-token-file')],
    [roles.peer, where('peer-token-file')],
    ...tenants.flatMap(
      ({ name, writer, reader }) =>
        [
          [writer, `${where('tenants')}: ${name}`],
          [reader, `${where('tenants')}: readers of ${name}`],
        ] as const,
    ),
  ];
  const seen = new Map<string, string>();
  for (const [source, of] of all) {
    for (const secret of source === undefined ? [] : secretsOf(source, of)) {
      const other = seen.get(secret);
      if (other !== undefined && other !== of) throw configError(`${of} has the same token as ${other}`);
      seen.set(secret, of);
    }
  }
}

function trusted<T>(read: () => T, where: string): T {
  try {
    return read();
  } catch (cause) {
    throw cause instanceof FarkvError ? cause : configError(`${where}: ${(cause as Error).message}`, cause);
  }
}

function tlsFiles(
  read: (name: 'tls-cert' | 'tls-key' | 'tls-ca') => string | undefined,
  where: (name: OptionName) => string,
): TlsFiles | undefined {
  const cert = readable(read('tls-cert'), where('tls-cert'));
  const key = readable(read('tls-key'), where('tls-key'));
  if (key !== undefined) checkPrivate(key, (what) => configError(`${where('tls-key')}: ${key} ${what}`));
  const ca = readable(read('tls-ca'), where('tls-ca'));
  if (cert === undefined && key === undefined) {
    if (ca !== undefined) throw configError(`${where('tls-ca')} has no meaning without --tls-cert and --tls-key`);
    return undefined;
  }
  if (cert === undefined) throw configError(`${where('tls-cert')} is needed with --tls-key`);
  if (key === undefined) throw configError(`${where('tls-key')} is needed with --tls-cert`);
  return { cert, key, ...(ca === undefined ? {} : { ca }) };
}
