/**
 * Redis by ioredis: SET and GET of the whole record. Properties: redis.host, redis.port, redis.password,
 * redis.keyprefix. Operations that are in flight together travel in one pipeline of the connection, as ioredis does by
 * itself (autoPipelining off).
 */
import type { Redis } from 'ioredis';
import type { Properties } from '../properties.js';
import type { Database, Facts } from './database.js';
import { databaseSettings, numberSetting, optionalPackage, unreachable } from './settings.js';

export class RedisDatabase implements Database {
  readonly name = 'redis';
  readonly #settings;
  #client: Redis | undefined;
  #version = '';

  constructor(properties: Properties) {
    this.#settings = databaseSettings(properties, 'redis.', {
      'redis.host': '127.0.0.1',
      'redis.port': '6379',
      'redis.password': '',
      'redis.keyprefix': '',
    });
  }

  async init(): Promise<void> {
    const { Redis: Client } = await optionalPackage('ioredis', () => import('ioredis'));
    const password = this.#settings['redis.password'];
    const client = new Client({
      host: this.#settings['redis.host'],
      port: numberSetting(this.#settings, 'redis.port', 1, 65_535),
      keyPrefix: this.#settings['redis.keyprefix'],
      ...(password === '' ? {} : { password }),
      lazyConnect: true,
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
    });
    // A broken connection fails the operations on it; what broke it is told by this event only.
    let broken: Error | undefined;
    client.on('error', (error: Error) => (broken = error));
    try {
      await client.connect();
    } catch (cause) {
      client.disconnect();
      throw unreachable('redis', `${this.#settings['redis.host']}:${this.#settings['redis.port']}`, broken ?? cause);
    }
    this.#version = /redis_version:(\S+)/.exec(await client.info('server'))?.[1] ?? 'unknown';
    this.#client = client;
  }

  async read(key: string): Promise<Uint8Array | undefined> {
    return (await this.#connected.getBuffer(key)) ?? undefined;
  }

  async insert(key: string, record: Buffer): Promise<void> {
    await this.#connected.set(key, record);
  }

  async update(key: string, record: Buffer): Promise<void> {
    await this.#connected.set(key, record);
  }

  facts(): Facts {
    return { texts: { Server: `redis ${this.#version}`, Client: 'ioredis' }, counts: {} };
  }

  async cleanup(): Promise<void> {
    await this.#connected.quit();
  }

  get #connected(): Redis {
    if (this.#client === undefined) throw new Error('not connected');
    return this.#client;
  }
}
