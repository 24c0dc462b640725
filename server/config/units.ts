/**
 * Durations and addresses as people write them. Each parser throws a plain Error whose text completes "--listen: ...".
 * Not for: sizes (core/size.ts).
 */

export { DEFAULT_PORT, formatHostPort, parseHostPort, type HostPort } from '../../core/address.js';

const DURATION_UNITS: Readonly<Record<string, number>> = { '': 1, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

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
