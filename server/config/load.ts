/**
 * From what an operator wrote to ServerSettings: flags before environment variables (FARKV_*) before the configuration
 * file before defaults. Every wrong value is an ERR_CONFIG that names the place it came from and what would be right.
 */
import { parseDocument, visit } from 'yaml';
import { FarkvError } from '../../core/errors.js';
import { raftIdOf } from '../../core/metadata/placement.js';
import { isSameHost, needsDevice, PROVIDERS, type Provider, type TransportChoice } from '../../core/providers.js';
import { unknownName } from '../../core/nearest.js';
import {
  camelName,
  envName,
  OPTION_NAMES,
  SERVER_OPTIONS,
  type FieldSettings,
  type OptionName,
  type OptionValue,
} from './options.js';
import type { PeerAddress } from './option-values.js';
import { checkEnvironment } from './environment.js';
import { checkPrivate, secretsOf, type SecretSource } from './secret-file.js';
import { certificateFiles, directoryProblem, tokenFiles, type TokenOption } from './secrets-directory.js';
import { roleNameOf } from '../../net/certificate.js';
import { fileReason, PEM_BYTES_MAX, readRegular, TEXT_BYTES_MAX } from '../../net/regular-file.js';
import { ANY_SERVER } from '../../core/role-name.js';
import { DATA_PORT_OFFSET, DATA_PORTS, FIXED, type AccessSettings, type LogFormat, type Peer } from './settings.js';
import type { ServerSettings, TlsFiles } from './settings.js';
import { tenantSettings } from './tenants.js';
import { formatHostPort, isLoopback, parseHostPort, type HostPort } from './units.js';

/** Options by either spelling of their names: data-dir, dataDir. */
const NAMES: ReadonlyMap<string, OptionName> = new Map([
  ...OPTION_NAMES.map((name) => [camelName(name), name] as const),
  ...OPTION_NAMES.map((name) => [name, name] as const),
]);

const PEERS_MAX = 9;
/** The port between servers is the control port and this, unless it is given. */
const PEER_PORT_OFFSET = 2000;

export function configError(message: string, cause?: unknown): FarkvError {
  return new FarkvError('ERR_CONFIG', message, cause === undefined ? undefined : { cause });
}

interface Given {
  readonly value: unknown;
  /** "--memory", "FARKV_MEMORY", "memory in farkv.yaml". */
  readonly where: string;
}
type Sources = Map<OptionName, Given>;

/**
 * YAML 1.2 contains JSON, so one parser reads both. A number that is written in another way than this program would
 * write it stays the text that it is: a zone of 1.10 is not 1.1, and a token of digits is none that was rounded.
 */
function readYaml(text: string): unknown {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) throw error;
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'number' && node.source !== undefined && String(node.value) !== node.source)
        node.value = node.source;
    },
  });
  return document.toJS();
}

function fileSource(path: string): Sources {
  let parsed: unknown;
  try {
    parsed = readYaml(readRegular(path, TEXT_BYTES_MAX).toString());
  } catch (cause) {
    throw configError(`--config: ${path} cannot be read: ${(cause as Error).message.split('\n')[0] ?? ''}`, cause);
  }
  if (parsed === null || parsed === undefined) return new Map();
  if (typeof parsed !== 'object' || Array.isArray(parsed))
    throw configError(`--config: ${path} is not a map of options to values`);
  const found: Sources = new Map();
  const spelled = new Set<OptionName>();
  for (const [key, value] of Object.entries(parsed)) {
    const name = NAMES.get(key);
    if (name === undefined) throw configError(`${path}: ${unknownName('key', key, OPTION_NAMES)}`);
    if (spelled.has(name)) throw configError(`${path}: ${name} stands there twice, also as ${camelName(name)}`);
    spelled.add(name);
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
  const found: Sources = new Map();
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || key === 'config') continue;
    const name = NAMES.get(key);
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
    readRegular(path, PEM_BYTES_MAX);
  } catch (cause) {
    throw configError(`${where}: ${path} cannot be read: ${fileReason(cause)}`, cause);
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
  /** Called before all others are looked at, so that what is wrong with them can be told as it says. */
  readonly hearLogFormat?: (format: LogFormat) => void;
}

/** `given.config` names the file. Throws ERR_CONFIG. */
export function loadSettings(given: GivenOptions, options: LoadOptions): ServerSettings {
  const inEnvironment = options.env[envName('config')];
  const configFile = given.config ?? (inEnvironment === '' ? undefined : inEnvironment);
  checkEnvironment(options.env);
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

  options.hearLogFormat?.(need('log-format'));
  const listen = need('listen');
  const fabricListen = read('fabric-listen') ?? listen.map((a) => dataAddressOf(a, where));
  const httpListen = read('http-listen') ?? [];
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
  const ownPort = named?.filter((p) => p.id === id).map((p) => parseHostPort(p.address).port)[0];
  const peerListen = read('peer-listen') ?? listen.map((a) => peerAddressOf(a, ownPort, where));
  const peers = groupPeers(named ?? [{ id, address: peerListen.map(formatHostPort)[0] ?? '' }]);
  if (!peers.some((p) => p.id === id))
    throw configError(`${where('peers')}: ${id} is not in it; every server, this one too, must be named`);

  const isWitness = need('witness');
  if (isWitness && sources.has('memory'))
    throw configError(`${where('memory')} and ${where('witness')} are both given: a witness keeps no values`);
  if (isWitness && peers.length === 1 && join.length === 0)
    throw configError(
      `${where('witness')}: a witness needs other servers that keep values: name them with --peers or --join`,
    );
  const { transports, auto } = isWitness
    ? { transports: [], auto: true }
    : chooseTransports(need('transport'), options.hasVerbs === true);
  const data = transports.includes('tcp') ? fabricListen : [];
  checkApart({ listen, 'peer-listen': peerListen, 'http-listen': httpListen, 'fabric-listen': data }, where);
  const directory = read('secrets');
  const problem = directory === undefined ? undefined : directoryProblem(directory);
  if (directory !== undefined && problem !== undefined)
    throw configError(`${where('secrets')}: ${directory} ${problem}`);
  const secrets = tokenFiles(directory);
  const tls = tlsFiles(id, directory, read, where);
  if (directory !== undefined && secrets.size === 0 && tls === undefined)
    throw configError(
      `${where('secrets')}: ${directory} has neither a token nor a certificate for ${id}: farkv secrets init makes them, farkv secrets issue one more`,
    );
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
  const cluster = tls?.cluster;
  const access: AccessSettings = { ...defined(tokens), tenants, ...(cluster === undefined ? {} : { cluster }) };
  checkSecrets(access, where);
  if (
    tokens.peer === undefined &&
    cluster === undefined &&
    (peers.length > 1 || join.length > 0) &&
    Object.values(tokens).some(Boolean)
  ) {
    throw configError(
      `${where('peer-token-file')} is needed where several servers use tokens: a secret of the servers alone, since whoever has it can act as one of them`,
    );
  }
  const insecure = need('insecure');
  const overNetwork = transports.some((p) => !isSameHost(p));
  // mutation: http/open-beyond-loopback
  const exposed = [...listen, ...peerListen, ...httpListen, ...(overNetwork ? fabricListen : [])].find(
    (a) => !isLoopback(a.host),
  );
  // mutation: tenants/tls-as-access
  if (exposed !== undefined && access.writer === undefined && cluster === undefined && !insecure) {
    const none = Object.values(tokens).some(Boolean) ? 'none of the tokens is one of clients' : 'there is no token';
    throw configError(
      `${formatHostPort(exposed)} can be reached from other machines, and ${none}${tls === undefined ? '' : ' (TLS hides what is said, and lets anybody in)'}: whoever connects could read and change everything. ` +
        'Give --secrets (farkv secrets init makes them) or --token-file and --operator-token-file (and --tls-cert, --tls-key), listen on 127.0.0.1, or say --insecure',
    );
  }
  const dataDir = read('data-dir');
  const levelAsked = read('level');
  const level = levelAsked ?? (peers.length >= 3 ? 'replicated' : 'cache');
  if (level === 'durable' && dataDir === undefined)
    throw configError(
      `${where('level')}: durable values are on a disk, and without --data-dir the directory is a temporary one: name a directory on a disk`,
    );
  const syncMs = need('sync');
  if (syncMs > 0 && isWitness)
    throw configError(`${where('sync')}: a witness keeps no values, so it answers no changes: leave it out`);
  const joinToken = read('join-token-file');
  const rdmaDevices = read('rdma-device');
  if (rdmaDevices !== undefined && auto && !isWitness && !transports.some(needsDevice))
    throw configError(
      `${where('rdma-device')}: this machine has no RDMA device that this build can use, and ${rdmaDevices.join()} cannot be used; farkv doctor says why`,
    );
  return {
    ...fieldsOf(read),
    id,
    peerListen,
    fabricListen,
    httpListen,
    peers,
    join,
    ...(joinToken === undefined ? {} : { joinToken: { file: joinToken } }),
    transports,
    advertise: read('advertise') ?? [],
    transportAuto: auto,
    memoryBytes: isWitness ? 0 : need('memory'),
    shards,
    tenants,
    ...(rdmaDevices === undefined ? {} : { rdmaDevices }),
    access,
    ...(tls === undefined ? {} : { tls }),
    ...FIXED,
    drainMs: read('drain-ms') ?? 2 * need('lease-ms') + 1000,
    tickMs: Math.max(10, Math.floor(need('election-ms') / 10)),
    level,
    ...(levelAsked === undefined ? {} : { levelAsked }),
    syncMs,
    voters: Math.max(read('voters') ?? 3, peers.length),
    replaceVoterMs: need('replace-voter-after'),
  };
}

function fieldsOf(read: (name: OptionName) => unknown): FieldSettings {
  const names = OPTION_NAMES.filter((name) => 'isField' in SERVER_OPTIONS[name]);
  return defined(Object.fromEntries(names.map((name) => [camelName(name), read(name)]))) as unknown as FieldSettings;
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

/** Where the first data-plane thread of a server listens that listens on `control` for clients. */
function dataAddressOf(control: HostPort, where: (name: OptionName) => string): HostPort {
  const port = control.port === 0 ? 0 : control.port + DATA_PORT_OFFSET;
  if (port + DATA_PORTS > 65_536)
    throw configError(
      `${where('fabric-listen')} is needed: the ${DATA_PORTS} ports from ${control.port} + ${DATA_PORT_OFFSET} on are not all ports`,
    );
  return { host: control.host, port };
}

/** Where other servers reach a server that listens on `control` for clients. */
function peerAddressOf(control: HostPort, port: number | undefined, where: (name: OptionName) => string): HostPort {
  const chosen = port ?? (control.port === 0 ? 0 : control.port + PEER_PORT_OFFSET);
  if (chosen > 65_535)
    throw configError(`${where('peer-listen')} is needed: ${control.port} + ${PEER_PORT_OFFSET} is not a port`);
  return { host: control.host, port: chosen };
}

/** What listens at these addresses, as a message names it. */
const USES = {
  listen: 'clients and operators',
  'peer-listen': 'the other servers',
  'http-listen': 'http',
  'fabric-listen': 'data',
} as const;

/** An address of all of the machine's addresses takes the port at each of them; `::` takes that of IPv4 too. */
const takes = (a: string, b: string): boolean => a === b || a === '::' || (a === '0.0.0.0' && !b.includes(':'));

/** The bind would fail, and blame another program. */
function checkApart(
  listeners: Readonly<Record<keyof typeof USES, readonly HostPort[]>>,
  where: (name: OptionName) => string,
): void {
  const all = (Object.keys(USES) as (keyof typeof USES)[]).flatMap((name) =>
    listeners[name].map((address) => ({ name, address })),
  );
  for (const [i, { name, address: b }] of all.entries()) {
    const other = all.slice(0, i).find(({ name: of, address: a }) => {
      const isSame = a.port === b.port && (takes(a.host, b.host) || takes(b.host, a.host));
      return of !== name && b.port !== 0 && isSame;
    });
    if (other === undefined) continue;
    const byPeers = name === 'peer-listen' ? `, which ${where('peers')} may have named` : '';
    throw configError(
      `${formatHostPort(b)} is given for ${USES[other.name]} (${where(other.name)}) and for ${USES[name]} (${where(name)}${byPeers}): ` +
        `each needs a port of its own; by default the other servers have the control port + ${PEER_PORT_OFFSET}, and data + ${DATA_PORT_OFFSET}`,
    );
  }
}

function trusted<T>(read: () => T, where: string): T {
  try {
    return read();
  } catch (cause) {
    throw cause instanceof FarkvError ? cause : configError(`${where}: ${(cause as Error).message}`, cause);
  }
}

/** Throws ERR_CONFIG when files are missing, or the certificate has a role name of somebody else. */
function tlsFiles(
  id: string,
  directory: string | undefined,
  read: (name: 'tls-cert' | 'tls-key' | 'tls-ca') => string | undefined,
  where: (name: OptionName) => string,
): TlsFiles | undefined {
  const given = { cert: read('tls-cert'), key: read('tls-key'), ca: read('tls-ca') };
  const named = given.cert !== undefined || given.key !== undefined;
  const made = directory === undefined ? {} : certificateFiles(directory, [`server-${id}`, 'server']);
  if (!named && made.ca !== undefined && made.cert === undefined)
    throw configError(
      `${where('secrets')}: ${directory ?? ''} has no certificate of this server: farkv secrets issue ${directory ?? ''} peer ${id}`,
    );
  const cert = readable(named ? given.cert : made.cert, where('tls-cert'));
  const key = readable(named ? given.key : made.key, where('tls-key'));
  if (key !== undefined) checkPrivate(key, (what) => configError(`${where('tls-key')}: ${key} ${what}`));
  const ca = readable(given.ca ?? (named ? undefined : made.ca), where('tls-ca'));
  if (cert === undefined && key === undefined) {
    if (given.ca !== undefined) throw configError(`${where('tls-ca')} has no meaning without --tls-cert and --tls-key`);
    return undefined;
  }
  if (cert === undefined) throw configError(`${where('tls-cert')} is needed with --tls-key`);
  if (key === undefined) throw configError(`${where('tls-key')} is needed with --tls-cert`);
  const cluster = clusterOf(id, cert, ca, where);
  return { cert, key, ...(ca === undefined ? {} : { ca }), ...(cluster === undefined ? {} : { cluster }) };
}

/** The cluster that the server's certificate names; undefined when it has no role name. */
function clusterOf(
  id: string,
  cert: string,
  ca: string | undefined,
  where: (name: OptionName) => string,
): string | undefined {
  const own = trusted(() => {
    // Whether it is a certificate at all is said when it is used, with its key.
    const pem = readRegular(cert, PEM_BYTES_MAX);
    return pem.includes('BEGIN CERTIFICATE') ? roleNameOf(pem) : undefined;
  }, where('tls-cert'));
  if (own === undefined) return undefined;
  if (own.role !== 'peer' || (own.name !== id && own.name !== ANY_SERVER))
    throw configError(`${where('tls-cert')}: ${cert} is a certificate of ${own.role} ${own.name}, not of server ${id}`);
  if (ca === undefined)
    throw configError(
      `${where('tls-ca')} is needed with the certificate of cluster ${own.cluster}: the authority that signs those of its servers, clients and operators`,
    );
  return own.cluster;
}
