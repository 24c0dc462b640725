/**
 * `farkv/unstorage`: a driver of unstorage, which Nitro and Nuxt use too.
 *
 *     const storage = createStorage({ driver: farkvDriver({ source: '127.0.0.1:7400' }) });
 *
 * unstorage's key `a:b` is `unstorage:a:b` in farkv. Values are bytes (codec `buffer`): the text that unstorage makes of
 * an item, or the raw item. Times to live are seconds, as in unstorage's own drivers. When an entry expires stands in
 * its flags too, in seconds since 1970: a GET says nothing of expiry, and getMeta tells what is left.
 */
import type { Driver } from 'unstorage';
import { argumentError } from '../client/errors.js';
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

const FLAGS_MAX = 2 ** 32 - 1;

function rawBytes(value: unknown): BufferValue {
  if (typeof value === 'string' || value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  throw argumentError('a raw item is a Buffer, a Uint8Array, an ArrayBuffer or text; setItem stores other values');
}

/** ttl: seconds. */
function stored(ttl: unknown): { readonly ttlMs?: number; readonly flags?: number } {
  if (ttl === undefined || ttl === null || ttl === 0) return {};
  if (typeof ttl !== 'number' || !(ttl > 0)) throw argumentError('ttl is a number of seconds above 0');
  const options = writeOptions(ttl * 1000);
  if (options.ttlMs === undefined) return {};
  return { ...options, flags: Math.min(FLAGS_MAX, Math.ceil((Date.now() + options.ttlMs) / 1000)) };
}

export function farkvDriver(
  options: FarkvDriverOptions,
): Driver<FarkvDriverOptions, Promise<Keyspace<BufferValue, Buffer>>> {
  const keys = new PrefixedKeys(options.source, options.prefix ?? 'unstorage', (kv) => kv.withCodec('buffer'));
  const put = async (key: string, value: BufferValue, ttl: unknown): Promise<void> => {
    await (await keys.use()).put(keys.key(key), value, stored(ttl ?? options.ttl));
  };
  return {
    name: 'farkv',
    flags: { ttl: true },
    options,
    getInstance: () => keys.use(),
    hasItem: async (key) => (await (await keys.use()).get(keys.key(key))) !== undefined,
    getItem: async (key) => (await (await keys.use()).get(keys.key(key)))?.toString() ?? null,
    getItems: async (items) => {
      const values = await (await keys.use()).getMany(items.map(({ key }) => keys.key(key)));
      return items.map(({ key }, i) => ({ key, value: values[i]?.toString() ?? null }));
    },
    getItemRaw: async (key) => (await (await keys.use()).get(keys.key(key))) ?? null,
    setItem: (key, value, { ttl }) => put(key, value, ttl),
    setItems: async (items, common) => {
      const kv = await keys.use();
      await kv.putMany(
        items.map(({ key, value, options: own }) => ({
          key: keys.key(key),
          value,
          ...stored(own?.ttl ?? common?.ttl ?? options.ttl),
        })),
      );
    },
    setItemRaw: async (key, value, { ttl }) => await put(key, rawBytes(value), ttl),
    removeItem: async (key) => {
      await (await keys.use()).delete(keys.key(key));
    },
    getMeta: async (key) => {
      const entry = await (await keys.use()).getEntry(keys.key(key));
      if (entry === undefined) return null;
      const size = entry.value.length;
      return entry.flags === 0 ? { size } : { size, ttl: Math.max(0, entry.flags - Math.floor(Date.now() / 1000)) };
    },
    getKeys: (base: string | undefined) => keys.all(base ?? ''),
    clear: (base: string | undefined) => keys.clear(base ?? ''),
    dispose: () => keys.close(),
  };
}

export default farkvDriver;
export type { Source } from './connection.js';
