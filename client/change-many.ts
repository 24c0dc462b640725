/**
 * putMany and deleteMany: plain items cross together (batch-changes.ts); those with a time to live or flags, those that
 * a signal may end, and those for which there is no room go the way of a put or delete, in order.
 */
import { checkItems, checkKeys, type ReadOptions, type WriteOptions } from './arguments.js';
import type { BatchFailure } from './batch.js';
import type { PutBatch } from './batch-changes.js';
import { batchError } from './batch-reads.js';
import { encodeWith, type Codec } from './codec.js';
import { argumentError } from './errors.js';
import type { Limits } from './operations.js';
import type { Key } from './pending.js';

/** One item of putMany. */
export interface PutItem<In> {
  readonly key: Key;
  readonly value: In;
  readonly ttlMs?: number;
  readonly flags?: number;
}

/** How items are put. */
export interface PutWays<In> {
  readonly codec: Codec<In, unknown>;
  /** In one crossing; `single` is called for each that is to go alone. */
  readonly together: (batch: PutBatch, single: (i: number) => void) => Promise<BatchFailure[]>;
  readonly alone: (key: Key, value: In, options: WriteOptions) => Promise<void>;
}

/** Rejects when one failed, after all have ended. */
export async function putItems<In>(items: Iterable<PutItem<In>>, limits: Limits, ways: PutWays<In>): Promise<void> {
  checkItems(items);
  const all = Array.isArray(items) ? (items as readonly PutItem<In>[]) : [...items];
  const failures: BatchFailure[] = [];
  const singles: Promise<unknown>[] = [];
  const single = (index: number): void => {
    const item = all[index];
    if (typeof item !== 'object' || (item as unknown) === null)
      throw argumentError('putMany takes objects { key, value }');
    const put = ways.alone(item.key, item.value, { ...limitsOf(limits), ...storedOf(item) });
    singles.push(put.catch((error: unknown) => failures.push({ index, error })));
  };
  if (limits.signal === undefined && all.every(isPlain)) {
    const { keys, values, places } = encodeAll(ways.codec, all, failures);
    const batch = ways.together({ keys, values }, (i) => single(places[i] ?? -1));
    for (const { index, error } of await batch) failures.push({ index: places[index] ?? -1, error });
  } else {
    for (let i = 0; i < all.length; i++) single(i);
  }
  await Promise.all(singles);
  if (failures.length > 0) throw batchError(failures, all.length);
}

/** How keys are deleted. */
export interface DeleteWays {
  /** In one crossing; `found` is called for each that was there, `single` for each that is to go alone. */
  readonly together: (keys: readonly Key[], found: () => void, single: (i: number) => void) => Promise<BatchFailure[]>;
  readonly alone: (key: Key, options: ReadOptions) => Promise<boolean>;
}

/** How many were there. Rejects when one failed, after all have ended. */
export async function deleteKeys(given: readonly Key[], limits: Limits, ways: DeleteWays): Promise<number> {
  checkKeys(given);
  const keys = given.slice();
  const failures: BatchFailure[] = [];
  const singles: Promise<unknown>[] = [];
  let deleted = 0;
  const found = (): void => {
    deleted++;
  };
  const single = (index: number): void => {
    const ended = ways.alone(keys[index] ?? '', limitsOf(limits)).then((was) => (was ? found() : undefined));
    singles.push(ended.catch((error: unknown) => failures.push({ index, error })));
  };
  if (limits.signal === undefined) failures.push(...(await ways.together(keys, found, single)));
  else for (let i = 0; i < keys.length; i++) single(i);
  await Promise.all(singles);
  if (failures.length > 0) throw batchError(failures, keys.length);
  return deleted;
}

/** What cannot be encoded is a failure; places[i] is the item of keys[i]. */
function encodeAll<In>(
  codec: Codec<In, unknown>,
  items: readonly PutItem<In>[],
  failures: BatchFailure[],
): { keys: Key[]; values: Uint8Array[]; places: number[] } {
  const keys: Key[] = [];
  const values: Uint8Array[] = [];
  const places: number[] = [];
  for (const [index, { key, value }] of items.entries()) {
    try {
      values.push(encodeWith(codec, value));
      keys.push(key);
      places.push(index);
    } catch (error) {
      failures.push({ index, error });
    }
  }
  return { keys, values, places };
}

/** True if the item has only `key` and `value`. Throws if it is not an object. */
function isPlain(item: unknown): boolean {
  if (typeof item !== 'object' || item === null) throw argumentError('putMany takes objects { key, value }');
  return !('ttlMs' in item && item.ttlMs !== undefined) && !('flags' in item && item.flags !== undefined);
}

/** The options that say so again, for an operation by itself. */
function limitsOf({ timeoutMs, signal }: Limits): ReadOptions {
  return signal === undefined ? { timeoutMs } : { timeoutMs, signal };
}

function storedOf<In>({ ttlMs, flags }: PutItem<In>): Pick<WriteOptions, 'ttlMs' | 'flags'> {
  return { ...(ttlMs === undefined ? {} : { ttlMs }), ...(flags === undefined ? {} : { flags }) };
}
