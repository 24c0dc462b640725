/**
 * Sizes, durations and addresses as people write them. Each parser throws a plain Error whose text completes "--memory:
 * ...".
 */

export { DEFAULT_PORT, formatHostPort, parseHostPort, type HostPort } from '../../core/address.js';

const SIZE_UNITS: Readonly<Record<string, number>> = { '': 1, b: 1, k: 1 << 10, m: 1 << 20, g: 1 << 30, t: 2 ** 40 };
const DURATION_UNITS: Readonly<Record<string, number>> = { '': 1, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** `64mb`, `1gb`, `1.5g`, `4096`: units are powers of 1,024. */
export function parseSize(value: unknown): number {
  const match = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(String(value).trim());
  const bytes = match === null ? NaN : Number(match[1]) * (SIZE_UNITS[(match[2] ?? '').toLowerCase()] ?? NaN);
  if (!Number.isFinite(bytes) || bytes > Number.MAX_SAFE_INTEGER)
    throw new Error(`"${String(value)}" is not a size such as 64mb or 1gb`);
  return Math.floor(bytes);
}

export function formatSize(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let n = bytes;
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit += 1;
  }
  return `${unit === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[unit] ?? ''}`;
}

const DURATIONS = [
  { unit: 'ns', ns: 1 },
  { unit: 'µs', ns: 1000 },
  { unit: 'ms', ns: 1e6 },
  { unit: 's', ns: 1e9 },
  { unit: 'min', ns: 60e9 },
  { unit: 'h', ns: 3600e9 },
  { unit: 'd', ns: 86_400e9 },
] as const;

/** Of nanoseconds: `1.23 ms`, `47 s`, `3.5 h`. */
export function formatDuration(ns: number): string {
  const { unit, ns: from } = DURATIONS.findLast((one) => ns >= one.ns) ?? DURATIONS[0];
  const value = ns / from;
  return `${value >= 100 ? value.toFixed(0) : Number(value.toPrecision(3))} ${unit}`;
}

/** `1500`, `1500ms`, `2s`, `1m`: milliseconds. */
export function parseDuration(value: unknown): number {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h)?$/i.exec(String(value).trim());
  const ms = match === null ? NaN : Number(match[1]) * (DURATION_UNITS[(match[2] ?? '').toLowerCase()] ?? NaN);
  if (!Number.isFinite(ms)) throw new Error(`"${String(value)}" is not a time such as 500ms or 2s`);
  return Math.round(ms);
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host) || /^::ffff:127\./i.test(host);
}

export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}
