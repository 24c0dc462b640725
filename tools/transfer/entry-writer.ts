/**
 * Entries into a cluster, many at once: at most COUNT_MAX puts and BYTES_MAX bytes are under way. An entry that has
 * expired is left out. An expiry is a time of this host's clock; the put carries what is left of it, anew with each
 * try.
 *
 * Entries of one key that are under way together take effect in any order.
 */
import type { Codec, Keyspace } from '../../client/index.js';
import { FarkvError, type ErrorCode } from '../../core/errors.js';
import type { EntryRecord } from './entry.js';
import { printable } from './key-text.js';
import { patiently } from './patience.js';
import { Room } from './room.js';
import type { TransferClient } from './transfer-client.js';

const BYTES_MAX = 32 << 20;
const COUNT_MAX = 512;

/**
 * The entry's own fault, or one that an entry of another shard or of fewer bytes need not have; other errors are of the
 * cluster, and end a transfer.
 */
const OF_ENTRY: ReadonlySet<ErrorCode> = new Set([
  'ERR_KEY_INVALID',
  'ERR_VALUE_TOO_LARGE',
  'ERR_ARGUMENT',
  'ERR_TABLE_FULL',
]);

export const isOfEntry = (error: unknown): error is FarkvError =>
  error instanceof FarkvError && OF_ENTRY.has(error.code);

/** Values as they are, under the number of the codec that wrote them. */
function bytesOf(codec: number): Codec<Buffer> {
  return { id: codec, name: `number ${codec}`, encode: (value) => value, decode: (value) => value };
}

function ofKey(key: Buffer, cause: FarkvError): FarkvError {
  return new FarkvError(cause.code, `the key ${printable(key)}: ${cause.message}`, { cause });
}

type Target = Pick<TransferClient, 'namespace'>;

export class EntryWriter {
  written = 0;
  /** Entries that were there already, with `keep`. */
  kept = 0;
  expired = 0;
  readonly #target: Target;
  readonly #keep: boolean;
  readonly #views = new Map<number, Keyspace<Buffer, Buffer>>();
  readonly #room = new Room(BYTES_MAX, COUNT_MAX);
  readonly #underWay = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined;
  #fail: (error: unknown) => void = () => undefined;
  /** Rejects with the first error that nobody dealt with, which `end` throws too. */
  readonly failed = new Promise<never>((_, reject) => (this.#fail = reject));

  /** `keep`: an entry is put only if its key is absent. */
  constructor(target: Target, keep: boolean) {
    this.#target = target;
    this.#keep = keep;
    this.failed.catch(() => undefined);
  }

  /**
   * Resolves when there is room for it, not when it is done. `failed` is told of its error and returns whether it has
   * dealt with it; otherwise the next `put`, or `end`, throws the error.
   */
  async put(entry: EntryRecord, failed: (error: unknown) => boolean = () => false): Promise<void> {
    const bytes = entry.key.length + entry.value.length;
    await this.#room.enter(bytes);
    if (this.#failure !== undefined) {
      this.#room.leave(bytes);
      throw this.#failure.error;
    }
    const done = this.#write(entry)
      .catch((error: unknown) => {
        if (failed(error)) return;
        this.#failure ??= { error: isOfEntry(error) ? ofKey(entry.key, error) : error };
        this.#fail(this.#failure.error);
      })
      .finally(() => {
        this.#room.leave(bytes);
        this.#underWay.delete(done);
      });
    this.#underWay.add(done);
  }

  /** Waits for all that was put. Throws the first error that nobody dealt with. */
  async end(): Promise<void> {
    await Promise.all(this.#underWay);
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  async #write(entry: EntryRecord): Promise<void> {
    const view = this.#view(entry);
    await patiently(async () => {
      const { key, value, flags, expiresAtMs } = entry;
      const ttlMs = expiresAtMs === undefined ? undefined : expiresAtMs - Date.now();
      if (ttlMs !== undefined && ttlMs <= 0) {
        this.expired++;
        return;
      }
      const how = { ...(ttlMs === undefined ? {} : { ttlMs }), ...(flags === 0 ? {} : { flags }) };
      if (!this.#keep) await view.put(key, value, how);
      else if (!(await view.compareAndSwap(key, 0n, value, how)).swapped) {
        this.kept++;
        return;
      }
      this.written++;
    });
  }

  #view({ namespace, codec }: EntryRecord): Keyspace<Buffer, Buffer> {
    const name = namespace * 256 + codec;
    let view = this.#views.get(name);
    if (view === undefined) {
      view = this.#target.namespace(namespace).withCodec(bytesOf(codec));
      this.#views.set(name, view);
    }
    return view;
  }
}
