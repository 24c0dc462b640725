/** YCSB workloads through `farkv bench`, the same property files and records for every store, in turn. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startMemcached } from './peers.js';
import { interleave, median, perSecond, result, type Result, type Side } from './row.js';
import { ratios } from './statistics.js';
import type { Stores } from './stores.js';

const CLI = fileURLToPath(new URL('../../server/cli/main.js', import.meta.url));

/** Operations in flight of the one client thread: every store gets the same. */
const OUTSTANDING = 32;

interface Report {
  readonly throughput: number;
}

async function bench(phase: 'load' | 'run', database: string, workload: string, records: number, operations: number, more: readonly string[]): Promise<number> {
  const args = [
    CLI, 'bench', phase, database, '-P', `workload${workload}`, '-p', `recordcount=${records}`, '-p', `operationcount=${operations}`,
    '-p', `outstanding=${OUTSTANDING}`, '--no-harness', '--json', ...more,
  ];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 26 });
  return (JSON.parse(stdout) as Report).throughput;
}

/** Throughput of farkv over each transport against Redis and memcached: one row for each workload, transport and peer. */
export async function ycsb(s: Stores, workloads: readonly string[], records: number, operations: number, rounds: number): Promise<Result[]> {
  const memcached = await startMemcached(2048);
  try {
    const servers = s.cluster.addresses.join(',');
    // Namespace 1: the other rows' keys are in namespace 0.
    const farkv = (transport: string): string[] => ['--connect', servers, '--transport', transport, '--strict', '--namespace', '1'];
    const redis = ['-p', 'redis.host=127.0.0.1', '-p', `redis.port=${s.redisPeer.port}`];
    const memcache = ['-p', `memcached.hosts=127.0.0.1:${memcached.port}`];
    await bench('load', 'farkv', 'a', records, 0, farkv('shm'));
    await bench('load', 'redis', 'a', records, 0, redis);
    await bench('load', 'memcached', 'a', records, 0, memcache);
    const rows: Result[] = [];
    for (const w of workloads) {
      const side = (name: string, database: string, more: readonly string[]): Side => ({ name, run: () => bench('run', database, w, records, operations, more) });
      const [shm = [], tcp = [], r = [], m = []] = await interleave([
        side('shm', 'farkv', farkv('shm')), side('tcp', 'farkv', farkv('tcp')), side('redis', 'redis', redis), side('memcached', 'memcached', memcache),
      ], rounds);
      for (const [transport, ours] of [['shm', shm], ['tcp', tcp]] as const) {
        for (const [peer, theirs] of [['Redis', r], ['memcached', m]] as const) {
          rows.push(result(
            `YCSB ${w.toUpperCase()} over ${transport} against ${peer}`, { kind: 'atLeast', value: 1, unit: 'times the throughput' }, ratios(ours, theirs),
            `farkv ${perSecond(median(ours))}, ${peer} ${perSecond(median(theirs))}`,
          ));
        }
      }
    }
    return rows;
  } finally {
    await memcached.stop();
  }
}
