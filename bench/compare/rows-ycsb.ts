/**
 * YCSB workloads through `farkv bench`, in turn: the same property files, records and encoding for every store, none on disk, one client process with
 * one thread and the same number of operations in flight.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Lab } from './lab.js';
import { atLeast, interleave, part, perSecond, type Part, type Side } from './row.js';
import { median, ratios } from './statistics.js';
import { TCP_SPIN_US } from './stores.js';

const CLI = fileURLToPath(new URL('../../server/cli/main.js', import.meta.url));

const RECORDS = 100_000;
const OPERATIONS = 200_000;
const OUTSTANDING = 32;
const RUN_LIMIT_MS = 120_000;

export async function ycsb(lab: Lab, goal: number): Promise<Part[]> {
  const s = await lab.stores(1000);
  const [cluster, redis, memcached] = [await s.cluster(), await s.redis(), await s.memcached()];
  const records = Math.min(RECORDS, lab.keys);
  const bench = async (phase: 'load' | 'run', database: string, workload: string, more: readonly string[]): Promise<number> => {
    const args = [
      CLI, 'bench', phase, database, '-P', `workload${workload}`, '-p', `recordcount=${records}`, '-p', `operationcount=${OPERATIONS}`,
      '-p', `outstanding=${OUTSTANDING}`, '-p', 'seed=1', '--no-harness', '--json', ...more,
    ];
    const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 26, timeout: RUN_LIMIT_MS, signal: lab.signal });
    return (JSON.parse(stdout) as { readonly throughput: number }).throughput;
  };
  // Namespace 1: the other rows' keys are in namespace 0.
  const farkv = (transport: string): string[] => [
    '--connect', cluster.addresses.join(','), '--transport', transport, '--strict', '--namespace', '1', '-p', `farkv.getspinus=${TCP_SPIN_US}`,
  ];
  const toRedis = ['-p', 'redis.host=127.0.0.1', '-p', `redis.port=${redis.peer.port}`];
  const toMemcached = ['-p', `memcached.hosts=127.0.0.1:${memcached.peer.port}`];
  lab.note(`loading ${records.toLocaleString('en')} YCSB records`);
  await bench('load', 'farkv', 'a', farkv('shm'));
  await bench('load', 'redis', 'a', toRedis);
  await bench('load', 'memcached', 'a', toMemcached);
  const parts: Part[] = [];
  for (const w of lab.workloads) {
    lab.note(`YCSB ${w.toUpperCase()}`);
    const side = (name: string, database: string, more: readonly string[]): Side => ({ name, run: () => bench('run', database, w, more) });
    const [shm = [], tcp = [], r = [], m = []] = await interleave(lab, [
      side('shm', 'farkv', farkv('shm')), side('tcp', 'farkv', farkv('tcp')), side('Redis', 'redis', toRedis), side('memcached', 'memcached', toMemcached),
    ]);
    for (const [transport, ours] of [['shm', shm], ['tcp', tcp]] as const) {
      for (const [peer, theirs] of [['Redis', r], ['memcached', m]] as const) {
        parts.push(part(
          `YCSB ${w.toUpperCase()} over ${transport} against ${peer}`, atLeast(goal, 'times the throughput'), ratios(ours, theirs),
          `farkv ${perSecond(median(ours))}, ${peer} ${perSecond(median(theirs))}`,
        ));
      }
    }
  }
  return parts;
}
