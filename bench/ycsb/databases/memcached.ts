/**
 * memcached by memcache-client, over one connection a thread. Properties: memcached.hosts (one host:port),
 * memcached.expirytime (seconds, 0 never). memcached's own limit of 1 MiB a value holds.
 */
import type { MemcacheClient } from 'memcache-client';
import type { Properties } from '../properties.js';
import type { Database, Facts } from './database.js';
import { databaseSettings, numberSetting, optionalPackage, unreachable } from './settings.js';

export class MemcachedDatabase implements Database {
  readonly name = 'memcached';
  readonly #settings;
  readonly #lifetime: number;
  #client: MemcacheClient | undefined;
  #version = '';

  constructor(properties: Properties) {
    this.#settings = databaseSettings(properties, 'memcached.', {
      'memcached.hosts': '127.0.0.1:11211',
      'memcached.expirytime': '0',
    });
    this.#lifetime = numberSetting(this.#settings, 'memcached.expirytime', 0, 2_592_000);
  }

  async init(): Promise<void> {
    const { MemcacheClient: Client } = await optionalPackage('memcache-client', () => import('memcache-client'));
    const client = new Client({
      server: { server: this.#settings['memcached.hosts'], maxConnections: 1 },
      noDelay: true,
      cmdTimeout: 10_000,
    });
    try {
      this.#version = String(await client.version()).replace(/^VERSION,?\s*/, '');
    } catch (cause) {
      client.shutdown();
      throw unreachable('memcached', this.#settings['memcached.hosts'], cause);
    }
    this.#client = client;
  }

  async read(key: string): Promise<Uint8Array | undefined> {
    const found = await this.#connected.get<Buffer>(key);
    // The type says always; a key that is not there gives undefined.
    return (found as typeof found | undefined)?.value;
  }

  async insert(key: string, record: Buffer): Promise<void> {
    await this.#connected.set(key, record, { lifetime: this.#lifetime });
  }

  update(key: string, record: Buffer): Promise<void> {
    return this.insert(key, record);
  }

  facts(): Facts {
    return { texts: { Server: `memcached ${this.#version}`, Client: 'memcache-client' }, counts: {} };
  }

  cleanup(): Promise<void> {
    this.#connected.shutdown();
    return Promise.resolve();
  }

  get #connected(): MemcacheClient {
    if (this.#client === undefined) throw new Error('not connected');
    return this.#client;
  }
}
