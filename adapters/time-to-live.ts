/** Times to live as hosts give them, and as farkv takes them: whole milliseconds, from one to `TTL_MAX`. */
import { TTL_MAX } from '../client/arguments.js';
import { argumentError } from '../client/errors.js';

/**
 * What put takes: nothing for an entry that stays. One whose time is over already is there for a millisecond. Hosts give
 * more than the owner takes, as a cookie does that ends in the year 9999.
 */
export function writeOptions(ttlMs: unknown): { readonly ttlMs?: number } {
  if (ttlMs === undefined || ttlMs === null) return {};
  if (typeof ttlMs !== 'number') throw argumentError('a time to live is a number');
  if (Number.isNaN(ttlMs) || ttlMs === Number.POSITIVE_INFINITY) return {};
  return { ttlMs: Math.min(TTL_MAX, Math.max(1, Math.ceil(ttlMs))) };
}
