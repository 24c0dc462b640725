/**
 * `farkv/unstorage`: a driver of unstorage, which Nitro and Nuxt use too.
 *
 *     const storage = createStorage({ driver: farkvDriver({ source: '127.0.0.1:7400' }) });
 *
 * unstorage's key `a:b` is `unstorage:a:b` in farkv. Values are bytes (codec `buffer`): the text that unstorage makes of
 * an item, or the raw item. Times to live are seconds, as in unstorage's own drivers.
 */
import { types } from 'node:util';
import type { Driver } from 'unstorage';
import { argumentError, guarded, guardedNow } from '../client/errors.js';
import type { BufferValue } from '../client/codec.js';
import type { Keyspace } from '../client/keyspace.js';
import type { Source } from './connection.js';
import { PrefixedKeys } from './prefixed-keys.js';
import { writeOptions } from './time-to-live.js';

export interface FarkvDriverOptions {
  /** A client, which stays open at dispose(), or what connect() takes. */
  readonly source: Source;
  /** Before each key, with a colon; without one itself. Default `unstorage`. Drivers of one prefix share their entries. */
  readonly prefix?: string;
  /** Seconds that an item lives which was set without a `ttl` of its own; default: for ever. */
  readonly ttl?: number;
}

/** What unstorage passes with an item. */
type ItemOptions = { readonly ttl?: unknown } | undefined;

function rawBytes(value: unknown): BufferValue {
  if (typeof value === 'string' || types.isUint8Array(value)) return value;
  if (types.isAnyArrayBuffer(value)) return new Uint8Array(value);
  throw argumentError('a raw item is a Buffer, a Uint8Array, an ArrayBuffer or text; setItem stores other values');
}

/** ttl: seconds. */
function stored(ttl: unknown): { readonly ttlMs?: number } {
  if (ttl === undefined || ttl === null || ttl === 0) return {};
  if (typeof ttl !== 'number' || !(ttl > 0)) throw argumentError('ttl is a number of seconds above 0');
  return writeOptions(ttl * 1000);
}

/** Rounded up: what is there has a second left, and 10 stay 10 right after an item was set with them. */
function secondsUntil(expiresAtMs: number): number {
  return Math.max(0, Math.ceil((expiresAtMs - Date.now()) / 1000));
}

export function farkvDriver(
  given: FarkvDriverOptions,
): Driver<FarkvDriverOptions, Promise<Keyspace<BufferValue, Buffer>>> {
  const options = guardedNow((): FarkvDriverOptions => ({ ...given }));
  const keys = new PrefixedKeys(options.source, options.prefix ?? 'unstorage', (kv) => kv.withCodec('buffer'));
  stored(options.ttl); // throws where it is none
  const put = (key: string, value: () => BufferValue, ttl: () => unknown): Promise<void> =>
    guarded(async () => {
      const how = [keys.key(key), value(), stored(ttl() ?? options.ttl)] as const;
      await (await keys.use()).put(...how);
    });
  const get = (key: string): Promise<Buffer | undefined> => guarded(async () => (await keys.use()).get(keys.key(key)));
  return {
    name: 'farkv',
    flags: { ttl: true },
    options: given,
    getInstance: () => guarded(() => keys.use()),
    hasItem: async (key) => (await get(key)) !== undefined,
    getItem: async (key) => (await get(key))?.toString() ?? null,
    getItems: (items) =>
      guarded(async () => {
        const names = items.map(({ key }) => key);
        const values = await (await keys.use()).getMany(names.map((key) => keys.key(key)));
        return names.map((key, i) => ({ key, value: values[i]?.toString() ?? null }));
      }),
    getItemRaw: async (key) => (await get(key)) ?? null,
    setItem: (key, value, how: ItemOptions) =>
      put(
        key,
        () => value,
        () => how?.ttl,
      ),
    setItems: (items, common: ItemOptions) =>
      guarded(async () => {
        const all = items.map(({ key, value, options: own }) => ({
          key: keys.key(key),
          value,
          ...stored(own?.ttl ?? common?.ttl ?? options.ttl),
        }));
        await (await keys.use()).putMany(all);
      }),
    setItemRaw: (key, value, how: ItemOptions) =>
      put(
        key,
        () => rawBytes(value),
        () => how?.ttl,
      ),
    removeItem: (key) =>
      guarded(async () => {
        await (await keys.use()).delete(keys.key(key));
      }),
    getMeta: (key) =>
      guarded(async () => {
        const entry = await (await keys.use()).getEntry(keys.key(key));
        if (entry === undefined) return null;
        const size = entry.value.length;
        const { expiresAtMs } = entry;
        return expiresAtMs === undefined ? { size } : { size, ttl: secondsUntil(expiresAtMs) };
      }),
    getKeys: (base: string | undefined) => guarded(() => keys.all(base ?? '')),
    clear: (base: string | undefined) => guarded(() => keys.clear(base ?? '')),
    dispose: () => keys.close(),
  };
}

export default farkvDriver;
export type { Source } from './connection.js';
