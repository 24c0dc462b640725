/**
 * What connect() is told, checked and with its defaults. Addresses are `host:port`, `[ipv6]:port` or
 * `farkv://[token@]host:port[,host:port...]` (`farkvs://` for TLS), with options after a `?`:
 * farkv://db1,db2:7401?transport=tcp&strict=true.
 */
import { parseClusterAddress, parseServerAddress, type ClusterAddress, type HostPort } from '../core/address.js';
import { unknownName } from '../core/nearest.js';
import { isPolling, POLLING, type Polling } from '../core/polling.js';
import { trustSource, type Trust, type TrustSource } from '../net/tls.js';
import { ownSignal } from './abort-watch.js';
import { FarkvError, textOfError } from './errors.js';
import { isTransportChoice, TRANSPORT_CHOICES, type TransportChoice } from '../core/providers.js';
import type { Transport } from './transport.js';

/** What happens to a client's connections; for logs. Never contains keys, values, tokens or rkeys. */
export type ClientEvent =
  | { readonly type: 'transport'; readonly transport: Transport }
  | { readonly type: 'control'; readonly server: string; readonly connected: boolean; readonly reason?: string }
  | { readonly type: 'map'; readonly mapEpoch: number }
  /**
   * What a transport of this client says: why a device cannot be used, or a connection was given up. At most 20 in 10 s;
   * `omitted`: so many before this one were left out.
   */
  | {
      readonly type: 'log';
      readonly level: 'error' | 'warn' | 'info';
      readonly message: string;
      readonly omitted: number;
    };

/**
 * One server or several, each as the top of this file says; one that answers is enough, the others are learned from it.
 */
export type Servers = string | readonly string[];

export interface ConnectOptions {
  readonly servers: Servers;
  readonly token?: string;
  readonly tls?: boolean | Trust;
  readonly transport?: TransportChoice;
  /** Do not fall back to another transport than the one asked for (with auto: than the best one possible). */
  readonly strict?: boolean;
  /** Of each operation that says nothing else, milliseconds; default 5,000. See `timeoutMs` of ReadOptions. */
  readonly timeoutMs?: number;
  /**
   * How long operations wait for a shard that nobody answers for, milliseconds, from 1 on; default 3,000, in which
   * another server usually has taken it over. Then they end with ERR_SHARD_UNAVAILABLE, and later ones do so at once,
   * until an owner answers. Infinity: each waits for it until its own time is over.
   */
  readonly unavailableAfterMs?: number;
  /** Of connect() itself, milliseconds; default 10,000. */
  readonly connectTimeoutMs?: number;
  /** 0 to 65535; default 0. */
  readonly namespace?: number;
  /**
   * Operations that the native side works on at once, 1 to 65,536; default 4,096. More wait. Batches of GETs, and batches
   * of changes, have about a third of these places each.
   */
  readonly maxOutstanding?: number;
  /**
   * Calls for single keys that may wait; more end with ERR_BUSY. Default 1,048,576. What a batch has not handed over yet
   * does not count.
   */
  readonly maxQueued?: number;
  /**
   * Whether the client looks for answers before the event loop goes on. `auto`: for up to 50 us at a time, as long as
   * they come within that time and nobody else needs the processor. `always`: until the first is there, for up to 100
   * ms at a time. `never`: the event loop sleeps at once.
   */
  readonly polling?: Polling;
  /**
   * Entries whose place in the owner's memory is kept, so that a GET over tcp or verbs takes one READ and not two: 0
   * (none) to 268,435,456; default 262,144. Each takes 16 bytes, once it is used. Over shm, where a GET looks into the
   * memory itself, none is used.
   */
  readonly cachedLocations?: number;
  /** `metrics()` has how long calls of this client take: one in 1,024 of the process is timed. Default: false. */
  readonly latencies?: boolean;
  /** What it throws is an uncaught exception; the client goes on. */
  readonly onEvent?: (event: ClientEvent) => void;
  /** Ends connect(). */
  readonly signal?: AbortSignal;
}

export interface Settings {
  readonly servers: readonly string[];
  readonly token: string | undefined;
  readonly tls: TrustSource | undefined;
  readonly transport: TransportChoice;
  readonly strict: boolean;
  readonly timeoutMs: number;
  readonly unavailableAfterMs: number;
  readonly connectTimeoutMs: number;
  readonly namespace: number;
  readonly maxOutstanding: number;
  readonly maxQueued: number;
  readonly polling: Polling;
  readonly cachedLocations: number;
  readonly latencies: boolean;
  readonly onEvent: (event: ClientEvent) => void;
  readonly signal: AbortSignal | undefined;
}

/** What may stand behind the `?` of an address. */
export const IN_ADDRESS: readonly string[] = [
  'transport',
  'strict',
  'timeoutMs',
  'unavailableAfterMs',
  'connectTimeoutMs',
  'namespace',
  'maxOutstanding',
  'maxQueued',
  'polling',
  'cachedLocations',
];
/** The names of what connect() takes. */
export const CONNECT_OPTIONS: readonly string[] = [
  'servers',
  'token',
  'tls',
  ...IN_ADDRESS,
  'latencies',
  'onEvent',
  'signal',
  'codec',
];

function bad(text: string): FarkvError {
  return new FarkvError('ERR_CONFIG', text);
}

function asAddress<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof FarkvError) throw cause;
    throw new FarkvError('ERR_ADDRESS_INVALID', textOfError(cause), { cause });
  }
}

/** host and port of an address; the port may be left out. Throws ERR_ADDRESS_INVALID. */
export function parseServer(text: string): HostPort {
  return asAddress(() => {
    const address = parseServerAddress(text);
    if (address.port > 0) return address;
    throw new Error(`"${text}" has port 0, where nobody can listen`);
  });
}

/** The parts of a farkv:// address; other texts are lists of host:port. */
function readAddress(text: string): ClusterAddress {
  const address = asAddress(() => parseClusterAddress(text, parseServer));
  for (const name of address.query.keys())
    if (!IN_ADDRESS.includes(name)) throw bad(unknownName('option in the address', name, IN_ADDRESS));
  return address;
}

function integer(name: string, value: unknown, low: number, high: number, byDefault: number): number {
  if (value === undefined) return byDefault;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < low || value > high)
    throw bad(`${name} is an integer from ${low} to ${high}`);
  return value;
}

function signalOf(value: unknown): AbortSignal {
  try {
    return ownSignal(value);
  } catch (cause) {
    throw new FarkvError('ERR_CONFIG', 'signal is an AbortSignal', { cause });
  }
}

/** What it throws is the program's own uncaught exception: the client is in the middle of something else. */
function listenerOf(onEvent: Settings['onEvent'] | undefined): Settings['onEvent'] {
  if (onEvent === undefined) return () => undefined;
  return (event) => {
    try {
      onEvent(event);
    } catch (error) {
      process.nextTick(() => {
        throw error;
      });
    }
  };
}

function fromText(name: string, text: string): unknown {
  if (name === 'transport' || name === 'polling') return text;
  if (name === 'strict') return text === 'true' ? true : text === 'false' ? false : text;
  return text === '' ? Number.NaN : Number(text);
}

/** Throws ERR_CONFIG and ERR_ADDRESS_INVALID. */
export function parseOptions(given: Servers | ConnectOptions): Settings {
  // Types promise nothing to a program in JavaScript.
  const direct = (typeof given === 'string' || Array.isArray(given) ? { servers: given } : given) as unknown;
  if (typeof direct !== 'object' || direct === null)
    throw bad('connect takes an address, an array of addresses, or an object of options');
  for (const name of Object.keys(direct))
    if (!CONNECT_OPTIONS.includes(name)) throw bad(unknownName('option', name, CONNECT_OPTIONS));
  const { servers } = direct as { readonly servers?: unknown };
  const texts: unknown[] = Array.isArray(servers) ? servers : [servers];
  if (texts.length === 0 || !texts.every((text) => typeof text === 'string'))
    throw bad('servers: an address or a list of addresses is needed');
  const addresses = texts.map(readAddress);
  const merged: Record<string, unknown> = {};
  for (const { query, token, tls } of addresses) {
    for (const [name, text] of query) merged[name] = fromText(name, text);
    if (token !== undefined) merged.token = token;
    if (tls !== undefined) merged.tls = tls;
  }
  for (const [name, value] of Object.entries(direct as Record<string, unknown>))
    if (value !== undefined) merged[name] = value;
  return check(merged, [...new Set(addresses.flatMap(({ servers }) => servers))]);
}

function check(o: Readonly<Record<string, unknown>>, servers: readonly string[]): Settings {
  const { token, transport = 'auto', polling = 'auto', strict = false, latencies = false, onEvent, signal, tls } = o;
  if (token !== undefined && (typeof token !== 'string' || token === '' || token.length > 1024))
    throw bad('token is a text of at most 1024 characters');
  if (!isTransportChoice(transport)) throw bad(`transport is one of ${TRANSPORT_CHOICES.join(', ')}`);
  if (typeof latencies !== 'boolean') throw bad('latencies is true or false');
  if (!isPolling(polling)) throw bad(`polling is one of ${POLLING.join(', ')}`);
  if (typeof strict !== 'boolean') throw bad('strict is true or false');
  if (onEvent !== undefined && typeof onEvent !== 'function') throw bad('onEvent is a function');
  if (tls !== undefined && typeof tls !== 'boolean' && (typeof tls !== 'object' || tls === null))
    throw bad('tls is true, false or an object { ca, cert, key, caFile, certFile, keyFile, servername }');
  return {
    servers,
    token,
    tls: tls === undefined || tls === false ? undefined : trustSource(tls === true ? {} : tls),
    transport,
    strict,
    timeoutMs: integer('timeoutMs', o.timeoutMs, 1, 2 ** 31 - 1, 5000),
    unavailableAfterMs:
      o.unavailableAfterMs === Number.POSITIVE_INFINITY
        ? o.unavailableAfterMs
        : integer('unavailableAfterMs', o.unavailableAfterMs, 1, 2 ** 31 - 1, 3000),
    connectTimeoutMs: integer('connectTimeoutMs', o.connectTimeoutMs, 1, 2 ** 31 - 1, 10_000),
    namespace: integer('namespace', o.namespace, 0, 65_535, 0),
    maxOutstanding: integer('maxOutstanding', o.maxOutstanding, 1, 65_536, 4096),
    maxQueued: integer('maxQueued', o.maxQueued, 0, 2 ** 31 - 1, 1 << 20),
    polling,
    latencies,
    cachedLocations: integer('cachedLocations', o.cachedLocations, 0, 2 ** 28, 2 ** 18),
    onEvent: listenerOf(onEvent as Settings['onEvent'] | undefined),
    signal: signal === undefined ? undefined : signalOf(signal),
  };
}
