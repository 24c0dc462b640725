/** What a server is told, complete and checked: the result of load.ts, and what the node's thread is started with. */
import type { LogLevel } from '../../core/log-level.js';
import type { Policy, Provider } from '../../core/metadata/state.js';
import type { FieldSettings } from './options.js';
import type { SecretSource } from './secret-file.js';
import type { HostPort } from './units.js';

export interface Peer {
  readonly id: string;
  /** Of its port between servers, in the order in which they are tried. */
  readonly addresses: readonly string[];
}

export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca?: string;
  /** Of the certificate's role name: certificates of this cluster that `ca` signed open their roles. */
  readonly cluster?: string;
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

/** The tokens by role, and certificates; without either, whoever can connect may do everything. Tenants: those beside the default one. */
export interface AccessSettings {
  readonly writer?: SecretSource;
  readonly reader?: SecretSource;
  readonly operator?: SecretSource;
  readonly monitor?: SecretSource;
  readonly peer?: SecretSource;
  /** The cluster whose certificates open their roles; undefined: certificates open nothing. */
  readonly cluster?: string;
  readonly tenants: readonly Pick<TenantSettings, 'name' | 'maxClients' | 'writer' | 'reader'>[];
}

export type { LogLevel };
export type LogFormat = 'text' | 'json';

/**
 * Settings that no operator could choose better, so that they are neither flags nor options of startServer. A test may
 * give others to startWith.
 */
export interface FixedSettings {
  /** A bound on how much the clocks of two machines may differ in rate, parts per million. */
  readonly driftPpm: number;
  /** A control connection without a hello is closed after this. */
  readonly handshakeMs: number;
  /** So long a new cluster waits for all its servers before it gives the shards to those that joined. */
  readonly assignAfterMs: number;
  /** Between two looks at all memory of a copy, which find bits that have changed by themselves. */
  readonly scrubMs: number;
}
/** A quartz is off by 100 ppm at most, and NTP slews a clock by 500 more. */
export const FIXED: FixedSettings = { driftPpm: 1000, handshakeMs: 5000, assignAfterMs: 10_000, scrubMs: 300_000 };

/** The first data port is the control port and this, unless it is given. */
export const DATA_PORT_OFFSET = 1000;

/** Thread n of a data plane listens at a port + n for tcp, and for verbs at that port + this + n. */
export const VERBS_PORT_OFFSET = 100;
/** More threads a data plane does not have. */
export const DATA_PLANE_THREADS_MAX = 64;
/** Ports from the first one on that a data plane may use. */
export const DATA_PORTS = VERBS_PORT_OFFSET + DATA_PLANE_THREADS_MAX;

/** FieldSettings are the options that are taken as they are read (options.ts); here are those that others decide too. */
export interface ServerSettings extends FixedSettings, FieldSettings {
  readonly id: string;
  /** Where other servers reach this one. */
  readonly peerListen: readonly HostPort[];
  /** Hosts that others should use instead of those listened on; empty: the same. */
  readonly advertise: readonly string[];
  readonly fabricListen: readonly HostPort[];
  /** For browsers and Prometheus; empty: nowhere. */
  readonly httpListen: readonly HostPort[];
  /** The devices of verbs, the preferred one first; undefined: by address. */
  readonly rdmaDevices?: readonly string[];
  /** All voters of the metadata group, this one among them, sorted by id. */
  readonly peers: readonly Peer[];
  /** Servers of the cluster that this one is to come to; empty: it is one of the first. */
  readonly join: readonly string[];
  /** Read when it asks for its place, and not again. */
  readonly joinToken?: SecretSource;
  readonly transports: readonly Provider[];
  /** True when --transport was `auto`: what this machine has not is left out without an error. */
  readonly transportAuto: boolean;
  /** For values; 0: it is a witness. */
  readonly memoryBytes: number;
  /** Of the default tenant. */
  readonly shards: number;
  /** Sorted by name. */
  readonly tenants: readonly TenantSettings[];
  readonly access: AccessSettings;
  readonly tls?: TlsFiles;
  /** So long a server that ends waits until others have its shards. */
  readonly drainMs: number;
  readonly tickMs: number;
  /** Of a cluster that this server makes. */
  readonly level: Policy['level'];
  /** What was given, not a default. */
  readonly levelAsked?: Policy['level'];
  /** Durable values are on the disk about so long after they are answered; 0: before. */
  readonly syncMs: number;
  /** Most voters of the metadata group. */
  readonly voters: number;
  /** While this server leads, a voter that is dead for so long loses its vote to a learner; Infinity: never. */
  readonly replaceVoterMs: number;
}
