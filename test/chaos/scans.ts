/**
 * Whether a scan of a namespace, or of a prefix, gave every key that was there throughout, and a count counted as many
 * at least. That a key was there is known only where an answered write was over before the scan began, and no other
 * change, and no permitted loss, can lie between that write and the scan's end.
 *
 * A count is at most twice the keys that may have been there, since one may count twice while an index shrinks. A key
 * was not there where nobody wrote it between its absence, which an answer told before the count, and the count's end.
 */
import { lookAt } from './expiry.js';
import { classOf, keyOfId } from './keys.js';
import { isOpen, written, type Loss, type Operation } from './operation.js';
import type { OfSpace, Recorded, Scan } from './recorded.js';

type Say = (what: string, fromNs: number, toNs: number) => void;

/** `lossesOf`: those of a shard. */
export function checkScans(record: Recorded, lossesOf: (shard: number) => readonly Loss[], say: Say): void {
  for (const scan of record.scans) {
    const missing = thereThroughout(record, lossesOf, scan).filter(({ key }) => !scan.keys.has(key));
    if (missing.length > 0)
      say(
        `${scan.by}: a scan of ${nameOf(scan)} gave ${scan.keys.size} keys, and not ${missing.length} that were there throughout: ${firstOf(missing)}`,
        scan.call,
        scan.end,
      );
  }
  const expiring = new Map<string, (look: Operation) => string | undefined>();
  for (const count of record.spaceCounts) {
    const there = thereThroughout(record, lossesOf, count);
    if (count.count < there.length)
      say(
        `${count.by}: ${count.count} keys were counted in ${nameOf(count)}, and ${there.length} were there throughout: ${firstOf(there)}`,
        count.call,
        count.end,
      );
    if (count.count <= 2 * there.length) continue;
    const most = 2 * keysThatMay(record, count, expiring);
    if (count.count > most)
      say(
        `${count.by}: ${count.count} keys were counted in ${nameOf(count)}, and only ${most / 2} may have been there`,
        count.call,
        count.end,
      );
  }
}

const nameOf = ({ space, prefix }: OfSpace): string =>
  `namespace ${space}${prefix === undefined ? '' : `, prefix ${JSON.stringify(prefix)}`}`;
const firstOf = (keys: readonly { readonly key: string; readonly value: string }[]): string =>
  keys
    .slice(0, 5)
    .map(({ key, value }) => `${key} with ${value}`)
    .join(', ');

const isOf = (key: string, { space, prefix }: OfSpace): boolean =>
  key.startsWith(`${space}:`) &&
  (prefix === undefined || keyOfId(key).bytes.toString('latin1', 0, prefix.length) === prefix);

function thereThroughout(
  record: Recorded,
  lossesOf: (shard: number) => readonly Loss[],
  asked: OfSpace,
): { readonly key: string; readonly value: string }[] {
  return [...record.keys].flatMap(([key, { shard, operations }]) => {
    if (!isOf(key, asked) || classOf(key) === 't') return [];
    const value = presentThroughout(operations, lossesOf(shard), asked);
    return value === undefined ? [] : [{ key, value }];
  });
}

function keysThatMay(
  record: Recorded,
  asked: OfSpace,
  expiring: Map<string, (look: Operation) => string | undefined>,
): number {
  let keys = 0;
  for (const [key, { operations }] of record.keys) {
    if (!isOf(key, asked)) continue;
    const of = classOf(key);
    if (of === 't') {
      const look = expiring.get(key) ?? lookAt(operations);
      expiring.set(key, look);
      if (look({ kind: 'has', call: asked.call, end: asked.end, by: asked.by }) === undefined) keys++;
      // Tiny values have no history.
    } else if (of === 'y' || mayBePresent(operations, asked)) keys++;
  }
  return keys;
}

/** Whether the key may have been there at some time of a scan. */
export function mayBePresent(operations: readonly Operation[], scan: Pick<Scan, 'call' | 'end'>): boolean {
  let absent = -Infinity;
  for (const o of operations) if (o.end < scan.call && showsAbsent(o)) absent = Math.max(absent, o.call);
  return operations.some((o) => mayStore(o) && o.call <= scan.end && o.end >= absent);
}

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
/** It may have made the key be there. */
export const mayStore = (o: Operation): boolean => stores(o) || (isOpen(o) && written(o) !== undefined);
/** After it, or in it, the key was absent. */
const showsAbsent = (o: Operation): boolean =>
  (o.kind === 'get' && o.value === undefined) ||
  (o.kind === 'delete' && o.outcome !== 'no-effect' && o.outcome !== 'open') ||
  (o.kind === 'swap' &&
    typeof o.outcome === 'object' &&
    (o.outcome.swapped ? o.value === undefined : o.outcome.version === 0n));
