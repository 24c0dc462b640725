/**
 * The entries of one adapter: those of the source's namespace whose keys begin with `PREFIX:`. What all adapters share:
 * their keys, listing them, and clearing.
 *
 * Claim: no adapter sees or deletes an entry of another prefix.
 * 1. A prefix has no colon, so every key has exactly one, and no `PREFIX:` is the beginning of another.
 * 2. Single operations name keys that this file made, which begin with `PREFIX:`.
 * 3. list() and clear() ask the owners for keys that begin with `PREFIX:`, compared byte by byte, and get no other.
 *
 * The owners look at all keys of the namespace, those of others too: listing takes as long as the namespace is large.
 */
import type { Keyspace } from '../client/keyspace.js';
import { argumentError } from '../client/errors.js';
import { KEY_MAX, type ScanKey } from '../client/scan.js';
import { checkText } from '../client/well-formed.js';
import { Connection, type Source } from './connection.js';

/** Keys of a page of a scan, and changes under way at a time. */
const PAGE = 1024;
const PREFIX_BYTES_MAX = 255;

function checkPrefix(prefix: unknown): string {
  if (typeof prefix !== 'string' || prefix === '' || prefix.includes(':'))
    throw argumentError('prefix is a text without a colon, and not empty');
  checkText(prefix, 'prefix');
  if (Buffer.byteLength(prefix) > PREFIX_BYTES_MAX)
    throw argumentError(`prefix has at most ${PREFIX_BYTES_MAX} bytes in UTF-8`);
  return prefix;
}

/** View: how the adapter stores values, as a view of the source's namespace through a codec. */
export class PrefixedKeys<In, Out = In> {
  readonly #connection: Connection;
  readonly #view: (source: Keyspace<never, unknown>) => Keyspace<In, Out>;
  readonly #prefix: string;
  #last: { readonly source: Keyspace<never, unknown>; readonly view: Keyspace<In, Out> } | undefined;

  constructor(source: Source, prefix: string, view: (source: Keyspace<never, unknown>) => Keyspace<In, Out>) {
    this.#prefix = `${checkPrefix(prefix)}:`;
    this.#connection = new Connection(source);
    this.#view = view;
  }

  async use(): Promise<Keyspace<In, Out>> {
    const source = await this.#connection.use();
    if (this.#last?.source !== source) this.#last = { source, view: this.#view(source) };
    return this.#last.view;
  }

  /** The key in farkv of a key of the adapter's. Throws ERR_ARGUMENT. */
  key(name: unknown): string {
    if (typeof name !== 'string') throw argumentError('a key of this store is a text');
    return this.#prefix + name;
  }

  /**
   * Pages of the adapter's keys that begin with `start`, as the adapter names them. A key that stays present comes at
   * least once; one may come twice.
   */
  async *list(start: string): AsyncGenerator<string[], void, undefined> {
    for await (const page of this.#pages(start)) yield page.map(({ key }) => this.#name(key));
  }

  /** The same, all of them, each once. */
  async all(start: string): Promise<string[]> {
    const names = new Set<string>();
    for await (const page of this.list(start)) for (const name of page) names.add(name);
    return [...names];
  }

  /**
   * Deletes the adapter's entries whose keys begin with `start` and that are there when it is called. One that is
   * written meanwhile stays, if it was written after the scan saw it.
   */
  async clear(start: string): Promise<void> {
    const kv = await this.use();
    for await (const page of this.#pages(start))
      await Promise.all(page.map(({ key, version }) => kv.compareAndDelete(key, version)));
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async *#pages(start: string): AsyncGenerator<readonly ScanKey[], void, undefined> {
    const kv = await this.use();
    const prefix = this.key(start);
    if (Buffer.byteLength(prefix) > KEY_MAX) return; // no key begins with it
    let cursor: string | undefined;
    do {
      // mutation: adapters/clears-other-prefixes
      const page = await kv.scanPage({ batch: PAGE, prefix, ...(cursor === undefined ? {} : { cursor }) });
      if (page.entries.length > 0) yield page.entries;
      ({ cursor } = page);
    } while (cursor !== undefined);
  }

  #name(key: Buffer): string {
    return key.toString('utf8', Buffer.byteLength(this.#prefix));
  }
}
