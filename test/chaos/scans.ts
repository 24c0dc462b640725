/**
 * Whether a scan of a whole namespace gave every key that was there throughout. That a key was there is known only
 * where an answered write was over before the scan began, and no other change, and no permitted loss, can lie between
 * that write and the scan's end.
 */
import { written, type Loss, type Operation } from './operation.js';
import type { Scan } from './recorded.js';

/**
 * The value of a key that was present from the scan's first page to its last, for certain; undefined: nobody can say.
 */
export function presentThroughout(
  operations: readonly Operation[],
  losses: readonly Loss[],
  scan: Pick<Scan, 'call' | 'end'>,
): string | undefined {
  let last: Operation | undefined;
  for (const o of operations) if (stores(o) && o.end < scan.call && (last === undefined || o.end > last.end)) last = o;
  if (last === undefined) return undefined;
  const { call } = last;
  const between = (o: Operation): boolean => o.call <= scan.end && o.end >= call;
  if (operations.some((o) => takesAway(o) && between(o)) || losses.some(between)) return undefined;
  return written(last);
}

const stores = (o: Operation): boolean =>
  (o.kind === 'put' && o.outcome === 'stored') ||
  (o.kind === 'swap' && o.value !== undefined && typeof o.outcome === 'object' && o.outcome.swapped);
const takesAway = (o: Operation): boolean =>
  (o.kind === 'delete' && o.outcome !== 'no-effect' && o.outcome !== 'absent') ||
  (o.kind === 'swap' &&
    o.value === undefined &&
    o.outcome !== 'no-effect' &&
    (o.outcome === 'open' || o.outcome.swapped));
