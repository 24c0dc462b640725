/** Sizes as people write and read them, in powers of 1,024. */

const UNITS: Readonly<Record<string, number>> = { '': 1, b: 1, k: 1 << 10, m: 1 << 20, g: 1 << 30, t: 2 ** 40 };

/** `64mb`, `1gb`, `1.5g`, `4096`. Throws a plain Error whose text completes "--memory: ...". */
export function parseSize(value: unknown): number {
  const match = /^(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/i.exec(String(value).trim());
  const bytes = match === null ? NaN : Number(match[1]) * (UNITS[(match[2] ?? '').toLowerCase()] ?? NaN);
  if (!Number.isFinite(bytes) || bytes > Number.MAX_SAFE_INTEGER)
    throw new Error(`"${String(value)}" is not a size such as 64mb or 1gb`);
  return Math.floor(bytes);
}

/** `1023 B`, `1.5 MiB`, `200 GiB`. */
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
