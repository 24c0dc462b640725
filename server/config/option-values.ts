/**
 * How the values of options are read: each reader takes what a flag, an environment variable or a configuration file has,
 * and throws an Error that completes "--name: ...". Which option has which reader: options.ts.
 */
import { isIPv4, isIPv6 } from 'node:net';
import type { Policy } from '../../core/metadata/state.js';
import { POLLING, type Polling } from '../../core/polling.js';
import { DEVICES_MAX, TRANSPORT_CHOICES, type TransportChoice } from '../../core/providers.js';
import type { HugePages } from '../../native/data-plane.js';
import { parseDuration, parseHostPort, type HostPort } from './units.js';

type Reader<T> = (value: unknown) => T;

export function text(value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number') throw new Error('expected text');
  const t = String(value);
  if (t === '') throw new Error('is empty');
  return t;
}

export function flag(value: unknown): boolean {
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

export function within(
  min: number,
  max: number,
  read: Reader<number>,
  unit = '',
  say: (n: number) => string = String,
): Reader<number> {
  return (value) => {
    const n = read(value);
    if (!Number.isSafeInteger(n) || n < min || n > max)
      throw new Error(`must be from ${say(min)} to ${say(max)}${unit}, not ${String(value)}`);
    return n;
  };
}

export function integer(value: unknown): number {
  return /^\d+$/.test(String(value).trim()) ? Number(value) : NaN;
}

function oneOf<T extends string>(choices: readonly T[]): Reader<T> & { readonly choices: readonly T[] } {
  const read = (value: unknown): T => {
    const known = choices.find((one) => one === value);
    if (known === undefined) throw new Error(`"${String(value)}" is none of ${choices.join(', ')}`);
    return known;
  };
  return Object.assign(read, { choices });
}

function label(what: string): Reader<string> {
  return (value) => {
    const name = text(value);
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(name))
      throw new Error(`"${name}" is not a ${what}: letters, digits, . _ -, at most 63`);
    return name;
  };
}

export const identifier = label('server id');
export const zoneLabel = label('zone');

export interface PeerAddress {
  readonly id: string;
  readonly address: string;
}

/**
 * `s1=host:port,s2=host:port`, a list of such, or a map of id to address or addresses. The same id may come several
 * times.
 */
export function peers(value: unknown): PeerAddress[] {
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

export function joinAddresses(value: unknown): string[] {
  const all = items(value).map((one) => {
    if (parseHostPort(one).port === 0) throw new Error(`"${one}": the port must be known`);
    return one;
  });
  if (all.length === 0) throw new Error('is empty');
  return all;
}

/** Names of RDMA devices. */
export function devices(value: unknown): string[] {
  const all = [...new Set(items(value))];
  if (all.length === 0) throw new Error('is empty');
  if (all.length > DEVICES_MAX) throw new Error(`at most ${DEVICES_MAX} devices`);
  return all;
}

export function listens(value: unknown): HostPort[] {
  const all = items(value).map(parseHostPort);
  if (all.length === 0) throw new Error('is empty');
  return all;
}

/** Host names and IP addresses, without ports; brackets around IPv6 may be left out. */
export const hosts = (value: unknown): string[] => items(value).map(host);

export function host(item: string): string {
  const name = /^\[(.+)\]$/.exec(item)?.[1] ?? item;
  if (!/^[A-Za-z0-9.-]+$/.test(name) && !/^[0-9a-fA-F:.]+(%[\w.-]+)?$/.test(name))
    throw new Error(`"${item}" is not a host name or IP address (without a port)`);
  if (/^[^:]+:\d+$/.test(name)) throw new Error(`"${item}": hosts are given without ports`);
  if (/^\d+(\.\d+){3}$/.test(name) && !isIPv4(name)) throw new Error(`"${item}" is not an IPv4 address`);
  if (name.includes(':') && !isIPv6(name)) throw new Error(`"${item}" is not an IPv6 address`);
  return name;
}

const transport = oneOf(TRANSPORT_CHOICES);
export const transports = (value: unknown): TransportChoice[] => items(value).map(transport);

export const level = oneOf(['debug', 'info', 'warn', 'error']);
export const logFormat = oneOf(['text', 'json']);
export const replicationLevel = oneOf<Policy['level']>(['cache', 'replicated', 'durable']);
export const polling = oneOf<Polling>(POLLING);

const syncMs = within(10, 10_000, parseDuration, ' ms');
/** Milliseconds between syncs; 0: always. */
export const sync: Reader<number> = (value) => (value === 'always' ? 0 : syncMs(value));

export const hugePages = oneOf<HugePages>(['auto', 'off', 'require']);
