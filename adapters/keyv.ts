/**
 * `farkv/keyv`: a storage adapter of Keyv 5, and so of all that takes one, such as cache-manager.
 *
 *     const cache = new Keyv({ store: new KeyvFarkv('127.0.0.1:7400'), namespace: 'users' });
 *
 * Keyv puts its namespace before each key (`users:1`); the adapter puts its prefix before that (`keyv:users:1`). Values
 * are stored with the codec `msgpack`: what Keyv gives, which is text unless it was told not to serialize.
 *
 * Keyv itself answers a failed get with undefined. So a failed read is also an 'error' event here, which Keyv passes on.
 */
import { EventEmitter } from 'node:events';
import type { KeyvStoreAdapter, StoredData } from 'keyv';
import { argumentError, guarded, guardedNow, type FarkvError } from '../client/errors.js';
import type { Source } from './connection.js';
import { PrefixedKeys } from './prefixed-keys.js';
import { writeOptions } from './time-to-live.js';

export interface KeyvFarkvOptions {
  /** Before each key, with a colon; without one itself. Default `keyv`. Adapters of one prefix share their entries. */
  readonly prefix?: string;
}

interface KeyvItem {
  readonly key: string;
  readonly value: unknown;
  readonly ttl?: number | undefined;
}

export class KeyvFarkv extends EventEmitter implements KeyvStoreAdapter {
  /** Keyv 5 has an iterator() only for stores whose dialect is in its own list, and throws where there is none. */
  readonly opts: Record<string, unknown> = { dialect: 'redis', url: '' };
  readonly #keys: PrefixedKeys<unknown>;
  #namespace: string | undefined;
  /** Each namespace that was assigned, as the beginning of its keys. More than one: clear() cannot know which is meant. */
  readonly #assigned = new Set<string>();

  /** A client stays open at disconnect(); what the adapter connected itself is closed. */
  constructor(source: Source, options: KeyvFarkvOptions = {}) {
    super();
    const { prefix = 'keyv' } = guardedNow((): KeyvFarkvOptions => ({ ...options }));
    this.#keys = new PrefixedKeys(source, prefix, (kv) => kv.withCodec('msgpack'));
    // Each Keyv of a store adds one.
    this.setMaxListeners(0);
  }

  /** Set by Keyv: what clear() clears. undefined: all of the prefix. */
  get namespace(): string | undefined {
    return this.#namespace;
  }

  /** null, which a program in JavaScript may assign, is none too. */
  set namespace(namespace: string | undefined) {
    const given: unknown = namespace ?? undefined;
    if (given !== undefined && typeof given !== 'string') throw argumentError('the namespace of a KeyvFarkv is a text');
    this.#namespace = given;
    this.#assigned.add(within(given));
  }

  async get<Value>(key: string): Promise<StoredData<Value> | undefined> {
    return (await this.#read(async () => (await this.#keys.use()).get(this.#keys.key(key)))) as StoredData<Value>;
  }

  async getMany<Value>(keys: string[]): Promise<StoredData<Value | undefined>[]> {
    return (await this.#getMany(keys)) as StoredData<Value | undefined>[];
  }

  /** ttl: milliseconds; without one the entry stays. */
  async set(key: string, value: unknown, ttl?: number): Promise<boolean> {
    await guarded(async () => (await this.#keys.use()).put(this.#keys.key(key), value, writeOptions(ttl)));
    return true;
  }

  async setMany(items: KeyvItem[]): Promise<void> {
    await guarded(async () =>
      (await this.#keys.use()).putMany(
        items.map(({ key, value, ttl }) => ({ key: this.#keys.key(key), value, ...writeOptions(ttl) })),
      ),
    );
  }

  async delete(key: string): Promise<boolean> {
    return await guarded(async () => (await this.#keys.use()).delete(this.#keys.key(key)));
  }

  /** Whether at least one was there. */
  async deleteMany(keys: string[]): Promise<boolean> {
    return await guarded(async () => (await (await this.#keys.use()).deleteMany(this.#keysOf(keys))) > 0);
  }

  /** Deletes what the namespace has; without a namespace, what the prefix has. */
  async clear(): Promise<void> {
    if (this.#assigned.size > 1) throw severalNamespaces('clear'); // mutation: adapters/clears-other-namespaces
    await this.#keys.clear(within(this.namespace));
  }

  async has(key: string): Promise<boolean> {
    return (await this.#getMany([key]))[0] !== undefined;
  }

  async hasMany(keys: string[]): Promise<boolean[]> {
    return (await this.#getMany(keys)).map((value) => value !== undefined);
  }

  /**
   * Lists keys, as Keyv gave them, with their values; an entry that is moved by the server meanwhile may come twice.
   * Keyv reads this property when it has written its namespace, and gives the function the one that was written last: so
   * the function refuses when another Keyv has written its own since.
   */
  get iterator(): <Value>(namespace?: string) => AsyncGenerator<(string | Awaited<Value> | undefined)[], void> {
    const own = within(this.#namespace);
    return (namespace) =>
      this.#list(
        own,
        guardedNow(() => within(namespace)),
      );
  }

  async disconnect(): Promise<void> {
    await this.#keys.close();
  }

  async *#list<Value>(
    own: string,
    start: string,
  ): AsyncGenerator<(string | Awaited<Value> | undefined)[], void, undefined> {
    if (own !== within(this.#namespace)) throw severalNamespaces('iterator');
    for await (const names of this.#keys.list(start)) {
      const values = (await this.#getMany(names)) as (Awaited<Value> | undefined)[];
      for (const [i, name] of names.entries()) if (values[i] !== undefined) yield [name, values[i]];
    }
  }

  #getMany(keys: readonly string[]): Promise<unknown[]> {
    return this.#read(async () => (await this.#keys.use()).getMany(this.#keysOf(keys)));
  }

  #keysOf(keys: readonly string[]): string[] {
    if (!Array.isArray(keys)) throw argumentError('keys is an array of texts');
    return keys.map((key) => this.#keys.key(key));
  }

  async #read<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await guarded(read);
    } catch (error) {
      // An EventEmitter throws an 'error' that nobody listens to.
      if (this.listenerCount('error') > 0) this.emit('error', error);
      throw error;
    }
  }
}

/** A Keyv overwrites the namespace of its store: with two of them, clear() of one would delete what the other has. */
function severalNamespaces(call: string): FarkvError {
  return argumentError(
    `this KeyvFarkv was given more than one namespace, and ${call}() does not know which is meant: ` +
      'make one KeyvFarkv for each Keyv; they may share a client',
  );
}

function within(namespace: string | null | undefined): string {
  return namespace === undefined || namespace === null || namespace === '' ? '' : `${namespace}:`;
}

export type { Source } from './connection.js';
