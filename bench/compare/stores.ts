/**
 * The stores of one comparison, each started and loaded with the same records when it is first asked for, and all taken
 * away again. None of them writes to a disk: what is compared is memory.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { open, type RootDatabase } from 'lmdb';
import { MemcacheClient } from 'memcache-client';
import { connect, type BufferValue, type Client } from '../../client/index.js';
import { DemoCluster, ONE_COPY } from '../demo-cluster.js';
import type { LabOptions } from './lab.js';
import { startMemcached, startRedis, type Certificate, type Peer, type RedisOptions } from './peers.js';
import { regionLoop, type RegionLoop } from './region-loop.js';

export type FarkvClient = Client<BufferValue, Buffer>;

/** Records that are loaded at once. */
const LOAD = 5000;

/** 16 bytes, as redis-benchmark writes `user__rand_int__`. */
export const keyOf = (index: number): string => `user${String(index).padStart(12, '0')}`;

/** The keys of so many records. */
export const keysOf = (count: number): string[] => Array.from({ length: count }, (_, i) => keyOf(i));

/** Bytes that do not compress and differ from place to place. */
export function valueOf(bytes: number): Buffer {
  const value = Buffer.alloc(bytes);
  for (let i = 0; i < bytes; i++) value[i] = (i * 131 + (i >> 3)) & 255;
  return value;
}

/** Memory that so many records take in farkv, with ample room. */
export const memoryFor = (count: number, valueBytes: number): number =>
  Math.ceil(count * (valueBytes + 160) * 2 + 256 * 2 ** 20);

/** Calls `load` with the numbers of some records at a time, until all were there. */
export async function inParts(
  count: number,
  signal: AbortSignal,
  load: (part: readonly number[]) => Promise<unknown>,
): Promise<void> {
  for (let at = 0; at < count; at += LOAD) {
    signal.throwIfAborted();
    await load(Array.from({ length: Math.min(LOAD, count - at) }, (_, i) => at + i));
  }
}

export interface RedisStore {
  readonly peer: Peer;
  readonly client: Redis;
}

export async function openRedis(options: RedisOptions = {}): Promise<RedisStore> {
  const peer = await startRedis(options);
  const { tls } = options;
  const trust = tls === undefined ? {} : { tls: { ca: readFileSync(tls.ca) } };
  return { peer, client: new Redis({ port: peer.port, host: '127.0.0.1', ...trust }) };
}

export async function loadRedis(client: Redis, part: readonly number[], value: Buffer): Promise<void> {
  const pipeline = client.pipeline();
  for (const i of part) pipeline.set(keyOf(i), value);
  await pipeline.exec();
}

export interface MemcachedStore {
  readonly peer: Peer;
  readonly client: MemcacheClient;
}

/** With ample room for so many records. */
export async function openMemcached(count: number, valueBytes: number, tls?: Certificate): Promise<MemcachedStore> {
  const peer = await startMemcached(Math.ceil((count * (valueBytes + 200) * 1.5) / 2 ** 20) + 512, tls);
  return {
    peer,
    client: new MemcacheClient({
      server: { server: `127.0.0.1:${peer.port}`, maxConnections: 1 },
      noDelay: true,
      cmdTimeout: 30_000,
      ...(tls === undefined ? {} : { tls: { ca: readFileSync(tls.ca) } }),
    }),
  };
}

export async function loadMemcached(client: MemcacheClient, part: readonly number[], value: Buffer): Promise<void> {
  await Promise.all(part.map((i) => client.set(keyOf(i), value, { lifetime: 0 })));
}

export class Stores {
  readonly keys: readonly string[];
  readonly value: Buffer;
  readonly #lab: LabOptions;
  readonly #open = new Map<string, { readonly thing: Promise<unknown>; readonly stop: () => Promise<void> }>();

  constructor(lab: LabOptions, valueBytes: number) {
    this.keys = keysOf(lab.keys);
    this.value = valueOf(valueBytes);
    this.#lab = lab;
  }

  /** farkv's servers, loaded. */
  cluster(): Promise<DemoCluster> {
    return this.#once(
      'farkv',
      async () => {
        const { servers, signal } = this.#lab;
        const cluster = await DemoCluster.start(
          servers,
          `${Math.ceil(memoryFor(this.keys.length, this.value.length) / servers)}b`,
          signal,
          ONE_COPY,
        );
        try {
          const client = await connect({ servers: cluster.addresses });
          await this.#load((part) => client.putMany(part.map((i) => ({ key: this.#key(i), value: this.value }))));
          await client.close();
        } catch (error) {
          await cluster.stop();
          throw error;
        }
        return cluster;
      },
      (cluster) => cluster.stop(),
    );
  }

  shm(): Promise<FarkvClient> {
    return this.#once(
      'farkv over shm',
      async () => await connect({ servers: (await this.cluster()).addresses, transport: 'shm', strict: true }),
      (c) => c.close(),
    );
  }

  tcp(): Promise<FarkvClient> {
    return this.#once(
      'farkv over tcp',
      async () => {
        const { addresses } = await this.cluster();
        return await connect({ servers: addresses, transport: 'tcp', strict: true });
      },
      (client) => client.close(),
    );
  }

  redis(): Promise<RedisStore> {
    return this.#once(
      'redis-server',
      async () => {
        const redis = await openRedis();
        await this.#load((part) => loadRedis(redis.client, part, this.value));
        return redis;
      },
      async ({ peer, client }) => {
        client.disconnect();
        await peer.stop();
      },
    );
  }

  memcached(): Promise<MemcachedStore> {
    return this.#once(
      'memcached',
      async () => {
        const memcached = await openMemcached(this.keys.length, this.value.length);
        await this.#load((part) => loadMemcached(memcached.client, part, this.value));
        return memcached;
      },
      async ({ peer, client }) => {
        client.shutdown();
        await peer.stop();
      },
    );
  }

  async lmdb(): Promise<RootDatabase<Buffer, string>> {
    const { database } = await this.#once(
      'lmdb',
      async () => {
        const directory = mkdtempSync(join(tmpdir(), 'farkv-compare-'));
        const mapSize = 2 * this.keys.length * (this.value.length + 200) + 2 ** 26;
        const database = open<Buffer, string>({
          path: join(directory, 'lmdb'),
          encoding: 'binary',
          compression: false,
          noSync: true,
          mapSize,
        });
        await this.#load((part) =>
          database.transaction(() => {
            for (const i of part) void database.put(this.#key(i), this.value);
          }),
        );
        return { database, directory };
      },
      async ({ database, directory }) => {
        await database.close();
        rmSync(directory, { recursive: true, force: true });
      },
    );
    return database;
  }

  /** The C loop over the memory of farkv's servers. */
  regionLoop(): Promise<RegionLoop> {
    return this.#once(
      'the C loop',
      async () => regionLoop((await this.cluster()).addresses[0] ?? '', this.keys.length, this.value),
      (loop) => loop.stop(),
    );
  }

  async stop(): Promise<void> {
    for (const { thing, stop } of [...this.#open.values()].reverse()) {
      // What could not be started has nothing to stop.
      await thing.then(stop, () => undefined);
    }
    this.#open.clear();
  }

  #key(index: number): string {
    return this.keys[index] ?? '';
  }

  #load(load: (part: readonly number[]) => Promise<unknown>): Promise<void> {
    return inParts(this.keys.length, this.#lab.signal, load);
  }

  #once<T>(name: string, start: () => Promise<T>, stop: (thing: T) => Promise<void> | void): Promise<T> {
    const known = this.#open.get(name);
    if (known !== undefined) return known.thing as Promise<T>;
    this.#lab.note(`starting ${name} (${this.keys.length.toLocaleString('en')} records of ${this.value.length} B)`);
    const thing = start();
    this.#open.set(name, {
      thing,
      stop: async () => {
        await stop(await thing);
      },
    });
    return thing;
  }
}
