/**
 * A deleteMany says how many of its keys were there, not which. At least those that were there whatever the order, at
 * most those that may have been. Where it says just the one or the other, it is known of each key, and its delete says
 * so from then on to the search of the key's history.
 */
import { lookAt } from './expiry.js';
import { classOf } from './keys.js';
import type { Loss, Operation } from './operation.js';
import type { Deletes, Recorded } from './recorded.js';
import { mayBePresent, mayStore, presentThroughout } from './scans.js';

/** Of one key: how often it was there at least, and at most. */
interface Bounds {
  readonly least: number;
  readonly most: number;
}

/** Answers with what is wrong, and makes the outcomes of deletes known in the record. */
export function resolveDeletes(
  record: Recorded,
  lossesOf: (shard: number) => readonly Loss[],
  say: (what: string, fromNs: number, toNs: number) => void,
): void {
  for (const some of record.deletes) {
    const times = new Map<string, number>();
    for (const key of some.keys) times.set(key, (times.get(key) ?? 0) + 1);
    const bounds = new Map([...times].map(([key, n]) => [key, boundsOf(record, lossesOf, some, key, n)]));
    const least = sum(bounds, 'least');
    const most = sum(bounds, 'most');
    if (some.found < least || some.found > most)
      say(
        `${some.by}: ${some.found} of ${some.keys.length} keys were there when they were deleted, and ${least} to ${most} can have been`,
        some.call,
        some.end,
      );
    else if (some.found === least || some.found === most)
      for (const [key, bound] of bounds)
        know(record, some, key, some.found === least ? bound.least : bound.most, times.get(key) ?? 0);
  }
}

const sum = (bounds: ReadonlyMap<string, Bounds>, of: keyof Bounds): number =>
  [...bounds.values()].reduce((all, bound) => all + bound[of], 0);

const isOf = (o: Operation, { by, call }: Deletes): boolean => o.kind === 'delete' && o.by === by && o.call === call;

/** `times`: how often the key is named. It is there more than once only where somebody writes it meanwhile. */
function boundsOf(
  record: Recorded,
  lossesOf: (shard: number) => readonly Loss[],
  some: Deletes,
  key: string,
  times: number,
): Bounds {
  const { shard, operations } = record.keys.get(key) ?? { shard: 0, operations: [] };
  const of = classOf(key);
  // Tiny values have no history.
  if (of === 'y') return { least: 0, most: times };
  const others = operations.filter((o) => !isOf(o, some));
  const least = of !== 't' && presentThroughout(others, lossesOf(shard), some) !== undefined ? 1 : 0;
  const may = of === 't' ? lookAt(others)({ kind: 'has', ...some }) === undefined : mayBePresent(others, some);
  const again = times > 1 && others.some((o) => mayStore(o) && o.call <= some.end && o.end >= some.call);
  return { least, most: may ? (again ? times : 1) : 0 };
}

/** So often of so many times there was something. Of some of them nobody knows which. */
function know(record: Recorded, some: Deletes, key: string, found: number, times: number): void {
  if (found !== 0 && found !== times) return;
  const operations = record.keys.get(key)?.operations ?? [];
  for (const [i, o] of operations.entries())
    if (o.kind === 'delete' && isOf(o, some)) operations[i] = { ...o, outcome: found === 0 ? 'absent' : 'deleted' };
}
