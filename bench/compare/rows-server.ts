/** What the servers spend: CPU time while clients GET, memory beyond keys and values. */
import { execFile, spawnSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { DemoCluster } from '../demo-cluster.js';
import { connect } from '../../client/index.js';
import { meanNs, rate, walk } from './loops.js';
import { startRedis } from './peers.js';
import { processorSeconds } from './processor-time.js';
import { median, result, type Result } from './row.js';
import { keyOf, valueOf, type Stores } from './stores.js';

const CLI = fileURLToPath(new URL('../../server/cli/main.js', import.meta.url));

const total = (pids: readonly number[]): number => pids.reduce((sum, pid) => sum + processorSeconds(pid), 0);

/** GETs over shm for `seconds`, at least a million: per cent of one core that all servers together used. */
export async function serverCpuOverShm(s: Stores, seconds: number, goal: number): Promise<Result> {
  const target = Buffer.alloc(s.value.length + 64);
  const next = walk(s.keys.length);
  await delay(500);
  const before = total(s.cluster.pids);
  const begin = performance.now();
  let gets = 0;
  while (performance.now() - begin < seconds * 1000 || gets < 1_000_000) {
    await meanNs(100_000, (i) => s.shm.getInto(s.keys[i] ?? '', target), next);
    gets += 100_000;
  }
  const took = (performance.now() - begin) / 1000;
  const used = total(s.cluster.pids) - before;
  return result(
    'server CPU during GETs over shm, all servers', { kind: 'below', value: goal, unit: '% of one core' }, [(100 * used) / took],
    `${gets.toLocaleString('en')} GETs in ${took.toFixed(1)} s, ${(used * 1000).toFixed(0)} ms of CPU`,
  );
}

/** CPU of the owner a GET over tcp, as a part of Redis's. */
export async function serverCpuOverTcp(s: Stores, rounds: number, goal: number): Promise<Result> {
  const cost = async (pids: readonly number[], get: (i: number) => Promise<unknown>): Promise<number> => {
    const before = total(pids);
    await rate(1_000_000, 100, get, walk(s.keys.length));
    return ((total(pids) - before) / 1_000_000) * 1e9;
  };
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let i = 0; i < rounds; i++) {
    ours.push(await cost(s.cluster.pids, (k) => s.tcp.get(s.keys[k] ?? '')));
    theirs.push(await cost([s.redisPeer.pid], (k) => s.redis.getBuffer(s.keys[k] ?? '')));
  }
  return result(
    'server CPU a GET over tcp, of Redis\'s', { kind: 'atMost', value: goal, unit: 'times' }, ours.map((x, i) => x / (theirs[i] ?? Number.NaN)),
    `farkv ${median(ours).toFixed(0)} ns, redis ${median(theirs).toFixed(0)} ns`,
  );
}

/** Bytes of registered memory beyond keys and values, an entry, in a server of its own; and Redis's used_memory of the same data. */
export async function memoryPerEntry(count: number, valueBytes: number, signal: AbortSignal, goal: number): Promise<Result[]> {
  const memory = Math.ceil(count * (valueBytes + 200) * 1.5 + 128 * 2 ** 20);
  const cluster = await DemoCluster.start(1, `${memory}b`, signal);
  const redis = await startRedis();
  try {
    const client = await connect({ servers: cluster.addresses });
    const value = valueOf(valueBytes);
    const cli = (...args: string[]): string => spawnSync('redis-cli', ['-p', String(redis.port), ...args], { encoding: 'utf8' }).stdout;
    const usedMemory = (): number => Number(/used_memory:(\d+)/.exec(cli('info', 'memory'))?.[1]);
    const empty = usedMemory();
    const other = new Redis({ port: redis.port });
    for (let at = 0; at < count; at += 5000) {
      const part = Array.from({ length: Math.min(5000, count - at) }, (_, i) => keyOf(at + i));
      await client.putMany(part.map((key) => ({ key, value })));
      const pipeline = other.pipeline();
      for (const key of part) pipeline.set(key, value);
      await pipeline.exec();
    }
    other.disconnect();
    const taken = await registeredBytes(cluster.addresses[0] ?? '');
    await client.close();
    const ours = taken / count - 16 - valueBytes;
    const theirs = (usedMemory() - empty) / count - 16 - valueBytes;
    const name = `memory an entry beyond key and value, ${count} keys of 16 B with ${valueBytes} B`;
    return [
      result(name, { kind: 'atMost', value: goal, unit: 'B' }, [ours], `registered ${taken.toLocaleString('en')} B, index included`),
      result(`${name}, against Redis used_memory`, { kind: 'below', value: 1, unit: 'times' }, [ours / theirs], `farkv ${ours.toFixed(1)} B, redis ${theirs.toFixed(1)} B`),
    ];
  } finally {
    await redis.stop();
    await cluster.stop();
  }
}

/** Registered bytes of all shards, index and heap, as `farkv status --json` has them. */
async function registeredBytes(address: string): Promise<number> {
  const { stdout } = await promisify(execFile)(process.execPath, [CLI, 'status', '--json', '--connect', address]);
  const status = JSON.parse(stdout) as { readonly shards: readonly { readonly memoryBytes?: number }[] };
  return status.shards.reduce((sum, shard) => sum + (shard.memoryBytes ?? 0), 0);
}
