/** Entries for tests of backups and exports, and a cluster of them that exists in memory alone. */
import type { Origin } from '../../client/cluster.js';
import type { WriteOptions } from '../../client/index.js';
import type { ScanOfShard, ScanStep } from '../../client/scan.js';
import type { EntryRecord } from '../../tools/transfer/entry.js';
import type { Random } from './random.js';

/** Any bytes, namespaces, codecs, flags; some expire, some values are empty. Expiry lies in the future. */
export function randomEntry(random: Random, valueMax: number): EntryRecord {
  return {
    namespace: random.pick([0, 1, 65_535, random.below(65_536)]),
    key: Buffer.from(random.bytes(1 + random.below(random.pick([8, 64, 1024])))),
    value: Buffer.from(random.bytes(random.pick([0, random.below(40), random.below(valueMax)]))),
    codec: random.pick([0, 1, 16, 255]),
    flags: random.pick([0, random.next()]),
    expiresAtMs: random.below(2) === 0 ? undefined : Date.now() + 1_000_000 + random.below(2 ** 31),
  };
}

export const nameOf = ({ namespace, key }: Pick<EntryRecord, 'namespace' | 'key'>): string =>
  `${namespace} ${key.toString('hex')}`;

/** What a command sees of a cluster of one tenant: its entries lie in maps, a page has at most two of them. */
export class StoreInMemory {
  /** Values over this do not come with a page. */
  inlineMax = 100;
  /** Called before a value is read by itself. */
  onGet: (name: string) => void = () => undefined;
  /** What a put of this entry is answered with. */
  refuses: (key: Buffer, value: Buffer) => Error | undefined = () => undefined;
  readonly entries = new Map<string, EntryRecord & { readonly version: bigint }>();
  puts = 0;
  #version = 0n;
  readonly #origin: Origin;

  constructor(tenant?: string, shards = 2) {
    this.#origin = {
      clusterId: 'c'.repeat(32),
      hashSeed: '5'.repeat(32),
      shards: { first: tenant === undefined ? 0 : 10, count: shards },
      ...(tenant === undefined ? {} : { tenant }),
    };
  }

  origin(): Origin {
    return this.#origin;
  }

  set(entry: EntryRecord): void {
    this.entries.set(nameOf(entry), { ...entry, version: ++this.#version });
  }

  scanShard({ shard, cursor, values }: ScanOfShard): Promise<ScanStep> {
    const { first, count } = this.#origin.shards;
    const all = [...this.entries.values()].filter((one) => first + ((one.key[0] ?? 0) % count) === shard);
    const from = Number(cursor);
    const entries = all
      .slice(from, from + 2)
      .map(({ value, ...entry }) => ({
        ...entry,
        valueBytes: value.length,
        bytes: values && value.length <= this.inlineMax ? value : undefined,
      }));
    return Promise.resolve({ entries, next: from + 2 < all.length ? BigInt(from + 2) : 0n });
  }

  /** With what a view of the SDK has that backups use. */
  namespace(namespace: number): never {
    const at = (key: Buffer): string => nameOf({ namespace, key });
    const view = (codec: number) => ({
      withCodec: ({ id }: { readonly id: number }) => view(id),
      getEntry: (key: Buffer) => {
        this.onGet(at(key));
        return Promise.resolve(this.entries.get(at(key)));
      },
      put: (key: Buffer, value: Buffer, { ttlMs, flags = 0 }: WriteOptions = {}) => {
        const refusal = this.refuses(key, value);
        if (refusal !== undefined) return Promise.reject(refusal);
        this.puts++;
        const expiresAtMs = ttlMs === undefined ? undefined : Date.now() + ttlMs;
        this.set({ namespace, key, value, codec, flags, expiresAtMs });
        return Promise.resolve();
      },
      compareAndSwap: async (key: Buffer, _: bigint, value: Buffer, how?: WriteOptions) => {
        if (this.entries.has(at(key))) return { swapped: false };
        await view(codec).put(key, value, how);
        return { swapped: true };
      },
    });
    return view(0) as never;
  }
}
