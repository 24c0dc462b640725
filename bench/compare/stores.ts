/** The stores of one comparison, started, loaded with the same records, and taken away again. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { open, type RootDatabase } from 'lmdb';
import { connect, type BufferValue, type Client } from '../../client/index.js';
import { DemoCluster } from '../demo-cluster.js';
import { startRedis, type Peer } from './peers.js';

export type FarkvClient = Client<BufferValue, Buffer>;

/** 16 bytes, as YCSB's are about. */
export const keyOf = (index: number): string => `user${String(index).padStart(12, '0')}`;

/** Bytes that do not compress and differ from key to key. */
export function valueOf(bytes: number): Buffer {
  const value = Buffer.alloc(bytes);
  for (let i = 0; i < bytes; i++) value[i] = (i * 131 + (i >> 3)) & 255;
  return value;
}

export class Stores {
  readonly keys: readonly string[];
  readonly value: Buffer;
  readonly cluster: DemoCluster;
  readonly shm: FarkvClient;
  readonly tcp: FarkvClient;
  readonly redis: Redis;
  readonly redisPeer: Peer;
  readonly lmdb: RootDatabase<Buffer, string>;
  readonly #directory: string;

  private constructor(o: Pick<Stores, 'keys' | 'value' | 'cluster' | 'shm' | 'tcp' | 'redis' | 'redisPeer' | 'lmdb'>, directory: string) {
    this.keys = o.keys;
    this.value = o.value;
    this.cluster = o.cluster;
    this.shm = o.shm;
    this.tcp = o.tcp;
    this.redis = o.redis;
    this.redisPeer = o.redisPeer;
    this.lmdb = o.lmdb;
    this.#directory = directory;
  }

  static async start(count: number, valueBytes: number, servers: number, signal: AbortSignal, onProgress: (text: string) => void): Promise<Stores> {
    const keys = Array.from({ length: count }, (_, i) => keyOf(i));
    const value = valueOf(valueBytes);
    const memory = Math.ceil((count * (valueBytes + 160) * 2) / servers + 256 * 2 ** 20);
    onProgress(`starting ${servers} farkv server(s), redis-server, lmdb`);
    const cluster = await DemoCluster.start(servers, `${memory}b`, signal);
    const redisPeer = await startRedis();
    const shm = await connect({ servers: cluster.addresses, transport: 'shm', strict: true });
    const tcp = await connect({ servers: cluster.addresses, transport: 'tcp', strict: true, getSpinUs: 50 });
    const redis = new Redis({ port: redisPeer.port, host: '127.0.0.1' });
    const directory = mkdtempSync(join(tmpdir(), 'farkv-compare-'));
    const lmdb = open<Buffer, string>({ path: join(directory, 'lmdb'), encoding: 'binary', compression: false, noSync: true, mapSize: 2 * count * (valueBytes + 200) + 2 ** 26 });
    const stores = new Stores({ keys, value, cluster, shm, tcp, redis, redisPeer, lmdb }, directory);
    onProgress(`loading ${count} records of ${valueBytes} bytes into each`);
    await stores.#load();
    return stores;
  }

  async #load(): Promise<void> {
    const { keys, value } = this;
    for (let at = 0; at < keys.length; at += 5000) {
      const part = keys.slice(at, at + 5000);
      await this.shm.putMany(part.map((key) => ({ key, value })));
      const pipeline = this.redis.pipeline();
      for (const key of part) pipeline.set(key, value);
      await pipeline.exec();
      await this.lmdb.transaction(() => {
        for (const key of part) void this.lmdb.put(key, value);
      });
    }
  }

  async stop(): Promise<void> {
    await Promise.all([this.shm.close(), this.tcp.close()]);
    this.redis.disconnect();
    await this.lmdb.close();
    await this.redisPeer.stop();
    await this.cluster.stop();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
