/**
 * The options of a server, once: their names, what they mean, their defaults and limits, and how each is read. Flags,
 * environment variables, the keys of a configuration file, `--help` and startServer() are all made from this table.
 */
import type { Policy } from '../../core/metadata/state.js';
import { TRANSPORT_CHOICES, type TransportChoice } from '../../core/providers.js';
import { availableParallelism } from 'node:os';
import type { HugePages } from '../../native/data-plane.js';
import { parseTenants } from './tenants.js';
import { formatSize, parseDuration, parseHostPort, parseSize, type HostPort } from './units.js';

export type OptionGroup = 'Cluster' | 'Addresses' | 'Memory' | 'Security' | 'Limits' | 'Timing' | 'Other';

export interface OptionSpec<T> {
  readonly group: OptionGroup;
  /** Shown by --help; ends without a full stop. Says units and limits. */
  readonly describe: string;
  /**
   * As text, shown by --help, and read like any other value. Undefined: there is none, and the option may stay unset.
   */
  readonly default?: string;
  readonly kind: 'text' | 'flag' | 'list';
  /** Throws an Error that completes "--name: ...". */
  readonly parse: (value: unknown) => T;
}

function text(value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number') throw new Error('expected text');
  const t = String(value);
  if (t === '') throw new Error('is empty');
  return t;
}

function flag(value: unknown): boolean {
  if (value === true || value === 'true' || value === '1' || value === 1) return true;
  if (value === false || value === 'false' || value === '0' || value === 0) return false;
  throw new Error(`"${String(value)}" is neither true nor false`);
}

/** A list, or text with commas. */
function items(value: unknown): string[] {
  const all = Array.isArray(value) ? (value as unknown[]) : [value];
  return all
    .flatMap((one) => text(one).split(','))
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

function within(
  min: number,
  max: number,
  read: (value: unknown) => number,
  unit = '',
  say: (n: number) => string = String,
): (value: unknown) => number {
  return (value) => {
    const n = read(value);
    if (!Number.isSafeInteger(n) || n < min || n > max)
      throw new Error(`must be from ${say(min)} to ${say(max)}${unit}, not ${String(value)}`);
    return n;
  };
}

function integer(value: unknown): number {
  return /^\d+$/.test(String(value).trim()) ? Number(value) : NaN;
}

function identifier(value: unknown): string {
  const id = text(value);
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(id))
    throw new Error(`"${id}" is not a server id: letters, digits, . _ -, at most 63`);
  return id;
}

function zoneLabel(value: unknown): string {
  const label = text(value);
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(label))
    throw new Error(`"${label}" is not a zone: letters, digits, . _ -, at most 63`);
  return label;
}

export interface PeerAddress {
  readonly id: string;
  readonly address: string;
}

/**
 * `s1=host:port,s2=host:port`, a list of such, or a map of id to address or addresses. The same id may come several
 * times.
 */
function peers(value: unknown): PeerAddress[] {
  const pairs: (readonly [unknown, unknown])[] =
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.entries(value as Readonly<Record<string, unknown>>).flatMap(([id, at]) =>
          (Array.isArray(at) ? (at as unknown[]) : [at]).map((one) => [id, one] as const),
        )
      : items(value).map((item) => {
          const cut = item.indexOf('=');
          if (cut < 1) throw new Error(`"${item}" is not id=host:port`);
          return [item.slice(0, cut), item.slice(cut + 1)] as const;
        });
  return pairs.map(([id, at]) => {
    const { port } = parseHostPort(at);
    if (port === 0) throw new Error(`"${String(at)}": other servers must know the port`);
    return { id: identifier(id), address: text(at).trim() };
  });
}

function joinAddresses(value: unknown): string[] {
  const all = items(value).map((one) => {
    if (parseHostPort(one).port === 0) throw new Error(`"${one}": the port must be known`);
    return one;
  });
  if (all.length === 0) throw new Error('is empty');
  return all;
}

function listens(value: unknown): HostPort[] {
  const all = items(value).map(parseHostPort);
  if (all.length === 0) throw new Error('is empty');
  return all;
}

/** Host names and IP addresses, without ports; brackets around IPv6 may be left out. */
function hosts(value: unknown): string[] {
  return items(value).map((item) => {
    const host = /^\[(.+)\]$/.exec(item)?.[1] ?? item;
    if (!/^[A-Za-z0-9.-]+$/.test(host) && !/^[0-9a-fA-F:.]+(%[\w.-]+)?$/.test(host))
      throw new Error(`"${item}" is not a host name or IP address (without a port)`);
    if (/^[^:]+:\d+$/.test(host)) throw new Error(`"${item}": hosts are given without ports`);
    return host;
  });
}

function transports(value: unknown): TransportChoice[] {
  return items(value).map((name) => {
    const known = TRANSPORT_CHOICES.find((one) => one === name);
    if (known === undefined) throw new Error(`"${name}" is not one of ${TRANSPORT_CHOICES.join(', ')}`);
    return known;
  });
}

const levels = ['debug', 'info', 'warn', 'error'] as const;
function level(value: unknown): (typeof levels)[number] {
  const known = levels.find((one) => one === value);
  if (known === undefined) throw new Error(`"${String(value)}" is not one of ${levels.join(', ')}`);
  return known;
}

const formats = ['text', 'json'] as const;
function logFormat(value: unknown): (typeof formats)[number] {
  const known = formats.find((one) => one === value);
  if (known === undefined) throw new Error(`"${String(value)}" is not one of ${formats.join(', ')}`);
  return known;
}

function replicationLevel(value: unknown): Policy['level'] {
  if (value === 'cache' || value === 'replicated') return value;
  throw new Error(`"${String(value)}" is not one of cache, replicated`);
}

const pageChoices = ['auto', 'off', 'require'] as const;
/** Files that were written when this was a flag say true or false. */
function hugePages(value: unknown): HugePages {
  const name = value === true || value === 'true' ? 'auto' : value === false || value === 'false' ? 'off' : value;
  const known = pageChoices.find((one) => one === name);
  if (known === undefined) throw new Error(`"${String(value)}" is not one of ${pageChoices.join(', ')}`);
  return known;
}

function option<T>(spec: OptionSpec<T>): OptionSpec<T> {
  return spec;
}

/** A token as a text, and as a file that has it. */
function tokenOptions<N extends string>(name: N, describe: string): Record<N | `${N}-file`, OptionSpec<string>> {
  const one = { group: 'Security', kind: 'text', parse: text } as const;
  return {
    [name]: option({
      ...one,
      describe: `${describe}; at most 1024 characters. Other users of this machine see it in the process list: prefer the file`,
    }),
    [`${name}-file`]: option({
      ...one,
      describe:
        'File with it, for its owner alone (mode 600). Each line is a token and good; changes count without a restart',
    }),
  } as Record<N | `${N}-file`, OptionSpec<string>>;
}

const threads = Math.max(1, Math.min(4, availableParallelism() - 1));

const replaceAfter = within(1000, 7 * 86_400_000, parseDuration, ' ms');

export const SERVER_OPTIONS = {
  id: option({
    group: 'Cluster',
    kind: 'text',
    parse: identifier,
    describe:
      'Name of this server in the cluster: letters, digits, . _ -, at most 63. Needed with several --peers; else s1',
  }),
  peers: option({
    group: 'Cluster',
    kind: 'list',
    parse: peers,
    describe:
      'All servers of the cluster, this one too: id=host:port,id=host:port (their --peer-listen addresses). The same list for every server, 1 to 9 ids; later ones --join',
  }),
  join: option({
    group: 'Cluster',
    kind: 'list',
    parse: joinAddresses,
    describe:
      'Addresses (host:port, --peer-listen) of servers of an existing cluster to join. Needs --id, excludes --peers. Ignored once the server has joined',
  }),
  shards: option({
    group: 'Cluster',
    kind: 'text',
    parse: within(1, 4096, integer),
    describe:
      'Shards of the cluster (without those of --tenants), 1 to 4096, fixed when the cluster is made. Default: 4 per server',
  }),
  level: option({
    group: 'Cluster',
    kind: 'text',
    parse: replicationLevel,
    describe:
      'How a new cluster keeps values: replicated (on two servers; they survive either), cache (on one, lost with it). Default: replicated with three servers or more. farkv replication set changes it, by tenant',
  }),
  voters: option({
    group: 'Cluster',
    kind: 'text',
    parse: within(1, 9, integer),
    describe:
      "Voting servers of the metadata group, 1 to 9; further servers follow without a vote. The first leader's setting counts. Default: 3, or as many as --peers",
  }),
  zone: option({
    group: 'Cluster',
    kind: 'text',
    parse: zoneLabel,
    describe:
      'What fails together with this server, a rack or a data centre: letters, digits, . _ -, at most 63. Copies of a shard lie in different zones where they can. Default: its host',
  }),
  witness: option({
    group: 'Cluster',
    kind: 'flag',
    default: 'false',
    parse: flag,
    describe:
      'It votes, and keeps no values: with two servers that do, a cluster goes on without any one of the three. It opens no port for data',
  }),
  'data-dir': option({
    group: 'Cluster',
    kind: 'text',
    parse: text,
    describe:
      'Directory of the metadata log, made when missing (0700). Without it a temporary one is used and removed at the end: such a server cannot rejoin a cluster of several',
  }),
  listen: option({
    group: 'Addresses',
    kind: 'list',
    default: '127.0.0.1:7400',
    parse: listens,
    describe:
      'Control addresses host:port, for clients and operators; several with commas; port 0 takes a free one. [host]:port for IPv6',
  }),
  'peer-listen': option({
    group: 'Addresses',
    kind: 'list',
    parse: listens,
    describe:
      'Addresses host:port for the other servers of the cluster, and for nobody else: a port that no client need reach. Default: the hosts of --listen with the port that --peers gives this server, else with the port of --listen + 2000 (0 for 0)',
  }),
  'fabric-listen': option({
    group: 'Addresses',
    kind: 'list',
    parse: listens,
    describe:
      'Data addresses host:port of the tcp and verbs transports; data-plane thread n takes port + n, or any free one with port 0. Default: the hosts of --listen with port 0',
  }),
  'rdma-device': option({
    group: 'Addresses',
    kind: 'text',
    parse: text,
    describe:
      'RDMA device of the verbs transport, as farkv doctor lists it (mlx5_0, rxe0). Default: the one that a --fabric-listen address leads to, else the first; its address is listened on',
  }),
  advertise: option({
    group: 'Addresses',
    kind: 'list',
    parse: hosts,
    describe:
      'Hosts under which clients and servers reach this server, if they differ from those it listens on. Default: --listen; for 0.0.0.0 and [::] the addresses of this machine',
  }),
  transport: option({
    group: 'Addresses',
    kind: 'list',
    default: 'auto',
    parse: transports,
    describe: 'Transports offered to clients: shm, tcp, verbs, several with commas; auto: all that this machine has',
  }),
  strict: option({
    group: 'Addresses',
    kind: 'flag',
    default: 'false',
    parse: flag,
    describe: 'Refuse to start if a transport cannot be offered, also with auto',
  }),
  memory: option({
    group: 'Memory',
    kind: 'text',
    default: '1gb',
    parse: within(4 << 20, 2 ** 46, parseSize, '', formatSize),
    describe:
      'Memory for tables, 4mb to 64tb, at least 4mb per shard of this server. Allocated as tables grow. Units b, k, kb, mb, gb, tb are powers of 1024',
  }),
  'huge-pages': option({
    group: 'Memory',
    kind: 'text',
    default: 'auto',
    parse: hugePages,
    describe:
      'Pages of 2 MiB for tables: auto (where the system has some, for segments that are large enough), off, require (for all segments, at least 4mb per shard; the start fails without them)',
  }),
  secrets: option({
    group: 'Security',
    kind: 'text',
    parse: text,
    describe:
      'Directory of tokens and certificates, as farkv secrets init makes it, for those that are not given otherwise: token, reader-token, operator-token, monitor-token, peer-token; ca.crt, and server-ID.crt or server.crt with its key',
  }),
  ...tokenOptions('token', 'Token of clients, who may read and write'),
  ...tokenOptions('reader-token', 'Token of clients that may only read'),
  ...tokenOptions('operator-token', 'Token of operators: farkv status, drain, member, shard'),
  ...tokenOptions('monitor-token', 'Token of monitors, who may only ask for the status'),
  ...tokenOptions('peer-token', 'Token of servers among themselves; needed where several servers use tokens'),
  'join-token-file': option({
    group: 'Security',
    kind: 'text',
    parse: text,
    describe:
      'File with the token of farkv join-token create, for its owner alone (mode 600): needed with --join where the cluster has tokens or certificates. Read when the server asks for its place, and not needed afterwards',
  }),
  tenants: option({
    group: 'Security',
    kind: 'list',
    parse: parseTenants,
    describe:
      "Groups of clients that share no data: name,shards=N,token-file=FILE[,reader-token-file=FILE][,max-clients=N], once per tenant, at most 15; several with semicolons; a map of names in a file. A client authenticates with its tenant's token and sees its N shards alone. Names and shards are fixed when the cluster is made, and the same for every server. Needs --token-file for the default tenant, which has --shards",
  }),
  'tls-cert': option({
    group: 'Security',
    kind: 'text',
    parse: text,
    describe:
      'PEM certificate chain for both ports; needs --tls-key. Then only TLS 1.3 is accepted. One with farkv://CLUSTER/peer/ID among its names lets in certificates of the same cluster by their roles. Changed files count without a restart',
  }),
  'tls-key': option({ group: 'Security', kind: 'text', parse: text, describe: 'PEM private key of --tls-cert' }),
  'tls-ca': option({
    group: 'Security',
    kind: 'text',
    parse: text,
    describe:
      "PEM certificates of the authorities that signed the other servers' certificates, and those of clients and operators. Default: those of the system",
  }),
  'insecure-data': option({
    group: 'Security',
    kind: 'flag',
    default: 'false',
    parse: flag,
    describe:
      'Leave data over tcp in the clear although the control port has TLS. Without it, --tls-cert encrypts both; data over RDMA is never encrypted',
  }),
  insecure: option({
    group: 'Security',
    kind: 'flag',
    default: 'false',
    parse: flag,
    describe: 'Allow listening beyond loopback without a token',
  }),
  'data-plane-threads': option({
    group: 'Limits',
    kind: 'text',
    default: String(threads),
    parse: within(1, 64, integer),
    describe: 'Workers: threads that answer PUTs, 1 to 64; each has its own shards',
  }),
  'max-clients': option({
    group: 'Limits',
    kind: 'text',
    default: '1024',
    parse: within(1, 65_536, integer),
    describe: 'Data connections to this server, 1 to 65536; more are refused. A client has one per worker',
  }),
  'client-quota': option({
    group: 'Limits',
    kind: 'text',
    default: '256',
    parse: within(1, 4096, integer),
    describe: 'Requests of one client under way at a worker, 1 to 4096; more wait at the client',
  }),
  'max-connections': option({
    group: 'Limits',
    kind: 'text',
    default: '4096',
    parse: within(1, 65_536, integer),
    describe:
      'Control connections of clients, 1 to 65536; more are refused. Beyond these 16 are for operators, and 2,048 for those that have not shown who they are: the oldest gives way. See "Bounds" below',
  }),
  'lease-ms': option({
    group: 'Timing',
    kind: 'text',
    default: '2000',
    parse: within(100, 60_000, parseDuration, ' ms'),
    describe:
      'How long a client may read before it renews its lease, 100 to 60000 ms. A restarted server waits that long before it serves',
  }),
  'owner-lease-ms': option({
    group: 'Timing',
    kind: 'text',
    default: '800',
    parse: within(100, 600_000, parseDuration, ' ms'),
    describe:
      "A server silent for this long loses its shards to the others, 100 to 600000 ms. The first leader's setting counts for the whole cluster",
  }),
  'spin-us': option({
    group: 'Timing',
    kind: 'text',
    default: '50',
    parse: within(0, 1_000_000, integer),
    describe: 'How long a worker polls before it sleeps, microseconds, 0 to 1000000',
  }),
  'tcp-busy-poll-us': option({
    group: 'Timing',
    kind: 'text',
    default: '0',
    parse: within(0, 1_000_000, integer),
    describe:
      'How long the thread that answers READs over tcp polls before it sleeps, microseconds, 0 to 1000000; also sets SO_BUSY_POLL on its sockets (CAP_NET_ADMIN). Faster first READ after a pause, for a busy core',
  }),
  'election-ms': option({
    group: 'Timing',
    kind: 'text',
    default: '400',
    parse: within(200, 60_000, parseDuration, ' ms'),
    describe: 'A metadata leader silent for one to two times this is replaced, 200 to 60000 ms',
  }),
  'replace-voter-after': option({
    group: 'Timing',
    kind: 'text',
    default: '10m',
    parse: (value) => (['0', 'never'].includes(String(value)) ? Infinity : replaceAfter(value)),
    describe:
      "A voter silent for this long loses its vote to a learner, if there is one; 1 s to 7 days, or never. The leader's setting counts: give all servers the same",
  }),
  'log-level': option({
    group: 'Other',
    kind: 'text',
    default: 'info',
    parse: level,
    describe:
      'Least severity of lines on standard error: debug, info, warn, error. Lines that say who did what (audit) are written with any',
  }),
  'log-format': option({
    group: 'Other',
    kind: 'text',
    default: 'text',
    parse: logFormat,
    describe: 'Lines on standard error: text, or json: an object per line, with time, level, and message or event',
  }),
} as const;

export type OptionName = keyof typeof SERVER_OPTIONS;
export const OPTION_NAMES = Object.keys(SERVER_OPTIONS) as OptionName[];
export type OptionValue<N extends OptionName> = (typeof SERVER_OPTIONS)[N] extends OptionSpec<infer T> ? T : never;

export const envName = (name: string): string => `FARKV_${name.toUpperCase().replaceAll('-', '_')}`;
export const camelName = (name: string): string =>
  name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
