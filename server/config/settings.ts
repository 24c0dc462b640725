/** What a server is told, complete and checked: the result of load.ts, and what the node's thread is started with. */
import type { Provider } from '../../core/metadata/state.js';
import type { HugePages } from '../../native/data-plane.js';
import type { SecretSource } from './secret-file.js';
import type { HostPort } from './units.js';

export interface Peer {
  readonly id: string;
  /** Control addresses, in the order in which they are tried. */
  readonly addresses: readonly string[];
}

export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
}

/** A tenant beside the default one. */
export interface TenantSettings {
  readonly name: string;
  readonly shards: number;
  /** Of clients that read and write. */
  readonly writer: SecretSource;
  readonly reader?: SecretSource;
  /** Of its clients at this server, and of their data connections; undefined: no bound but those of all. */
  readonly maxClients?: number;
}

/** The tokens by role; without any, whoever can connect may do everything. Tenants: those beside the default one. */
export interface AccessSettings {
  readonly writer?: SecretSource;
  readonly reader?: SecretSource;
  readonly operator?: SecretSource;
  readonly monitor?: SecretSource;
  readonly peer?: SecretSource;
  readonly tenants: readonly Pick<TenantSettings, 'name' | 'maxClients' | 'writer' | 'reader'>[];
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface ServerSettings {
  readonly id: string;
  readonly listen: readonly HostPort[];
  /** Hosts that others should use instead of those listened on; empty: the same. */
  readonly advertise: readonly string[];
  readonly fabricListen: readonly HostPort[];
  /** The device of verbs; undefined: by address. */
  readonly rdmaDevice?: string;
  /** All voters of the metadata group, this one among them, sorted by id. */
  readonly peers: readonly Peer[];
  /** Servers of the cluster that this one is to come to; empty: it is one of the first. */
  readonly join: readonly string[];
  readonly transports: readonly Provider[];
  /** True when --transport was `auto`: what this machine has not is left out without an error. */
  readonly transportAuto: boolean;
  readonly strict: boolean;
  readonly memoryBytes: number;
  /** Of the default tenant. */
  readonly shards: number;
  /** Sorted by name. */
  readonly tenants: readonly TenantSettings[];
  /** Undefined: a directory of its own that is removed at the end. */
  readonly dataDir?: string;
  readonly access: AccessSettings;
  readonly tls?: TlsFiles;
  readonly insecure: boolean;
  readonly leaseMs: number;
  readonly driftPpm: number;
  readonly dataPlaneThreads: number;
  readonly maxClients: number;
  readonly clientQuota: number;
  readonly spinUs: number;
  readonly tcpBusyPollUs: number;
  readonly hugePages: HugePages;
  readonly maxConnections: number;
  readonly handshakeMs: number;
  readonly tickMs: number;
  readonly electionMs: number;
  readonly assignAfterMs: number;
  readonly ownerLeaseMs: number;
  /** Most voters of the metadata group. */
  readonly voters: number;
  readonly logLevel: LogLevel;
}
