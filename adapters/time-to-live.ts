/** Times to live as hosts give them, and as farkv takes them: whole milliseconds, from one to `TTL_MS_MAX`. */

/** The owner refuses more (`FKV_TTL_MAX`). Hosts give more, as a cookie does that ends in the year 9999. */
const TTL_MS_MAX = 2 ** 46;

/** What put takes: nothing for an entry that stays. One whose time is over already is there for a millisecond. */
export function writeOptions(ttlMs: number | null | undefined): { readonly ttlMs?: number } {
  if (ttlMs === undefined || ttlMs === null || Number.isNaN(ttlMs) || ttlMs === Number.POSITIVE_INFINITY) return {};
  return { ttlMs: Math.min(TTL_MS_MAX, Math.max(1, Math.ceil(ttlMs))) };
}
