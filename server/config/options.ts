/**
 * The options of a server, once: their names, what they mean, their defaults and limits, and how each is read. Flags,
 * environment variables, the keys of a configuration file, `--help` and startServer() are all made from this table.
 */
import { availableParallelism } from 'node:os';
import { PROVIDERS } from '../../core/providers.js';
import { formatSize, parseSize } from '../../core/size.js';
import {
  devices,
  flag,
  hosts,
  hugePages,
  identifier,
  integer,
  joinAddresses,
  level,
  listens,
  logFormat,
  peers,
  polling,
  replicationLevel,
  sync,
  text,
  transports,
  within,
  zoneLabel,
} from './option-values.js';
import { DATA_PLANE_THREADS_MAX } from './settings.js';
import { parseTenants } from './tenants.js';
import { parseDuration } from './units.js';

export type OptionGroup = 'Cluster' | 'Addresses' | 'Memory' | 'Security' | 'Limits' | 'Timing' | 'Other';

/** How an option is given: as one value, as true or false, or as several values. */
export type OptionKind = 'text' | 'flag' | 'list';

export interface OptionSpec<T, K extends OptionKind = OptionKind> {
  readonly group: OptionGroup;
  /** Shown by --help; ends without a full stop. Says units and limits. */
  readonly describe: string;
  /** As text, shown by --help, read like any other value. Undefined: there is none, and the option may stay unset. */
  readonly default?: string;
  /** What --help shows in its place, for a default that depends on the machine. */
  readonly defaultText?: string;
  readonly kind: K;
  /** Throws an Error that completes "--name: ...". `choices`: all that it takes, where those are few. */
  readonly parse: ((value: unknown) => T) & { readonly choices?: readonly string[] };
}

function option<T, K extends OptionKind>(spec: OptionSpec<T, K>): OptionSpec<T, K> {
  return spec;
}

interface Field {
  readonly isField: true;
}
interface Defaulted {
  readonly default: string;
}

/**
 * An option whose value, as it is read, is the field of ServerSettings of its name in camelCase. Without a default the
 * field may be absent.
 */
function field<T, K extends OptionKind>(spec: OptionSpec<T, K> & Defaulted): OptionSpec<T, K> & Defaulted & Field;
function field<T, K extends OptionKind>(spec: OptionSpec<T, K>): OptionSpec<T, K> & Field;
function field<T, K extends OptionKind>(spec: OptionSpec<T, K>): OptionSpec<T, K> & Field {
  return { ...spec, isField: true };
}

/** A token as a text, and as a file that has it. */
function tokenOptions<N extends string>(
  name: N,
  describe: string,
): Record<N | `${N}-file`, OptionSpec<string, 'text'>> {
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
  } as Record<N | `${N}-file`, OptionSpec<string, 'text'>>;
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
      'Addresses (host:port, --peer-listen) of servers of an existing cluster to join. Needs --id, excludes --peers. A server that has joined looks for the others there too',
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
      'How a new cluster keeps values: durable (on the disks of two servers, or of one where there is one; they survive a loss of power; needs --data-dir, and stays so), replicated (on two servers; they survive either), cache (on one, lost with it). Default: replicated with three servers or more. farkv replication set changes cache and replicated, by tenant',
  }),
  sync: option({
    group: 'Cluster',
    kind: 'text',
    default: 'always',
    parse: sync,
    describe:
      'When a server with --level durable answers a change: always (when it is on the disks), or a time from 10ms to 10s: when it is in the logs of all copies, and disks have it after about that time. Then changes of that time are lost when all copies lose their power, or are killed, at once. A single copy waits for its disk, unless only one is wanted',
  }),
  voters: option({
    group: 'Cluster',
    kind: 'text',
    parse: within(1, 9, integer),
    describe:
      "Most voting servers of the metadata group, 1 to 9, and never fewer than --peers names; further servers follow without a vote. The first leader's setting counts. Default: 3",
  }),
  zone: field({
    group: 'Cluster',
    kind: 'text',
    parse: zoneLabel,
    describe:
      'Failure domain of this server, such as a rack or a data centre: letters, digits, . _ -, at most 63. Servers of one zone are expected to fail together: copies of a shard lie in different zones where they can. Default: its host',
  }),
  witness: option({
    group: 'Cluster',
    kind: 'flag',
    default: 'false',
    parse: flag,
    describe:
      'Makes this server a witness, which votes and keeps no values: with two servers that keep values, a cluster goes on without any one of the three. A witness opens no port for data',
  }),
  'data-dir': field({
    group: 'Cluster',
    kind: 'text',
    parse: text,
    describe:
      'Directory of the metadata log and of durable values, made when missing (0700). Without it a temporary one is used and removed at the end: such a server cannot rejoin a cluster of several',
  }),
  listen: field({
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
      'Addresses host:port for the other servers of the cluster only: clients need not reach this port. Default: the hosts of --listen with the port that --peers gives this server, else with the port of --listen + 2000 (0 for 0)',
  }),
  'fabric-listen': option({
    group: 'Addresses',
    kind: 'list',
    parse: listens,
    describe:
      'Data addresses host:port. Data-plane thread n, from 0 on, takes port + n for tcp and port + 100 + n for verbs, or any free one with port 0. Default: the hosts of --listen with the port of --listen + 1000 (0 for 0)',
  }),
  'http-listen': option({
    group: 'Addresses',
    kind: 'list',
    parse: listens,
    describe:
      'Addresses host:port for browsers and Prometheus: a page at /, /metrics, /healthz, /readyz, /role; read-only. Asks for a token of a monitor where the cluster has tokens or certificates. Default: none',
  }),
  'rdma-device': option({
    group: 'Addresses',
    kind: 'list',
    parse: devices,
    describe:
      'RDMA devices of the verbs transport, as farkv doctor lists them (mlx5_0, rxe0), at most two with a comma, the preferred one first: each is listened on, and clients take the first that they reach. Default: those that --fabric-listen addresses lead to, else the first',
  }),
  'rdma-traffic-class': field({
    group: 'Addresses',
    kind: 'text',
    parse: within(0, 255, integer),
    describe:
      'Traffic class of the connections that this server makes over RDMA, 0 to 255: four times the DSCP, and two bits for ECN. Clients have FARKV_RDMA_TRAFFIC_CLASS; over RoCE both ends send with that of the one that connects. Default, and 0: what the system has (default_roce_tos)',
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
    describe: `Transports offered to clients: ${PROVIDERS.join(', ')}, several with commas; auto: all that this machine has`,
  }),
  strict: field({
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
  'huge-pages': field({
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
  ...tokenOptions(
    'operator-token',
    'Token of operators: all commands that look at the cluster or change it; it opens no values',
  ),
  ...tokenOptions(
    'monitor-token',
    'Token of monitors, who may only ask for the status, and see the page and the metrics',
  ),
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
  'insecure-data': field({
    group: 'Security',
    kind: 'flag',
    default: 'false',
    parse: flag,
    describe:
      'Leave data over tcp in the clear although the control port has TLS. Without it, --tls-cert encrypts both; data over RDMA is never encrypted',
  }),
  insecure: field({
    group: 'Security',
    kind: 'flag',
    default: 'false',
    parse: flag,
    describe: 'Allow listening beyond loopback without a token',
  }),
  'data-plane-threads': field({
    group: 'Limits',
    kind: 'text',
    default: String(threads),
    defaultText: 'processors less one, 1 to 4',
    parse: within(1, DATA_PLANE_THREADS_MAX, integer),
    describe: 'Workers: threads that answer PUTs, 1 to 64; each has its own shards',
  }),
  'max-clients': field({
    group: 'Limits',
    kind: 'text',
    default: '1024',
    parse: within(1, 65_536, integer),
    describe: 'Data connections to this server, 1 to 65536; more are refused. A client has one per worker',
  }),
  'client-quota': field({
    group: 'Limits',
    kind: 'text',
    default: '256',
    parse: within(1, 4096, integer),
    describe: 'Requests of one client under way at a worker, 1 to 4096; more wait at the client',
  }),
  'max-connections': field({
    group: 'Limits',
    kind: 'text',
    default: '4096',
    parse: within(1, 65_536, integer),
    describe:
      'Control connections of clients, 1 to 65536; more are refused. Beyond these 16 are for operators, and 2,048 for those that have not shown who they are: the slowest gives way. See "Bounds" below',
  }),
  'lease-ms': field({
    group: 'Timing',
    kind: 'text',
    default: '2000',
    parse: within(100, 60_000, parseDuration, ' ms'),
    describe:
      'How long a client may read before it renews its lease, 100 to 60000 ms. A server that was killed waits that long before it serves again, or for --owner-lease-ms where that is shorter',
  }),
  'drain-ms': option({
    group: 'Timing',
    kind: 'text',
    parse: within(0, 3_600_000, parseDuration, ' ms'),
    describe:
      'How long a server that is told to stop waits until others have its shards, 0 to 3600000 ms, before their leases run out. Default: two of --lease-ms and a second',
  }),
  'owner-lease-ms': field({
    group: 'Timing',
    kind: 'text',
    default: '800',
    parse: within(100, 600_000, parseDuration, ' ms'),
    describe:
      "A server silent for this long loses its shards to the others, 100 to 600000 ms. The first leader's setting counts for the whole cluster",
  }),
  polling: field({
    group: 'Timing',
    kind: 'text',
    default: 'auto',
    parse: polling,
    describe:
      'Whether data-plane threads poll before they sleep: auto, as long as work comes within 50 to 100 us and nobody else needs the processor; always, for 100 ms after the last work; never',
  }),
  'election-ms': field({
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
  'log-level': field({
    group: 'Other',
    kind: 'text',
    default: 'info',
    parse: level,
    describe:
      'Least severity of lines on standard error: debug, info, warn, error. Lines that say who did what (audit) are written with any',
  }),
  'slow-ms': field({
    group: 'Other',
    kind: 'text',
    default: '100',
    parse: within(0, 3_600_000, parseDuration, ' ms'),
    describe:
      'Requests that waited at a worker for so long, for memory, copies or a disk, are in the log, with the hash of the key, 0 to 3600000 ms; 0: none is. At most 20 in 10 s are written',
  }),
  'log-format': field({
    group: 'Other',
    kind: 'text',
    default: 'text',
    parse: logFormat,
    describe:
      'Lines on standard error: text, or json: an object per line, with time, level, and message, event or both',
  }),
} as const;

export type OptionName = keyof typeof SERVER_OPTIONS;
export const OPTION_NAMES = Object.keys(SERVER_OPTIONS) as OptionName[];
export type OptionValue<N extends OptionName> = (typeof SERVER_OPTIONS)[N] extends OptionSpec<infer T> ? T : never;

export type CamelCase<S extends string> = S extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : S;
type NamesOf<Trait> = { [N in OptionName]: (typeof SERVER_OPTIONS)[N] extends Field & Trait ? N : never }[OptionName];
/** The fields of ServerSettings that are options as they are read. */
export type FieldSettings = { readonly [N in NamesOf<Defaulted> as CamelCase<N>]: OptionValue<N> } & {
  readonly [N in NamesOf<unknown> as CamelCase<N>]?: OptionValue<N>;
};

export const envName = (name: string): string => `FARKV_${name.toUpperCase().replaceAll('-', '_')}`;
export const camelName = (name: string): string =>
  name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
